"""An OpenAPI document (3.0 or 3.1) as operations: what each takes, and where in a request that goes.

References lead nowhere but into the document itself and, of one that is a file, into files of its folder. Budgets hold
whatever it says: a schema that is too large, or nested too deeply, is cut where it is farthest from what a call must
give, and the API itself checks the rest.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from pydantic_core import from_json

from journeyman.core.data import canonical_json, digest, visible
from journeyman.core.errors import ConfigurationError, ToolDefinitionError
from journeyman.core.specification import LONGEST_NAME_FOR_MODELS
from journeyman.tools.tool import ForeignSchema

DOCUMENT_BYTES = 16_000_000
_SCHEMA_BYTES = 30_000
"""Of what arguments are made of, besides the arguments themselves."""
_NODES, _DEPTH, _HOPS = 20_000, 40, 20
_TEXT_CHARS, _DESCRIPTION_CHARS = 500, 2_000
_METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
_SET_BY_US = {"accept", "content-type", "content-length", "authorization", "cookie", "host", "connection"}
_OTHERS = "x-other-files"
"""Under which the files stand in a document that it refers to."""
IDEMPOTENCY = ("idempotency-key", "x-idempotency-key")
_ONE, _MANY, _NAMED = (
    ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"),
    ("allOf", "anyOf", "oneOf", "prefixItems"),
    ("properties", "patternProperties"),
)
_DROPPED = {"discriminator", "xml", "externalDocs", "example", "examples", "nullable", "readOnly", "writeOnly"} | {
    *("definitions", "unevaluatedProperties", "unevaluatedItems", "dependentSchemas", "contentSchema")
}
UPLOAD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "filename": {"type": "string"},
        "mime_type": {"type": "string"},
        "text": {"type": "string", "description": "The content, where it is text."},
        "data": {"type": "string", "description": "The content in base64, where it is not."},
    },
    "additionalProperties": False,
    "description": "A file: its content as text or data.",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """An argument, and where it goes: a parameter of the API, or a field of a form."""

    argument: str
    name: str
    place: str
    style: str = "form"
    explode: bool = True
    reserved: bool = False
    json: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """How a request's body is written."""

    kind: Literal["json", "form", "multipart", "text", "binary"]
    media_type: str
    fields: tuple[Placed, ...] | None
    """Its fields, each an argument of its own; None where ``argument`` is the whole body."""
    argument: str = "body"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, ready to be called."""

    id: str
    name: str
    method: str
    path: str
    description: str
    placed: tuple[Placed, ...]
    body: Body | None
    schema: dict[str, Any] = field(repr=False)
    checked: ForeignSchema = field(repr=False)
    security: tuple[tuple[str, ...], ...] = ()
    deprecated: bool = False
    idempotency: str | None = None
    """The header in which the API takes a key that makes repeating safe."""
    servers: bool = False
    """Whether the document has it served elsewhere than the rest."""


# --- reading


@cache
def _loader() -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # written in C, where it was built so
        """Scalars as JSON has them: ``no`` is a text, and a date is one, too."""

    wanted = {"tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool"}
    resolvers = Loader.yaml_implicit_resolvers.items()
    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] not in wanted] for first, pairs in resolvers
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), ["t", "f"])
    return Loader


def _parsed(data: bytes) -> Any:
    """What a text says, JSON or YAML. Raises anything: YAML's constructors do."""
    text = data.decode("utf-8-sig")
    try:
        return from_json(text)
    except ValueError:
        import yaml

        return yaml.load(text, Loader=_loader())


def read(data: bytes, where: str) -> dict[str, Any]:
    """The document in a text, JSON or YAML. Raises ConfigurationError, which says why it cannot be used."""
    if len(data) > DOCUMENT_BYTES:
        raise ConfigurationError(f"{where} has more than {DOCUMENT_BYTES:,} bytes")
    try:
        document = _parsed(data)
    except Exception as error:
        raise ConfigurationError(f"{where} is neither JSON nor YAML: {visible(str(error)[:300])}") from None
    version = document.get("openapi", document.get("swagger")) if isinstance(document, dict) else None
    if not isinstance(document, dict) or not re.match(r"3\.[01](\.|$)", str(version)):
        said = f"says version {str(version)[:20]!r}" if version is not None else "has no 'openapi'"
        raise ConfigurationError(f"{where} {said}; a document of OpenAPI 3.0 or 3.1 is needed")
    if not isinstance(document.get("paths"), dict):
        raise ConfigurationError(f"{where} has no 'paths', so there is nothing to call")
    return document


def bundled(root: dict[str, Any], file: Path) -> dict[str, Any]:
    """A document with the other files of its folder that it refers to in it; what cannot be read leads nowhere.

    Whoever named the file has meant its folder, and nothing outside: neither by ``..`` nor by a link.
    """
    file = file.resolve()
    others: dict[str, Any] = {}
    left, seen = DOCUMENT_BYTES, set[int]()
    todo: list[tuple[Any, Path]] = [(root, file)]
    while todo:
        node, place = todo.pop()
        if not isinstance(node, dict | list) or id(node) in seen:  # YAML has one node in several places
            continue
        seen.add(id(node))
        todo += [(item, place) for item in (node.values() if isinstance(node, dict) else node)]
        if not isinstance(node, dict) or not isinstance(reference := node.get("$ref"), str):
            continue
        address, _, pointer = reference.partition("#")
        target = (place.parent / unquote(address)).resolve() if address else place
        if "://" in address or not target.is_relative_to(file.parent):
            continue
        if target != file:
            name = str(target.relative_to(file.parent))
            if name not in others:
                try:
                    data = target.read_bytes() if target.stat().st_size <= left else b""
                    others[name] = _parsed(data)
                except Exception:  # an operation that needs it says so
                    data, others[name] = b"", None
                left -= len(data)
                todo.append((others[name], target))
            pointer = f"/{_OTHERS}/{name.replace('~', '~0').replace('/', '~1')}{pointer}"
        node["$ref"] = f"#{pointer}"
    return {**root, _OTHERS: others} if others else root


def server_of(document: Mapping[str, Any]) -> str:
    """The address that a document names first, with its variables' defaults; it may be relative."""
    servers = document.get("servers")
    first = _dict(servers[0]) if isinstance(servers, list) and servers else {}
    given = {name: _dict(item).get("default", "") for name, item in _dict(first.get("variables")).items()}
    return re.sub(r"\{([^{}]+)\}", lambda found: str(given.get(found[1], "")), str(first.get("url", "/")))


def snake(text: str) -> str:
    """``getPetById`` as ``get_pet_by_id``."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text)
    return re.sub(r"[^A-Za-z0-9]+", "_", parts).strip("_").lower()


class Document:
    """Finds its way in one document."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.old = str(root.get("openapi")).startswith("3.0")

    def at(self, reference: str) -> Any:
        """What a reference stands for. Raises ToolDefinitionError where that is not in the document."""
        if not reference.startswith("#/"):
            why = f"the reference {reference[:80]!r} leads out of the document or its folder, and nothing is fetched"
            raise ToolDefinitionError(f"{why}; put everything into one document")
        place: Any = self.root
        for step in unquote(reference[2:]).split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(place, list) and step.isdecimal() and int(step) < len(place):
                place = place[int(step)]
            elif isinstance(place, dict) and (step in place or (step.isdecimal() and int(step) in place)):
                place = place[step] if step in place else place[int(step)]
            else:
                raise ToolDefinitionError(f"the reference {reference[:80]!r} leads nowhere")
        return place

    def solved(self, node: Any) -> dict[str, Any]:
        """A node with its reference followed, and what stands beside it over that."""
        for _ in range(_HOPS):
            if not isinstance(node, dict):
                return {}
            if not isinstance(node.get("$ref"), str):
                return node
            beside = {key: value for key, value in node.items() if key in ("description", "summary")}
            target = self.at(node["$ref"])
            node = {**target, **beside} if isinstance(target, dict) else target
        raise ToolDefinitionError("a reference leads back to itself")

    def security_schemes(self) -> dict[str, Any]:
        schemes = self.solved(self.root.get("components")).get("securitySchemes")
        return schemes if isinstance(schemes, dict) else {}

    def operations(self, namespace: str) -> Iterator[Operation | tuple[str, str]]:
        """Each operation; or its name, and why it cannot be used."""
        taken: set[str] = set()
        for path, given in self.root["paths"].items():
            try:
                item = self.solved(given)
            except ToolDefinitionError as error:
                yield f"{namespace}.{snake(str(path))}", str(error)
                continue
            for method in _METHODS:
                if not isinstance(item.get(method), dict):
                    continue
                said = item[method]
                name = _free(_name(said.get("operationId"), method, str(path)), namespace, taken)
                taken.add(name)
                for loose in (False, True):
                    try:
                        yield _Lowered(self, item, said, loose=loose).operation(name, method, str(path))
                        break
                    except ToolDefinitionError as error:
                        if loose:
                            yield f"{namespace}.{name}", str(error)
                    except RecursionError:
                        yield f"{namespace}.{name}", "its schema is nested too deeply"
                        break
                    except (TypeError, ValueError, AttributeError, KeyError) as error:
                        yield f"{namespace}.{name}", f"the document does not say it as OpenAPI does: {error}"[:300]
                        break


def _name(given: Any, method: str, path: str) -> str:
    if isinstance(given, str) and snake(given):
        return snake(given)
    steps = [f"by_{snake(step)}" if step.startswith("{") else snake(step) for step in path.split("/") if step]
    return "_".join([method, *filter(None, steps)])


def _free(name: str, namespace: str, taken: set[str]) -> str:
    most = LONGEST_NAME_FOR_MODELS - len(namespace) - 1
    if len(name) > most:
        name = f"{name[: most - 9].rstrip('_')}_{digest(name)[:8]}"
    number, made = 1, name
    while made in taken:
        number += 1
        made = f"{name[: most - len(str(number)) - 1]}_{number}"
    return made


# --- lowering


class _Lowered:
    """Turns one operation's parameters and body into a schema of arguments. ``loose`` drops what may be misread."""

    def __init__(self, document: Document, item: Mapping[str, Any], said: Mapping[str, Any], *, loose: bool) -> None:
        self._document, self._item, self._said, self._loose = document, item, said, loose
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []
        self._names: dict[str, str] = {}
        self._waiting: deque[str] = deque()
        self._nodes = 0

    def operation(self, name: str, method: str, path: str) -> Operation:
        said = self._said
        placed, idempotency = [], None
        for parameter in self._parameters():
            if parameter["in"] == "header" and parameter["name"].lower() in IDEMPOTENCY:
                idempotency = parameter["name"]
            else:
                placed.append(self._placed(parameter))
        for wanted in re.findall(r"\{([^{}]+)\}", path):
            if not any(item.place == "path" and item.name == wanted for item in placed):
                argument = self._argument(wanted, "path", {"type": "string"}, required=True)
                placed.append(Placed(argument, wanted, "path", "simple", explode=False))
        body = self._body() if method not in ("get", "head") else None
        schema = {
            "type": "object",
            "properties": self._properties,
            "required": self._required,
            "additionalProperties": False,
        }
        if definitions := self._definitions():
            schema["$defs"] = definitions
        return Operation(
            id=said["operationId"] if isinstance(said.get("operationId"), str) else f"{method.upper()} {path}",
            name=name,
            method=method.upper(),
            path=path,
            description=self._description(method, path),
            placed=tuple(placed),
            body=body,
            schema=schema,
            checked=ForeignSchema(schema, where=f"{method.upper()} {path}"),
            security=tuple(self._security()),
            deprecated=said.get("deprecated") is True,
            idempotency=idempotency,
            servers=bool(said.get("servers") or self._item.get("servers")),
        )

    def _description(self, method: str, path: str) -> str:
        texts = [self._said.get("summary") or self._item.get("summary"), self._said.get("description")]
        plain = [_plain(text) for text in texts if isinstance(text, str) and text.strip()]
        text = plain[0] if len(plain) == 2 and plain[1].startswith(plain[0]) else "\n\n".join(plain)
        text = plain[1] if len(plain) == 2 and text == plain[0] else text
        return visible(text[:_DESCRIPTION_CHARS]) or f"{method.upper()} {path}, of which the document says no more."

    def _security(self) -> Iterator[tuple[str, ...]]:
        choices = self._said.get("security", self._document.root.get("security"))
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                yield tuple(map(str, choice))

    def _parameters(self) -> Iterator[dict[str, Any]]:
        parameters: dict[tuple[str, str], dict[str, Any]] = {}
        for listed in (self._item.get("parameters"), self._said.get("parameters")):
            for item in map(self._document.solved, listed if isinstance(listed, list) else ()):
                name, place = item.get("name"), item.get("in")
                if not isinstance(name, str) or place not in ("path", "query", "header", "cookie"):
                    continue
                if place != "header" or name.lower() not in _SET_BY_US:
                    parameters[name, place] = item
        return iter(parameters.values())

    def _placed(self, parameter: Mapping[str, Any]) -> Placed:
        name, place = parameter["name"], parameter["in"]
        content = _dict(parameter.get("content"))
        json = bool(content)
        schema = _dict(next(iter(content.values()))).get("schema") if json else parameter.get("schema")
        lowered = self._schema(schema)
        if isinstance(text := parameter.get("description"), str):
            lowered = {**lowered, "description": visible(_plain(text)[:_TEXT_CHARS])}
        required = place == "path" or parameter.get("required") is True
        argument = self._argument(name, place, lowered, required=required)
        style = parameter.get("style", "form" if place in ("query", "cookie") else "simple")
        explode = parameter.get("explode", style == "form")
        reserved = parameter.get("allowReserved") is True
        return Placed(argument, name, place, str(style), explode is True, reserved, json)

    def _argument(self, name: str, place: str, schema: Any, *, required: bool) -> str:
        safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_.-")[:LONGEST_NAME_FOR_MODELS] or place
        argument, number = safe, 1
        while argument in self._properties:
            argument = f"{place}_{safe}"[:60] if number == 1 else f"{place}_{safe}"[:56] + f"_{number}"
            number += 1
        schema = dict(schema) if isinstance(schema, dict) else {}
        if "default" in schema:  # the API fills it in: sent with a change, it could overwrite what is there
            note = f"Default: {canonical_json(schema.pop('default'))[:80]}"
            schema["description"] = f"{schema['description']} {note}" if schema.get("description") else note
        self._properties[argument] = schema
        if required:
            self._required.append(argument)
        return argument

    # --- bodies

    def _body(self) -> Body | None:
        given = self._document.solved(self._said.get("requestBody"))
        if not (content := _dict(given.get("content"))):
            return None
        kinds = sorted(((_kind(str(media)), str(media), item) for media, item in content.items()), key=_preference)
        kind, media, item = kinds[0]
        item, required = _dict(item), given.get("required") is True
        plain = self._plain_object(item.get("schema")) if kind in ("json", "form", "multipart") else None
        if plain is None or not (plain[0] or plain[1]) or (not required and plain[1]):
            if kind == "binary":
                lowered: Any = UPLOAD
            elif kind == "text":
                lowered = {"type": "string", "description": f"The body, as {media}."}
            else:
                lowered = self._schema(item.get("schema"))
            return Body(kind, media, None, self._argument("body", "request", lowered, required=required))
        fields = []
        described = plain[0] | {name: {} for name in sorted(plain[1] - plain[0].keys())}
        for name, schema in described.items():
            lowered = self._upload(schema) if kind == "multipart" else self._schema(schema)
            argument = self._argument(name, "body", lowered, required=name in plain[1])
            encoding = _dict(_dict(item.get("encoding")).get(name))
            json = "json" in str(encoding.get("contentType", ""))
            style = str(encoding.get("style", "form"))
            fields.append(Placed(argument, name, "body", style, encoding.get("explode", True) is True, json=json))
        return Body(kind, media, tuple(fields))

    def _plain_object(self, schema: Any) -> tuple[dict[str, Any], set[str]] | None:
        """The fields of a schema that is a plain object, without what is only read; and those it needs."""
        solved = self._document.solved(schema)
        parts: list[Any] = solved["allOf"] if isinstance(solved.get("allOf"), list) else []
        if any(key in solved for key in ("anyOf", "oneOf", "not", "if", "patternProperties", "discriminator")):
            return None
        extra = solved.get("additionalProperties")
        if isinstance(extra, dict) or (extra is True and not solved.get("properties")):
            return None
        fields: dict[str, Any] = {}
        needed: set[str] = set()
        for part in parts:
            if len(parts) > _HOPS or (plain := self._plain_object(part)) is None:
                return None
            fields |= plain[0]
            needed |= plain[1]
        fields |= {str(name): item for name, item in _dict(solved.get("properties")).items()}
        required = solved.get("required")
        needed |= {item for item in (required if isinstance(required, list) else ()) if isinstance(item, str)}
        read = {name for name, item in fields.items() if self._document.solved(item).get("readOnly")}
        return {name: item for name, item in fields.items() if name not in read}, needed - read

    def _upload(self, schema: Any) -> dict[str, Any]:
        solved = self._document.solved(schema)
        if _is_binary(solved):
            text = solved.get("description")
            return {**UPLOAD, "description": f"{text[:_TEXT_CHARS]} {UPLOAD['description']}"} if text else UPLOAD
        if solved.get("type") == "array" and _is_binary(self._document.solved(solved.get("items"))):
            return {"type": "array", "items": UPLOAD}
        lowered = self._schema(schema)
        return lowered if isinstance(lowered, dict) else {}

    # --- schemas

    def _definitions(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        size = 0
        while self._waiting:
            reference = self._waiting.popleft()
            lowered: Any = {} if size > _SCHEMA_BYTES else self._schema(self._document.at(reference))
            size += len(canonical_json(lowered))
            # What is farthest from the arguments themselves is left to the API.
            made[self._names[reference]] = lowered if size <= _SCHEMA_BYTES else {}
        return made

    def _named(self, reference: str) -> str:
        if reference not in self._names:
            self._document.at(reference)
            last = re.sub(r"[^A-Za-z0-9_.-]", "_", unquote(reference).rpartition("/")[2])[:60] or "value"
            taken = set(self._names.values())
            name = next(each for number in range(len(taken) + 1) if (each := f"{last}{number or ''}") not in taken)
            self._names[reference] = name
            self._waiting.append(reference)
        return self._names[reference]

    def _schema(self, node: Any, depth: int = 0) -> Any:
        """A schema of the document as JSON Schema, 2020-12."""
        self._nodes += 1
        if self._nodes > _NODES:
            raise ToolDefinitionError("its schema is too large")
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict) or depth > _DEPTH:
            return {}
        if isinstance(node.get("$ref"), str):
            made: dict[str, Any] = {"$ref": f"#/$defs/{self._named(node['$ref'])}"}
            if isinstance(text := node.get("description"), str):
                made["description"] = visible(_plain(text)[:_TEXT_CHARS])
            return self._nullable(node, made)
        made = {key: value for key, value in node.items() if key not in _DROPPED and key[:1] != "$" and key[:2] != "x-"}
        for key in ("title", "description"):
            if key in made:
                made[key] = visible(_plain(str(made[key]))[:_TEXT_CHARS])
        if self._loose:
            for key in ("pattern", "format", "default"):
                made.pop(key, None)
        made |= {key: self._schema(node[key], depth + 1) for key in _ONE if isinstance(node.get(key), dict | bool)}
        for key in _MANY:
            if isinstance(node.get(key), list) and node[key]:
                made[key] = [self._schema(item, depth + 1) for item in node[key]]
        for key in _NAMED:
            if isinstance(node.get(key), dict):
                made[key] = {str(name): self._schema(item, depth + 1) for name, item in node[key].items()}
        if isinstance(fields := node.get("properties"), dict):
            read = {n for n, item in fields.items() if isinstance(item, dict) and item.get("readOnly") is True}
            made["properties"] = {name: item for name, item in made["properties"].items() if name not in read}
            needed = node.get("required")
            made["required"] = [name for name in needed if name not in read] if isinstance(needed, list) else None
        if not isinstance(made.get("required", []), list) or not made.get("required", True):
            made.pop("required")
        return self._nullable(node, self._bounds(made))

    def _bounds(self, made: dict[str, Any]) -> dict[str, Any]:
        """Bounds that are excluded, as numbers; 3.0 says so beside the bound."""
        for side in ("maximum", "minimum"):
            exclusive = f"exclusive{side.title()}"
            if isinstance(made.get(exclusive), bool) and made.pop(exclusive) and side in made:
                made[exclusive] = made.pop(side)
        return made

    def _nullable(self, node: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
        if not self._document.old or node.get("nullable") is not True:
            return made
        if not isinstance(made.get("type"), str) or "enum" in made:
            return {"anyOf": [made, {"type": "null"}]}
        return {**made, "type": [made["type"], "null"]}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_binary(schema: Mapping[str, Any]) -> bool:
    media = schema.get("contentMediaType") is not None and schema.get("contentEncoding") is None
    return schema.get("type", "string") == "string" and (schema.get("format") == "binary" or media)


def _kind(media: str) -> Literal["json", "form", "multipart", "text", "binary"]:
    bare = media.partition(";")[0].strip().lower()
    if bare in ("application/json", "*/*", "application/*") or bare.endswith("+json"):
        return "json"
    if bare == "application/x-www-form-urlencoded":
        return "form"
    if bare.startswith("multipart/"):
        return "multipart"
    return "text" if bare.startswith("text/") or bare.endswith(("xml", "yaml", "graphql")) else "binary"


def _preference(content: tuple[str, str, Any]) -> int:
    kind, media, _ = content
    order = ["json", "form", "multipart", "text", "binary"].index(kind)
    return 2 * order + (kind == "json" and not media.startswith("application/json"))


def _plain(text: str) -> str:
    """A description without markup."""
    return re.sub(r"</?[A-Za-z][^<>]{0,200}>", "", text).strip()

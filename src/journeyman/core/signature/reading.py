"""Reading a signature in either form. What the forms are is told in the package's docstring."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from journeyman.core.signature.scanning import MAX_DEPTH, Scanner

_MAX_TYPE_DEPTH = MAX_DEPTH // 2 - 1
"""A record is two levels of JSON: what can be read must also be writable."""

_PARAMETER_KEYS = ("items", "enum", "default", "optional", "title", "description", "schema")
_RETURN_KEYS = ("items", "enum", "title", "description", "schema", "parameters")
_ANNOTATIONS = ("items", "enum", "default", "title", "description")

_VALUE_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "enum": ((list,), "an array"),
    "optional": ((bool,), "true or false"),
    "title": ((str,), "a string"),
    "description": ((str,), "a string"),
    "schema": ((dict, bool), "the schema's other keywords, json`{…}`"),
    "parameters": ((dict,), "the parameters' root schema, json`{…}`"),
}

_BEGINS_A_PATH = re.compile(r"\s*\(\s*(?:`|\{|(?:[A-Za-z_][0-9A-Za-z_.\-@]*\s*)?::|\)\s*(?:$|==>))")


@dataclass(frozen=True)
class Signature:
    """What a signature says: the parameters' object schema, and the result's schema or None where nothing is said."""

    parameters: dict[str, Any]
    returns: dict[str, Any] | None


@dataclass
class _Node:
    start: int
    name: str | None
    typed: bool = False
    type: str | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)


def read_signature(text: str) -> Signature:
    """Read the path form or the text form; SignatureError says where it went wrong and what was expected."""
    scanner = Scanner(text)
    return _path(scanner) if _BEGINS_A_PATH.match(text) else _text(scanner)


def signature_schema(text: str) -> dict[str, Any]:
    """The JSON Schema of a signature's parameters."""
    return read_signature(text).parameters


# -- the path form


def _path(scanner: Scanner) -> Signature:
    properties: dict[str, Any] = {}
    required: list[str] = []
    while (node := _node(scanner)).name is not None:
        if node.name in properties:
            scanner.fail(f"parameter {node.name!r} appears twice", expected="another name", at=node.start + 1)
        properties[node.name] = _schema(scanner, node)
        if not node.properties.get("optional", "default" in node.properties):
            required.append(node.name)
        scanner.expect("==>", expected="'==>' and another node; the last one, without a name, is the return type")
    if scanner.sees("==>"):
        scanner.fail("a parameter without a name", expected="a name before '::'", at=node.start + 1)
    scanner.end()
    root = _root(scanner, node, properties, required)
    return Signature(root, _schema(scanner, node) if node.typed else None)


def _node(scanner: Scanner) -> _Node:
    scanner.expect("(")
    start = scanner.at - 1
    name = scanner.quoted("`") if scanner.sees("`") else scanner.word()
    node = _Node(start, name)
    if scanner.take("::"):
        node.typed, node.type = True, scanner.type_name()
    elif name is not None:
        scanner.fail(scanner.found(), expected=f"'::' and the type of {name!r}")
    if scanner.take("{"):
        _properties(scanner, node)
    scanner.expect(")")
    return node


def _properties(scanner: Scanner, node: _Node) -> None:
    keys: tuple[str, ...] = _RETURN_KEYS if node.name is None else _PARAMETER_KEYS
    if not node.typed:
        keys = ("parameters",)
    if scanner.take("}"):
        return
    while True:
        scanner.skip()
        place, key = scanner.at, scanner.word()
        if key is None or key not in keys:
            found = f"unknown property {key!r}" if key else scanner.found()
            scanner.fail(found, expected=f"a property: {', '.join(keys)}", at=place)
        if key in node.properties:
            scanner.fail(f"property {key!r} appears twice", expected="each property once", at=place)
        scanner.expect(":")
        scanner.skip()
        node.places[key] = scanner.at
        node.properties[key] = _value(scanner, key)
        if scanner.take("}"):
            return
        scanner.expect(",", expected="',' or '}'")


def _value(scanner: Scanner, key: str) -> Any:
    place = scanner.at
    if key == "items":
        return _element_type(scanner)
    value = _array(scanner) if scanner.take("[") else scanner.scalar()
    kinds, expected = _VALUE_KINDS.get(key, ((object,), ""))
    if not isinstance(value, kinds):
        scanner.fail(f"property {key!r} has a value of the wrong kind", expected=expected, at=place)
    return value


def _array(scanner: Scanner) -> list[Any]:
    values = [scanner.scalar()]
    while not scanner.take("]"):
        scanner.expect(",", expected="',' or ']'")
        values.append(scanner.scalar())
    return values


def _element_type(scanner: Scanner) -> dict[str, Any]:
    quote = next((each for each in "\"'" if scanner.take(each)), None)
    kind = scanner.type_name()
    if quote and not scanner.text.startswith(quote, scanner.at):
        scanner.fail(scanner.found(), expected=f"a closing {quote} right after the type's name")
    scanner.at += 1 if quote else 0
    return {} if kind is None else {"type": kind}


def _schema(scanner: Scanner, node: _Node) -> Any:
    """A node's JSON Schema: its type, its plain properties, and the keywords its ``schema`` holds."""
    schema: dict[str, Any] = {} if node.type is None else {"type": node.type}
    schema |= {key: node.properties[key] for key in _ANNOTATIONS if key in node.properties}
    if "items" in schema and node.type != "array":
        scanner.fail("'items' on a type that has none", expected="the type Array", at=node.places["items"])
    rest = node.properties.get("schema", {})
    if isinstance(rest, bool):
        if schema:
            scanner.fail("a boolean schema says everything", expected="Any alone", at=node.places["schema"])
        return rest
    if twice := schema.keys() & rest.keys():
        scanner.fail(f"{min(twice)!r} is said twice", expected="each keyword once", at=node.places["schema"])
    return schema | rest


def _root(scanner: Scanner, node: _Node, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """The parameters' schema: what the path says, and what the last node's ``parameters`` adds."""
    root: dict[str, Any] = dict(node.properties.get("parameters", {"type": "object", "properties": {}}))
    if not properties:
        return root
    place = node.places.get("parameters")
    more, also = root.get("properties", {}), root.get("required", [])
    if not isinstance(more, dict) or not isinstance(also, list):
        scanner.fail("a root schema that parameters cannot join", expected="an object's JSON Schema", at=place)
    if twice := properties.keys() & more.keys():
        scanner.fail(f"parameter {min(twice)!r} appears twice", expected="each parameter once", at=place)
    root["properties"] = properties | more
    if required or also:
        root["required"] = required + also
    return root


# -- the text form


def _text(scanner: Scanner) -> Signature:
    scanner.expect("(", expected="'(' and the parameters")
    parameters = _fields(scanner, close=")", depth=0)
    if not (scanner.take("-->") or scanner.take("->")):
        scanner.fail(scanner.found(), expected="'-->' and the return type (a path has '::' before each type)")
    returns, _ = _type(scanner, depth=0)
    scanner.end()
    return Signature(parameters, returns)


def _fields(scanner: Scanner, *, close: str, depth: int) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    while properties or not scanner.take(close):
        scanner.skip()
        place, name = scanner.at, scanner.word()
        if name is None:
            scanner.fail(scanner.found(), expected="a name, as in 'name: Text'", at=place)
        if name in properties:
            scanner.fail(f"{name!r} appears twice", expected="another name", at=place)
        scanner.expect(":", expected=f"':' and the type of {name!r}")
        properties[name], optional = _type(scanner, depth=depth)
        if not optional:
            required.append(name)
        if scanner.take(close):
            break
        scanner.expect(",", expected=f"',' or {close!r}")
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | {"required": required} if required else schema


def _type(scanner: Scanner, *, depth: int) -> tuple[dict[str, Any], bool]:
    """A type's schema, and whether it is a ``Maybe``."""
    if depth > _MAX_TYPE_DEPTH:
        scanner.fail("types that nest too deeply", expected=f"at most {_MAX_TYPE_DEPTH} levels")
    if scanner.take("["):
        items, _ = _type(scanner, depth=depth + 1)
        scanner.expect("]")
        return {"type": "array", "items": items}, False
    if scanner.take("{"):
        return _fields(scanner, close="}", depth=depth + 1), False
    if scanner.take("("):
        if scanner.take(")"):
            return {"type": "null"}, False
        inner = _type(scanner, depth=depth + 1)
        scanner.expect(")")
        return inner
    scanner.skip()
    place, word = scanner.at, scanner.word()
    if word in ("IO", "Maybe"):
        schema, optional = _type(scanner, depth=depth + 1)
        return schema, optional or word == "Maybe"
    scanner.at = place
    kind = scanner.type_name()
    return ({} if kind is None else {"type": kind}), False

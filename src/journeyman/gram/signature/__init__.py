"""Type signatures of tools: text that people read and diff, JSON Schema that models and validators read.

**The path form** is gram: a chain of nodes, one per parameter, ending in a node without a name, the return type.

    (name::String)==>(age::Integer {default: 1})==>(::String)

* Types: String (Text), Integer (Int), Number (Double, Float), Boolean (Bool), Array, Object, Null, Any (Value).
* ``(::String)`` alone has no parameters. ``()`` as the last node says nothing about the return; ``(::Any)`` says
  that anything may come back.
* A name that is no gram symbol stands in backticks: ``(`first name`::String)``.
* A node's properties: ``items`` (an Array's element type, ``items: "String"``), ``enum`` (an array of scalars),
  ``default`` (makes a parameter optional), ``optional`` (true: optional without a default; false: required in spite
  of one), ``title``, ``description``.
* What these cannot say is JSON in a tagged string: ``schema`` holds the schema's other keywords,
  ``` (age::Integer {schema: json`{"minimum": 0}`}) ```, and any value may be one: ``` {default: json`null`} ```.
* ``parameters`` on the last node holds what belongs to no single parameter, such as ``$defs``. Given, it is the
  parameters' root schema, to which the path's parameters are added; not given, the root is ``{"type": "object"}``.
* Strings are double- or single-quoted on one line; escapes are ``\\b \\f \\n \\r \\t \\/ \\\\`` and the quote. No
  comments, no other arrows, labels or values of gram.

**The text form** is the older one: ``(name: Text, tags: [Text], age: Maybe Int) --> IO Text``. It adds ``[T]``,
records ``{field: T}``, and ``Maybe T``: T, not required (null is not added; where nothing can be left out, it is just
T). ``IO T`` is T, ``()`` is no parameters or a null return, ``->`` is as good as ``-->``.

Optional means: not in ``required``. A root's ``additionalProperties: false`` is not written, and comparing takes it as
unsaid: whether unknown arguments are refused is the executor's business, not the signature's.

This module writes; `reading` and `comparing` are loaded when they are needed: every tool has its signature written, but
most programs never read or compare one.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from journeyman.core.errors import SignatureError, shortened_json
from journeyman.gram.references import outside_reference

if TYPE_CHECKING:
    from journeyman.gram.signature.comparing import same_schema, schema_differences
    from journeyman.gram.signature.reading import Signature, read_signature, signature_schema

__all__ = ["Signature", "completed", "outside_reference", "read_signature", "same_schema", "schema_differences"]
__all__ += ["signature_schema", "write_signature"]

MAX_DEPTH = 100
"""How deeply types and JSON values may nest: more than any honest signature, less than Python's stack."""

LABELS = {kind: kind.capitalize() for kind in ("string", "integer", "number", "boolean", "array", "object", "null")}
"""JSON Schema's types and what we write for them; ``Any`` is written for a schema without a type."""

SYMBOL = re.compile(r"[A-Za-z_][0-9A-Za-z_.\-@]*")

_AWKWARD = re.compile("[\x00-\x07\x0b\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
"""Characters that gram cannot hold, or that editors and files do not keep; JSON can escape them."""

_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_TO_ESCAPE = re.compile(r'["`\\\n\r\t\b\f]')
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_COMMENT_LIKE = re.compile("[ \x0b]*//")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "comparing" if name in ("same_schema", "schema_differences") else "reading"
    return getattr(import_module(f"{__name__}.{home}"), name)


def write_signature(parameters: dict[str, Any], returns: dict[str, Any] | None) -> str:
    """The canonical path form of a tool's parameters (an object's JSON Schema) and of its result."""
    properties, required = parameters.get("properties", {}), parameters.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        raise _refused("the parameters' schema has 'properties' or 'required' of the wrong kind")
    nodes: list[str] = []
    hidden: dict[str, Any] = {}
    for name, schema in properties.items():
        try:
            if _AWKWARD.search(name):
                hidden[name] = schema
            else:
                nodes.append(_parameter(name, schema, required=name in required))
        except (TypeError, ValueError, RecursionError) as error:
            raise _refused(f"parameter {name!r} cannot be written: {error}") from error
    try:
        also = [name for name in required if name not in properties or name in hidden]
        nodes.append(_last(_root(parameters, hidden, also), returns))
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(f"the signature's last node cannot be written: {error}") from error
    return "==>".join(nodes)


def completed(data: dict[str, Any]) -> dict[str, Any]:
    """The fields of a tool's specification with a schema for its signature, or a signature for its schema."""
    if not isinstance(text := data.get("signature") or "", str):
        return data
    parameters = data.get("parameters")
    if not text:
        if parameters is not None and (not isinstance(parameters, dict) or parameters.get("type") != "object"):
            raise ValueError(f"parameters: must be a JSON Schema of type 'object', got {shortened_json(parameters)}")
        try:
            return {**data, "signature": write_signature(parameters or {"type": "object"}, data.get("returns"))}
        except SignatureError as error:
            raise ValueError(f"parameters: {str(error).removeprefix('1:1: ')}") from error
    from journeyman.gram.signature import read_signature, schema_differences  # not needed by tools made in Python

    try:
        made_of = read_signature(text)
    except SignatureError as error:
        raise ValueError(f"signature: {error}, got {shortened_json(text)}") from error
    if parameters is None:
        return {"returns": made_of.returns, **data, "parameters": made_of.parameters}
    if differences := schema_differences(made_of.parameters, parameters):
        raise ValueError(f"parameters: do not agree with the signature {text!r}: {'; '.join(differences)}")
    return {"returns": made_of.returns, **data}


def _refused(message: str) -> SignatureError:
    return SignatureError(message, line=1, column=1, expected="JSON Schema made of plain JSON values")


def _parameter(name: str, schema: Any, *, required: bool) -> str:
    label, said, rest = _parts(schema, keys=("items", "enum", "default", "title", "description"))
    if required == ("default" in said):
        said["optional"] = "false" if required else "true"
    identifier = name if SYMBOL.fullmatch(name) else quoted(name, "`")
    return f"({identifier}::{label}{_record(said, rest)})"


def _last(root: dict[str, Any] | None, returns: dict[str, Any] | None) -> str:
    record = "" if root is None else f"parameters: {_json(root)}"
    if returns is None:
        return f"({{{record}}})" if record else "()"
    label, said, rest = _parts(returns, keys=("items", "enum", "title", "description"))
    if root is not None:
        said["parameters"] = _json(root)
    return f"(::{label}{_record(said, rest)})"


def _root(parameters: dict[str, Any], hidden: dict[str, Any], also: list[str]) -> dict[str, Any] | None:
    """What the parameters' schema says beyond its path, or None where that goes without saying."""
    root = {key: value for key, value in parameters.items() if key not in ("properties", "required")}
    if hidden:
        root["properties"] = hidden
    if also:
        root["required"] = also
    usual = root in ({"type": "object"}, {"type": "object", "additionalProperties": False})
    return None if usual else root


def _parts(schema: Any, *, keys: tuple[str, ...]) -> tuple[str, dict[str, str], Any]:
    """A schema's label, the properties that can be written plainly, and the rest, for JSON."""
    if isinstance(schema, bool):
        return "Any", {}, schema
    if not isinstance(schema, dict):
        raise TypeError(f"{schema!r} is not a JSON Schema")
    label = "Any"
    plain: dict[str, str] = {}
    rest: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str) and value in LABELS:
            label = LABELS[value]
        elif key in keys and (text := _plain(key, value, schema)) is not None:
            plain[key] = text
        else:
            rest[key] = value
    return label, {key: plain[key] for key in keys if key in plain}, rest


def _plain(key: str, value: Any, schema: dict[str, Any]) -> str | None:
    if key == "default":
        return _literal(value)
    if key == "enum":
        return _literal(value) if isinstance(value, list) else None
    if key == "items":
        return _element_type(value) if schema.get("type") == "array" else None
    return _literal(value) if isinstance(value, str) else None


def _element_type(schema: Any) -> str | None:
    if schema == {}:
        return '"Any"'
    kind = schema.get("type") if isinstance(schema, dict) and len(schema) == 1 else None
    return f'"{LABELS[kind]}"' if isinstance(kind, str) and kind in LABELS else None


def _record(said: dict[str, str], rest: Any) -> str:
    entries = [f"{key}: {text}" for key, text in said.items()]
    if rest != {}:
        entries.append(f"schema: {_json(rest)}")
    return f" {{{', '.join(entries)}}}" if entries else ""


def _literal(value: Any) -> str:
    if isinstance(value, list) and value:
        texts = [text for each in value if (text := _scalar(each)) is not None]
        if len(texts) == len(value):
            return f"[{', '.join(texts)}]"
    return _scalar(value) or _json(value)


def _scalar(value: Any) -> str | None:
    """A scalar as gram has it, or None where gram has no such thing."""
    if isinstance(value, str):
        return None if _AWKWARD.search(value) else quoted(value, '"')
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float) and _DECIMAL.fullmatch(text := repr(value)):
        return text
    return None


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if _AWKWARD.search(text):
        text = json.dumps(value, allow_nan=False)
    if depth_exceeded(value):
        raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
    return "json" + quoted(text, "`")


def depth_exceeded(value: Any, *, levels: int = MAX_DEPTH) -> bool:
    """Whether a JSON value nests deeper than so many levels."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (levels == 0 or any(depth_exceeded(each, levels=levels - 1) for each in inner))


def quoted(text: str, quote: str) -> str:
    """A text between two of these quotes, as gram has it."""
    escapes = {**_ESCAPES, quote: f"\\{quote}"}
    escaped = _TO_ESCAPE.sub(lambda found: escapes.get(found[0], found[0]), text)
    # gram takes what begins with // for a comment, even between quotes
    if _COMMENT_LIKE.match(text):
        escaped = escaped.replace("//", "/\\/", 1)
    return f"{quote}{escaped}{quote}"


def unescaped(body: str) -> str:
    """What stands between quotes, as the text it means."""
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), body) if "\\" in body else body

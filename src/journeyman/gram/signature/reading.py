"""Reading a signature in either form. What the forms are is described in the package's docstring."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from journeyman.core.errors import SignatureError
from journeyman.gram.signature import LABELS, MAX_DEPTH, SYMBOL, depth_exceeded, unescaped

_MAX_TYPE_DEPTH = MAX_DEPTH // 2 - 1
"""A record is two levels of JSON: what can be read must also be writable."""

_ALIASES = {"Text": "string", "Int": "integer", "Double": "number", "Float": "number", "Bool": "boolean"}
_TYPES: dict[str, dict[str, Any]] = {
    **{label: {"type": kind} for kind, label in LABELS.items()},
    **{alias: {"type": kind} for alias, kind in _ALIASES.items()},
    "Any": {},
    "Value": {},
}

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

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?(?![0-9A-Za-z_.])")
_QUOTED = {
    quote: re.compile(rf"{quote}((?:\\[{quote}bfnrt/\\]|[^{quote}\\\n\0\ud800-\udfff])*){quote}") for quote in "\"'`"
}
_COMMENT_LIKE = re.compile(r"[ \t\r\f\v]*//")


@dataclass(frozen=True)
class Signature:
    """What a signature says: the parameters' object schema, and the result's schema or None where nothing is said."""

    parameters: dict[str, Any]
    returns: dict[str, Any] | None


@dataclass
class _Node:
    start: int
    name: str | None
    type: dict[str, Any] | None = None
    """The schema of its type; None where no type stands there."""
    properties: dict[str, Any] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)


def read_signature(text: str) -> Signature:
    """Read the path form or the text form; SignatureError says where it went wrong and what was expected."""
    scanner = _Scanner(text)
    return _path(scanner) if _BEGINS_A_PATH.match(text) else _text(scanner)


def signature_schema(text: str) -> dict[str, Any]:
    """The JSON Schema of a signature's parameters."""
    return read_signature(text).parameters


# -- the path form


def _path(scanner: _Scanner) -> Signature:
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
    return Signature(root, None if node.type is None else _schema(scanner, node))


def _node(scanner: _Scanner) -> _Node:
    scanner.expect("(")
    start = scanner.at - 1
    name = scanner.quoted("`") if scanner.sees("`") else scanner.word()
    node = _Node(start, name)
    if scanner.take("::"):
        node.type = scanner.type_schema()
    elif name is not None:
        scanner.fail(scanner.found(), expected=f"'::' and the type of {name!r}")
    if scanner.take("{"):
        _properties(scanner, node)
    scanner.expect(")")
    return node


def _properties(scanner: _Scanner, node: _Node) -> None:
    keys: tuple[str, ...] = _RETURN_KEYS if node.name is None else _PARAMETER_KEYS
    if node.type is None:
        keys = ("parameters",)
    for place in scanner.items("}"):
        key = scanner.word()
        if key is None or key not in keys:
            what = f"unknown property {key!r}" if key else scanner.found()
            scanner.fail(what, expected=f"a property: {', '.join(keys)}", at=place)
        if key in node.properties:
            scanner.fail(f"property {key!r} appears twice", expected="each property once", at=place)
        scanner.expect(":")
        scanner.skip()
        node.places[key] = scanner.at
        node.properties[key] = _value(scanner, key)


def _value(scanner: _Scanner, key: str) -> Any:
    place = scanner.at
    if key == "items":
        return _element_type(scanner)
    value = _array(scanner) if scanner.take("[") else scanner.scalar()
    kinds, expected = _VALUE_KINDS.get(key, ((object,), ""))
    if not isinstance(value, kinds):
        scanner.fail(f"property {key!r} has a value of the wrong kind", expected=expected, at=place)
    return value


def _array(scanner: _Scanner) -> list[Any]:
    values = [scanner.scalar()]
    while not scanner.take("]"):
        scanner.expect(",", expected="',' or ']'")
        values.append(scanner.scalar())
    return values


def _element_type(scanner: _Scanner) -> dict[str, Any]:
    quote = next((each for each in "\"'" if scanner.take(each)), None)
    schema = scanner.type_schema()
    if quote and not scanner.text.startswith(quote, scanner.at):
        scanner.fail(scanner.found(), expected=f"a closing {quote} right after the type's name")
    scanner.at += 1 if quote else 0
    return schema


def _schema(scanner: _Scanner, node: _Node) -> Any:
    """A node's JSON Schema: its type, its plain properties, and the keywords its ``schema`` holds."""
    schema = {**(node.type or {}), **{key: node.properties[key] for key in _ANNOTATIONS if key in node.properties}}
    if "items" in schema and schema.get("type") != "array":
        scanner.fail("'items' on a type that has none", expected="the type Array", at=node.places["items"])
    rest = node.properties.get("schema", {})
    if isinstance(rest, bool):
        if schema:
            scanner.fail("a boolean schema says everything", expected="Any alone", at=node.places["schema"])
        return rest
    if twice := schema.keys() & rest.keys():
        scanner.fail(f"{min(twice)!r} is said twice", expected="each keyword once", at=node.places["schema"])
    return schema | rest


def _root(scanner: _Scanner, node: _Node, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
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


def _text(scanner: _Scanner) -> Signature:
    scanner.expect("(", expected="'(' and the parameters")
    parameters = _fields(scanner, close=")", depth=0)
    if not (scanner.take("-->") or scanner.take("->")):
        scanner.fail(scanner.found(), expected="'-->' and the return type (a path has '::' before each type)")
    returns, _ = _type(scanner, depth=0)
    scanner.end()
    return Signature(parameters, returns)


def _fields(scanner: _Scanner, *, close: str, depth: int) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for place in scanner.items(close):
        name = scanner.word()
        if name is None:
            scanner.fail(scanner.found(), expected="a name, as in 'name: Text'", at=place)
        if name in properties:
            scanner.fail(f"{name!r} appears twice", expected="another name", at=place)
        scanner.expect(":", expected=f"':' and the type of {name!r}")
        properties[name], optional = _type(scanner, depth=depth)
        if not optional:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema | {"required": required} if required else schema


def _type(scanner: _Scanner, *, depth: int) -> tuple[dict[str, Any], bool]:
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
    return scanner.type_schema(), False


# -- names, literals, and errors that know their place


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]}… is out of range")
    return number


def no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


class _Scanner:
    """A text and a place in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, message: str, *, expected: str, at: int | None = None) -> NoReturn:
        """Raise the error that belongs to this place, or to the given one."""
        place = self.at if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - (self.text.rfind("\n", 0, place) + 1) + 1
        raise SignatureError(message, line=line, column=column, expected=expected)

    def found(self) -> str:
        """What stands here, for messages."""
        self.skip()
        if self.at >= len(self.text):
            return "the signature ends here"
        word = SYMBOL.match(self.text, self.at)
        return f"found {word.group()[:40] if word else self.text[self.at]!r}"

    def skip(self) -> None:
        space = _SPACE.match(self.text, self.at)
        if space:
            self.at = space.end()

    def sees(self, token: str) -> bool:
        self.skip()
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        if not self.sees(token):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str, *, expected: str | None = None) -> None:
        if not self.take(token):
            self.fail(self.found(), expected=expected or repr(token))

    def items(self, close: str) -> Iterator[int]:
        """The place of each item up to a closing bracket; the commas between them are taken on the way."""
        more = not self.take(close)
        while more:
            self.skip()
            yield self.at
            more = not self.take(close)
            if more:
                self.expect(",", expected=f"',' or {close!r}")

    def end(self) -> None:
        """Nothing may follow."""
        self.skip()
        if self.at < len(self.text):
            self.fail(f"{self.found()} after the return type", expected="the end of the signature")

    def word(self) -> str | None:
        """A gram symbol, if one stands here."""
        self.skip()
        symbol = SYMBOL.match(self.text, self.at)
        if symbol is None:
            return None
        self.at = symbol.end()
        return symbol.group()

    def quoted(self, quote: str) -> str:
        """A string between two of these quotes; the first one is known to stand here."""
        match = _QUOTED[quote].match(self.text, self.at)
        if match is None:
            self.fail(
                "a string that does not end on its line, or holds a wrong escape or a character gram cannot hold",
                expected=f"a closing {quote} (escapes are \\{quote} \\b \\f \\n \\r \\t \\/ \\\\)",
            )
        raw = match.group(1)
        if _COMMENT_LIKE.match(raw):
            self.fail("a string that gram takes for a comment", expected="'/\\/' in place of '//' at its beginning")
        self.at = match.end()
        return unescaped(raw)

    def type_schema(self) -> dict[str, Any]:
        """The schema of the type that is named here."""
        self.skip()
        start, word = self.at, self.word()
        if word is None or word not in _TYPES:
            self.at = start
            self.fail(
                f"unknown type {word!r}" if word else self.found(), expected=f"a type: {', '.join(_TYPES)}", at=start
            )
        return dict(_TYPES[word])

    def scalar(self) -> Any:
        """A string, a number, a boolean, or JSON in a tagged string."""
        self.skip()
        start, here = self.at, self.text[self.at : self.at + 1]
        if here and here in "\"'":
            return self.quoted(here)
        number = _NUMBER.match(self.text, start)
        if number:
            self.at = number.end()
            try:
                return _finite(number.group()) if number.group(1) else int(number.group())
            except ValueError:
                self.fail("a number out of range", expected="a number that fits", at=start)
        word = self.word()
        if word == "json" and self.text.startswith("`", self.at):
            return self._json(start)
        if word not in ("true", "false"):
            self.at = start
            self.fail(self.found(), expected="a string, a number, true, false or json`…`")
        return word == "true"

    def _json(self, start: int) -> Any:
        text = self.quoted("`")
        try:
            value = json.loads(text, parse_float=_finite, parse_constant=no_constant)
        except RecursionError:
            self.fail("JSON that nests too deeply", expected=f"at most {MAX_DEPTH} levels", at=start)
        except ValueError as error:
            self.fail(f"a json`…` string that cannot be read ({error})", expected="JSON", at=start)
        if depth_exceeded(value):
            self.fail("JSON that nests too deeply", expected=f"at most {MAX_DEPTH} levels", at=start)
        return value

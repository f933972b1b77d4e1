"""The words both forms of a signature are made of: names, literals, and errors that know their place."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from journeyman.core.errors import SignatureError

MAX_DEPTH = 100
"""How deeply types and JSON values may nest: more than any honest signature, less than Python's stack."""

LABELS = {
    "string": "String",
    "integer": "Integer",
    "number": "Number",
    "boolean": "Boolean",
    "array": "Array",
    "object": "Object",
    "null": "Null",
}
"""JSON Schema's types and what we write for them; ``Any`` is written for a schema without a type."""

TYPES: dict[str, str | None] = {
    **{label: kind for kind, label in LABELS.items()},
    "Text": "string",
    "Int": "integer",
    "Double": "number",
    "Float": "number",
    "Bool": "boolean",
    "Any": None,
    "Value": None,
}

SYMBOL = re.compile(r"[A-Za-z_][0-9A-Za-z_.\-@]*")

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?(?![0-9A-Za-z_.])")
_QUOTED = {
    quote: re.compile(rf"{quote}((?:\\[{quote}bfnrt/\\]|[^{quote}\\\n\0\ud800-\udfff])*){quote}") for quote in "\"'`"
}
_COMMENT_LIKE = re.compile(r"[ \t\r\f\v]*//")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def depth_exceeded(value: Any, *, levels: int = MAX_DEPTH) -> bool:
    """Whether a JSON value nests deeper than so many levels."""
    if isinstance(value, dict):
        return levels == 0 or any(depth_exceeded(each, levels=levels - 1) for each in value.values())
    if isinstance(value, list):
        return levels == 0 or any(depth_exceeded(each, levels=levels - 1) for each in value)
    return False


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]}… is out of range")
    return number


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


class Scanner:
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
        found = _SPACE.match(self.text, self.at)
        if found:
            self.at = found.end()

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

    def end(self) -> None:
        """Nothing may follow."""
        self.skip()
        if self.at < len(self.text):
            self.fail(f"{self.found()} after the return type", expected="the end of the signature")

    def word(self) -> str | None:
        """A gram symbol, if one stands here."""
        self.skip()
        found = SYMBOL.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group()

    def quoted(self, quote: str) -> str:
        """A string between two of these quotes; the first one is known to stand here."""
        found = _QUOTED[quote].match(self.text, self.at)
        if found is None:
            self.fail(
                "a string that does not end on its line, or holds a wrong escape or a character gram cannot hold",
                expected=f"a closing {quote} (escapes are \\{quote} \\b \\f \\n \\r \\t \\/ \\\\)",
            )
        raw = found.group(1)
        if _COMMENT_LIKE.match(raw):
            self.fail("a string that gram takes for a comment", expected="'/\\/' in place of '//' at its beginning")
        self.at = found.end()
        return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape.group(1), escape.group(1)), raw)

    def type_name(self) -> str | None:
        """A type's name, as a JSON Schema type; None is any type."""
        self.skip()
        start, word = self.at, self.word()
        if word is None or word not in TYPES:
            self.at = start
            self.fail(
                f"unknown type {word!r}" if word else self.found(), expected=f"a type: {', '.join(TYPES)}", at=start
            )
        return TYPES[word]

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
            value = json.loads(text, parse_float=_finite, parse_constant=_no_constant)
        except RecursionError:
            self.fail("JSON that nests too deeply", expected=f"at most {MAX_DEPTH} levels", at=start)
        except ValueError as error:
            self.fail(f"a json`…` string that cannot be read ({error})", expected="JSON", at=start)
        if depth_exceeded(value):
            self.fail("JSON that nests too deeply", expected=f"at most {MAX_DEPTH} levels", at=start)
        return value

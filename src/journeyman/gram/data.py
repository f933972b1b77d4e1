"""A gram document as plain frozen data: what was said, not how it was spelled; what can be wrong with one; and values
of JSON ⇄ values of gram.

Quotes, hexadecimal digits, white space, empty records and empty brackets leave no trace. ``at`` is the place in the
source (an offset in its UTF-8 bytes); it is None for what was made in Python, and does not count in comparisons.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from journeyman.core.errors import JourneymanError
from journeyman.gram.signature.reading import no_constant

Identifier: TypeAlias = str | int

_SHOWN_WIDTH = 100
"""How much of a line is shown around an error."""

_AWKWARD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
"""Characters that gram cannot hold, or that editors and files do not keep; JSON can escape them."""

_LARGEST = 10**250


@dataclass(frozen=True, slots=True)
class Symbol:
    """A bare word as a value, such as ``null``."""

    name: str


@dataclass(frozen=True, slots=True)
class Tagged:
    """A string that says what it holds, such as ``date`2024-04-05` ``."""

    tag: str
    text: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """A whole number with a unit, such as ``168cm``."""

    amount: int
    unit: str


Number: TypeAlias = int | float | Measurement


@dataclass(frozen=True, slots=True)
class Range:
    """``1..10``; without an upper bound ``1...``, without a lower one ``...10``."""

    lower: Number | None
    upper: Number | None


@dataclass(frozen=True, slots=True)
class Map:
    """Scalars by name."""

    entries: tuple[Property, ...] = ()


Scalar: TypeAlias = str | bool | int | float | Symbol | Tagged | Measurement | Range
Value: TypeAlias = Scalar | tuple[Scalar, ...] | Map


@dataclass(frozen=True, slots=True, eq=False)
class Property:
    """``name: value`` in a record or a map, or an annotation ``@name(value)``."""

    name: str
    value: Value
    typed: bool = False
    """Whether it was written with two colons."""
    at: int | None = None

    # by hand, because to Python 1, 1.0 and true are equal
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Property) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self.name, self.typed, _kinded(self.value))


def _kinded(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_kinded, value))
    if isinstance(value, Range):
        return (Range, _kinded(value.lower), _kinded(value.upper))
    return (type(value), value)


class Label(NamedTuple):
    """``:Name``, or ``::Name`` where it is typed."""

    name: str
    typed: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """What nodes, arrows and patterns say about themselves. A node is just this."""

    identifier: Identifier | None = None
    labels: tuple[Label, ...] = ()
    properties: tuple[Property, ...] = ()
    at: int | None = field(default=None, compare=False)


NOBODY = Subject()


class Arrow(NamedTuple):
    """How two nodes of a path are connected: ``-->``, ``<==``, ``~~`` and the like."""

    shape: str
    subject: Subject = NOBODY


@dataclass(frozen=True, slots=True)
class Path:
    """A chain of nodes with an arrow between each two; a single node is the shortest."""

    nodes: tuple[Subject, ...]
    arrows: tuple[Arrow, ...] = ()
    comments: tuple[str, ...] = ()
    at: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """The identifier of something that is described elsewhere."""

    identifier: Identifier
    comments: tuple[str, ...] = ()
    at: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pattern:
    """``[subject | elements]``."""

    subject: Subject = NOBODY
    elements: tuple[Inner, ...] = ()
    comments: tuple[str, ...] = ()
    at: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Annotated:
    """``@@identity @name(value) element``, at the top level only. Comments are on the whole, not on the element."""

    element: Pattern | Path
    annotations: tuple[Property, ...] = ()
    identity: Subject = NOBODY
    comments: tuple[str, ...] = ()
    at: int | None = field(default=None, compare=False)


Inner: TypeAlias = Pattern | Path | Reference
Element: TypeAlias = Pattern | Path | Annotated


class Source:
    """A text and where its lines begin."""

    def __init__(self, text: str, encoded: bytes, file: str | None = None) -> None:
        self.text = text
        self.encoded = encoded
        self.file = file

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(b"\n", self.encoded))]

    def position(self, at: int) -> tuple[int, int]:
        """The line and the column of an offset, for people: both count from 1."""
        line = bisect_right(self._lines, at)
        return line, len(self.encoded[self._lines[line - 1] : at].decode("utf-8", "replace")) + 1

    def fault(self, at: int, message: str, expected: str) -> Fault:
        line, column = self.position(at)
        bounds = [*self._lines[line - 1 : line + 1], len(self.encoded)]
        shown = self.encoded[bounds[0] : bounds[1]].decode("utf-8", "replace").rstrip("\r\n")
        return Fault(line, column, message, expected, shown)


@dataclass(frozen=True)
class Document:
    """A whole text: a record about it, its elements, and the comments that belong to neither."""

    properties: tuple[Property, ...] = ()
    elements: tuple[Element, ...] = ()
    comments: tuple[str, ...] = ()
    """Those before the record."""
    ending: tuple[str, ...] = ()
    """Those after the last element."""
    source: Source | None = field(default=None, compare=False, repr=False)


# -- what can be wrong


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, and where; line and column count from 1, columns in characters."""

    line: int
    column: int
    message: str
    expected: str
    source: str = ""
    """The whole line, for people to see."""

    def __str__(self) -> str:
        text = f"{self.line}:{self.column}: {self.message}; expected {self.expected}"
        return f"{text}\n{_caret(self.source, self.column)}" if self.source else text


class GramError(JourneymanError, ValueError):
    """A document cannot be used. All that was found wrong is in ``errors``; the other attributes are the first's."""

    def __init__(self, errors: Sequence[Fault], *, file: str | None = None) -> None:
        first = errors[0]
        self.file = file
        self.errors = tuple(errors)
        self.line = first.line
        self.column = first.column
        self.expected = first.expected
        prefix = f"{file}:" if file is not None else ""
        super().__init__("\n".join(f"{prefix}{fault}" for fault in errors))


class GramSyntaxError(GramError):
    """A text is not gram."""


class GramDocumentError(GramError):
    """A text is gram, but does not describe the agents or tools that were asked for."""


def _caret(line: str, column: int) -> str:
    start = max(0, column - 1 - _SHOWN_WIDTH * 3 // 4)
    shown = line[start : start + _SHOWN_WIDTH]
    # a tab before the caret keeps both lines aligned wherever tabs stop
    indent = "".join("\t" if character == "\t" else " " for character in shown[: column - 1 - start])
    return f"    {shown}\n    {indent}^"


# -- values of JSON; what gram cannot say is JSON in a tagged string


def awkward(text: str) -> bool:
    """Whether a text needs JSON's escapes."""
    return _AWKWARD.search(text) is not None


def to_gram(value: Any) -> Value:
    """A JSON value as gram. ValueError says what is no JSON, or would not come back as it was."""
    scalar = _scalar(value)
    if scalar is not None:
        return scalar
    if isinstance(value, list) and value:
        items = [_scalar(each) for each in value]
        if None not in items:
            return tuple(each for each in items if each is not None)
    if isinstance(value, dict) and value and not any(not isinstance(key, str) or awkward(key) for key in value):
        entries = {key: _scalar(each) for key, each in value.items()}
        if None not in entries.values():
            return Map(tuple(Property(key, each) for key, each in entries.items() if each is not None))
    return Tagged("json", _json(value))


def from_gram(value: Value) -> Any:
    """A gram value as JSON has it. ValueError says what JSON has no word for."""
    if isinstance(value, tuple):
        return [from_gram(each) for each in value]
    if isinstance(value, Map):
        return {item.name: from_gram(item.value) for item in value.entries}
    if isinstance(value, Symbol):
        return None if value.name == "null" else value.name
    if isinstance(value, Tagged):
        return _read_json(value.text) if value.tag == "json" else value.text
    if isinstance(value, Range | Measurement):
        raise ValueError(f"a {type(value).__name__.lower()} has no meaning here; write a number or a string")
    return value


def _scalar(value: Any) -> Scalar | None:
    if isinstance(value, str):
        return None if awkward(value) else str(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < _LARGEST else None
    if isinstance(value, float):
        return float(value) if math.isfinite(value) and (value == 0 or 1e-250 < abs(value) < 1e250) else None
    return None


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if awkward(text):
            text = json.dumps(value, allow_nan=False)
        exact = json.loads(text) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it is not plain JSON: {error}") from error
    if not exact:
        raise ValueError("it would not come back from JSON as it is; use lists, dicts with text as keys, and scalars")
    return text


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"a json`…` string that cannot be read: {error}") from error

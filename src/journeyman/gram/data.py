"""A gram document as plain frozen data: what was said, not how it was spelled.

Quotes, hexadecimal digits, white space, empty records and empty brackets leave no trace. ``at`` is the place in the
source (an offset in its UTF-8 bytes); it is None for what was made in Python, and does not count in comparisons.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

Identifier: TypeAlias = str | int


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
    elements: tuple[Pattern | Path | Reference, ...] = ()
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


Element: TypeAlias = Pattern | Path | Annotated


class Position(NamedTuple):
    """A place for people: both numbers count from 1."""

    line: int
    column: int


class Source:
    """A text and where its lines begin."""

    def __init__(self, text: str, encoded: bytes, file: str | None = None) -> None:
        self.text = text
        self.encoded = encoded
        self.file = file

    @cached_property
    def _lines(self) -> list[int]:
        starts, at = [0], self.encoded.find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.encoded.find(b"\n", at + 1)
        return starts

    def position(self, at: int) -> Position:
        line = bisect_right(self._lines, at)
        before = self.encoded[self._lines[line - 1] : at]
        return Position(line, len(before.decode("utf-8", "replace")) + 1)

    def line(self, number: int) -> str:
        start = self._lines[number - 1]
        end = self.encoded.find(b"\n", start)
        return self.encoded[start : end if end >= 0 else None].decode("utf-8", "replace").rstrip("\r")


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

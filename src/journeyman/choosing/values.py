"""What a request has to fill in, and what a tool's required parameters ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journeyman.choosing import vocabulary
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import words
from journeyman.retrieval.search import terms

NUMBERS = ("integer", "number")
MOST_CHOICES = 200
_QUOTES = "\"'“‘«`"
_ENDS = ".!?:;\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, taken apart once for all tools."""

    text: str
    lowered: str
    terms: frozenset[str]
    numbers: int
    values: int
    """Names, numbers and quotations: what a person would copy into a form."""

    @classmethod
    def of(cls, text: str) -> Asked:
        numbers, values = _values(text)
        return cls(text, " ".join(words(text)), frozenset(terms(text)), numbers, values)


@dataclass(frozen=True, slots=True)
class Needs:
    """What a tool's required parameters ask for, taken apart once for all requests."""

    numbers: int
    free: int
    """Values of any kind, but for choices, flags and texts in which any words will do."""
    choices: tuple[tuple[str, ...], ...]
    """For each choice its values in words, with a blank at both ends."""

    @classmethod
    def of(cls, tool: ToolSpecification) -> Needs:
        properties: Mapping[str, Any] = tool.parameters.get("properties", {})
        names = [name for name in tool.parameters.get("required", ()) if name in properties]
        schemas: list[Mapping[str, Any]] = [properties[name] for name in names if isinstance(properties[name], dict)]
        anything = sum(name in vocabulary.free_text for name in tool.parameters.get("required", ()))
        choices = [schema["enum"][:MOST_CHOICES] for schema in schemas if schema.get("enum")]
        return cls(
            numbers=sum(schema.get("type") in NUMBERS for schema in schemas),
            free=sum(schema.get("type") != "boolean" and not schema.get("enum") for schema in schemas) - anything,
            choices=tuple(tuple(f" {' '.join(words(str(one)))} " for one in values) for values in choices),
        )

    def numbers_missing(self, asked: Asked) -> float:
        return share(max(0, self.numbers - asked.numbers), self.numbers)

    def values_missing(self, asked: Asked) -> float:
        return share(max(0, self.free - asked.values), max(0, self.free))

    def choices_said(self, asked: Asked) -> float:
        padded = f" {asked.lowered} "
        named = sum(any(one.strip() and one in padded for one in each) for each in self.choices)
        return share(named, len(self.choices))


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _values(text: str) -> tuple[int, int]:
    """How many numbers a text has; and how many values of any kind, words of one name counting once."""
    numbers = values = 0
    begins, in_name = True, False
    for written in text.split():
        word = written.strip(",;()[]{}")
        if any(map(str.isdecimal, word)):
            numbers, values, in_name = numbers + 1, values + 1, False
        elif word[:1] in _QUOTES or "@" in word or "/" in word or "." in word[1:-1]:  # addresses, files
            values, in_name = values + 1, False
        elif word[:1].isupper() and not begins and word not in ("I", "I'm", "I'd", "I've", "I'll"):
            values, in_name = values + (not in_name), True
        else:
            in_name = False
        begins = written[-1:] in _ENDS
    return numbers, values

"""Does a tool fit a request? Read from both texts, without a language model.

Three things are compared: what the texts mean (where there is an embedder), which words they share, and whether the
request has the values that the tool's required parameters ask for. How much each counts was fitted on one half of a
public set of requests and judged on the other: ``python -m benchmarks.gaps``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from journeyman.core.specification import ToolSpecification
from journeyman.core.words import words
from journeyman.retrieval.bm25 import terms

NUMBERS = ("integer", "number")
FREE_TEXT_NAMES = """
    query text q question prompt request message content body title subject topic keyword keywords description search
    note comment input sentence summary search_query search_term
"""
FREE_TEXT = frozenset(FREE_TEXT_NAMES.split())
"""Required parameters of these names take any words."""
MOST_CHOICES = 200
_QUOTES = "\"'“‘«`"
_ENDS = ".!?:;\n"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for and against one tool. All of it lies between 0 and 1."""

    similarity: float
    """Of the request and all that is said of the tool; 0 without an embedder."""
    described: float
    """Of the request and the tool's description alone."""
    named: float
    """The share of the words of the tool's name that the request has."""
    covered: float
    """The share of the request's words that anything said of the tool has."""
    numbers_missing: float
    """The share of the required numbers that the request cannot give."""
    values_missing: float
    """The share of the required values for which the request has no name, number or quotation left."""
    choices_said: float
    """The share of the required choices of which the request names one."""


WEIGHTS = (3.33, 2.81, 0.88, 0.63, -1.15, -2.27, 1.13)
BIAS = -1.77
WEIGHTS_BY_WORDS = (0.0, 0.0, 2.11, 2.82, -1.37, -2.47, 1.41)
BIAS_BY_WORDS = -0.59


def fit(evidence: Evidence, *, by_words: bool = False) -> float:
    """How much speaks for the tool, as log odds; 0 is undecided. ``by_words`` where there is no embedder."""
    weights, bias = (WEIGHTS_BY_WORDS, BIAS_BY_WORDS) if by_words else (WEIGHTS, BIAS)
    values: tuple[float, ...] = astuple(evidence)
    return bias + sum(weight * value for weight, value in zip(weights, values, strict=True))


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
        anything = sum(name in FREE_TEXT for name in tool.parameters.get("required", ()))
        choices = [schema["enum"][:MOST_CHOICES] for schema in schemas if schema.get("enum")]
        return cls(
            numbers=sum(schema.get("type") in NUMBERS for schema in schemas),
            free=sum(schema.get("type") != "boolean" and not schema.get("enum") for schema in schemas) - anything,
            choices=tuple(tuple(f" {' '.join(words(str(one)))} " for one in values) for values in choices),
        )

    def numbers_missing(self, asked: Asked) -> float:
        return _share(max(0, self.numbers - asked.numbers), self.numbers)

    def values_missing(self, asked: Asked) -> float:
        return _share(max(0, self.free - asked.values), max(0, self.free))

    def choices_said(self, asked: Asked) -> float:
        padded = f" {asked.lowered} "
        return _share(
            sum(any(one.strip() and one in padded for one in each) for each in self.choices), len(self.choices)
        )


def compare(asked: Asked, tool: ToolSpecification, *, searchable: str, similarity: float, described: float) -> Evidence:
    """The evidence for one tool. ``searchable`` is all that is said of it."""
    named = frozenset(terms(tool.name))
    said = frozenset(terms(searchable))
    needs = Needs.of(tool)
    return Evidence(
        similarity=similarity,
        described=described,
        named=_share(len(named & asked.terms), len(named)),
        covered=_share(len(said & asked.terms), len(asked.terms)),
        numbers_missing=needs.numbers_missing(asked),
        values_missing=needs.values_missing(asked),
        choices_said=needs.choices_said(asked),
    )


def _share(part: int, whole: int) -> float:
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

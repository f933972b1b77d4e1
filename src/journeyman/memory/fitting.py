"""Does a tool fit a request? Read from both texts, without a language model.

Three things are compared: what the texts mean (where there is an embedder), which words they share, and whether the
request has the values that the tool's required parameters ask for. How much each counts was fitted on one half of a
public set of requests and judged on the other: ``python -m benchmarks.gaps``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def compare(asked: Asked, tool: ToolSpecification, *, searchable: str, similarity: float, described: float) -> Evidence:
    """The evidence for one tool. ``searchable`` is all that is said of it."""
    named = frozenset(terms(tool.name))
    said = frozenset(terms(searchable))
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = [properties[name] for name in tool.parameters.get("required", ()) if name in properties]
    schemas: list[Mapping[str, Any]] = [schema for schema in required if isinstance(schema, dict)]
    anything = sum(name in FREE_TEXT for name in tool.parameters.get("required", ()))
    choices = [schema["enum"] for schema in schemas if schema.get("enum")]
    numbers = sum(schema.get("type") in NUMBERS for schema in schemas)
    free = sum(schema.get("type") != "boolean" and not schema.get("enum") for schema in schemas) - anything
    return Evidence(
        similarity=similarity,
        described=described,
        named=_share(len(named & asked.terms), len(named)),
        covered=_share(len(said & asked.terms), len(asked.terms)),
        numbers_missing=_share(max(0, numbers - asked.numbers), numbers),
        values_missing=_share(max(0, free - asked.values), max(0, free)),
        choices_said=_share(sum(_names_one(asked, values) for values in choices), len(choices)),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _names_one(asked: Asked, choices: Sequence[Any]) -> bool:
    padded = f" {asked.lowered} "
    return any((named := " ".join(words(str(choice)))) and f" {named} " in padded for choice in choices[:MOST_CHOICES])


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

"""Is there a tool for this? From what the texts say, from how sure the model was, and from the model if one is asked.

A report names what is missing in the request's own words; nothing in it is invented. What is only said in passing, a
greeting or thanks, is no request and gets no report.

Of a request and a tool three things are compared: what the texts mean (where there is an embedder), which words they
share, and whether the request has the values that the tool's required parameters ask for. How much each counts was
fitted on one half of a public set of requests and judged on the other: ``python -m benchmarks.gaps``. Where that speaks
against all tools, what the ranking of tools sees counts as well (``gaps.json``): the same action, the words of an
example, and that a search of the web answers any question about the world.
"""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from journeyman.choosing import vocabulary, wording
from journeyman.choosing.actions import (
    EMBEDDER,
    actions_of,
    asked_actions,
    asks_for_something,
    concepts,
    only_reads,
    sounds_like_talk,
)
from journeyman.choosing.languages import in_english
from journeyman.core.data import SEARCHED_CHARS
from journeyman.core.errors import ModelError
from journeyman.core.gaps import ToolGapReport
from journeyman.core.protocols import Embedder, Model, ModelRequest
from journeyman.core.runs import Message
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import packaged_json, words
from journeyman.models.arguments import mentions, without
from journeyman.models.embedded.tools import begins_like_example, first_paragraph, stems, within
from journeyman.retrieval.search import BM25, terms
from journeyman.tools.library import ToolLibrary, searchable

if TYPE_CHECKING:
    from journeyman.choosing.ranking import ToolRanking
    from journeyman.core.protocols import Vectors

NUMBERS = ("integer", "number")
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


def compare(asked: Asked, tool: ToolSpecification, *, searchable: str, similarity: float, described: float) -> Evidence:
    """The evidence for one tool. ``searchable`` is all that is said of it."""
    named = frozenset(terms(tool.name))
    said = frozenset(terms(searchable))
    needs = Needs.of(tool)
    return Evidence(
        similarity=similarity,
        described=described,
        named=share(len(named & asked.terms), len(named)),
        covered=share(len(said & asked.terms), len(asked.terms)),
        numbers_missing=needs.numbers_missing(asked),
        values_missing=needs.values_missing(asked),
        choices_said=needs.choices_said(asked),
    )


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


# --- what is missing

NEEDED = -0.2
"""How well, in log odds, the best tool must fit a request."""
NEEDED_BY_WORDS = -0.4
"""The same where nothing but words can be compared."""
NEEDED_OF_PARTS = -0.5
"""The same for a part of a request whose whole is served: there must be less doubt."""
READS_ONLY = 2.5
"""What speaks against a tool that only reads where something is to be changed."""
CONFIDENCE_WEIGHS = 0.5
"""How much the log odds of a model's confidence add to the fit."""
ALIKE = 0.4
"""How alike what a request and a tool are about must be, where they share no word."""
_NEVER_SURER = 0.05
"""What keeps the odds of a confidence of 0 or 1 finite."""
MOST_COMPARED = 64
"""Tools that are compared by meaning: of more, those that share most words with the request."""

_QUESTION = "Call the tool that does what the user asks for. If none does, call nothing and say so."
_LONGEST_PHRASE = 6
_MOST_PARTS = 50
_PUNCTUATION = string.punctuation + "“”‘’«»…–—"


@dataclass(frozen=True, slots=True)
class Fitting:
    """How well tools fit a text."""

    tools: tuple[tuple[str, float], ...]
    """Names with their fit in log odds, best first."""
    nearest: tuple[str, ...] = ()
    """Names, those first that are about the same thing, whatever the request leaves unsaid."""
    passing: bool = False
    """Whether nothing is asked for at all."""
    served: bool = False
    """Whether what the ranking sees speaks for a tool, though the texts alone do not."""
    unread: bool = False
    """Whether the request's language is not known, so that its meaning alone was compared."""
    by_words: bool = False

    @property
    def best(self) -> float:
        return self.tools[0][1] if self.tools else float("-inf")

    @property
    def fits(self) -> bool:
        """Whether the best fits well enough."""
        return self.best >= (NEEDED_BY_WORDS if self.by_words else NEEDED)


class RequestReader:
    """Reads requests among the tools of a library, or among some specifications.

    Without an ``embedder``, of the library or given here, words alone are compared.
    """

    def __init__(
        self,
        tools: ToolLibrary | Sequence[ToolSpecification],
        *,
        embedder: Embedder | None = None,
        model: Model | None = None,
    ) -> None:
        self._tools = tools
        self._embedder = embedder or (tools.embedder if isinstance(tools, ToolLibrary) else None)
        self._model = model

    def _specifications(self) -> Sequence[ToolSpecification]:
        return self._tools.specifications() if isinstance(self._tools, ToolLibrary) else self._tools

    def _enabled(self) -> list[ToolSpecification]:
        return [tool for tool in self._specifications() if tool.enabled]


class ToolGapDetector(RequestReader):
    """Looks a request up among tools; see ``RequestReader``.

    A ``model`` is offered the tools and asked, once, where nobody says how sure it was; nothing of what it wants to
    call is run.
    """

    async def detect(self, task_text: str, *, confidence: float | None = None) -> ToolGapReport | None:
        """What is missing for a task, or None when the tools at hand seem to do, or nothing was asked for.

        ``confidence`` is what the model's adapter reported for the whole.
        """
        whole = await self.fitting(task_text, confidence=confidence)
        if whole.passing:
            return None
        if confidence is None and self._model is not None:
            confidence = await self._asked(task_text)
            whole = await self.fitting(task_text, confidence=confidence)
        missing = await self._missing(task_text, whole, confidence)
        return self._report(task_text, missing, whole) if missing else None

    detect_missing_tools = detect

    async def _asked(self, task_text: str) -> float | None:
        """How sure the model is that one of the tools does; None where it cannot be asked."""
        assert self._model is not None
        tools = self._enabled()
        messages = (Message.system(_QUESTION), Message.user(task_text))
        try:
            response = await self._model.respond(ModelRequest(messages=messages, tools=tuple(tools), step=1))
        except ModelError:
            return None
        known = {tool.name for tool in tools}
        calls = [call for call in response.calls if call.tool_name in known]
        if not calls:
            return 0.0
        return min(1.0 if call.confidence is None else call.confidence for call in calls)

    async def _missing(self, text: str, whole: Fitting, confidence: float | None) -> list[str]:
        needed = NEEDED_BY_WORDS if whole.by_words else NEEDED
        if whole.served or whole.best >= needed:
            # It may still hold a second request, which nothing else in it speaks for.
            parts, needed = _split(text, wording.connected), NEEDED_OF_PARTS
            if len(parts) == 1:
                return []
        else:
            parts = _split(text, wording.clause_ends)
        missing = []
        for part in parts:
            served = whole if len(parts) == 1 else await self.fitting(part, confidence=confidence)
            if not served.passing and not served.served and served.best < needed:
                missing.append(phrase(part))
        if not missing and not whole.served and whole.best < needed:
            missing = [phrase(text)]
        return list(dict.fromkeys(missing))

    def _report(self, text: str, missing: Sequence[str], whole: Fitting) -> ToolGapReport:
        checked = list(whole.nearest)
        checked += [tool.name for tool in self._specifications() if tool.name not in set(checked)]
        return ToolGapReport(
            missing_tools=tuple(missing),
            attempted_task=text,
            existing_tools_checked=tuple(checked),
            by_meaning_alone=whole.unread,
        )

    async def fitting(self, text: str, *, confidence: float | None = None) -> Fitting:
        """How well each enabled tool fits a text."""
        return await fitting(text, self._enabled(), embedder=self._embedder, confidence=confidence)


async def fitting(
    text: str, tools: Sequence[ToolSpecification], *, embedder: Embedder | None, confidence: float | None = None
) -> Fitting:
    """How well tools fit a text. A model's ``confidence`` counts for all of them."""
    text, language = in_english(text[:SEARCHED_CHARS])
    unread = language == "unknown"
    if not any(map(str.isalnum, text)) or not (unread or asks_for_something(text)):
        return Fitting((), passing=True)
    said = {tool.name: searchable(tool) for tool in tools}
    if len(tools) > MOST_COMPARED:
        places = {name: place for place, (name, _) in enumerate(BM25(said).rank(text, k=MOST_COMPARED))}
        tools = sorted(tools, key=lambda tool: places.get(tool.name, MOST_COMPARED))[:MOST_COMPARED]
    vectors = await _vectors(text, tools, said, embedder)
    if unread and vectors is None:
        return Fitting((), passing=True)  # nobody can tell
    if (
        vectors is not None
        and not unread
        and embedder is not None
        and embedder.name == EMBEDDER
        and sounds_like_talk(vectors[0])
    ):
        return Fitting((), passing=True)
    asked_for = frozenset[str]() if unread else asked_actions(text)[0]
    asked, added = Asked.of(text), 0.0 if confidence is None else sureness(confidence)
    ranked, alikes = [], dict[str, float]()
    for number, tool in enumerate(tools):
        alike, described = (0.0, 0.0) if vectors is None else _cosines(vectors, number)
        evidence = compare(asked, tool, searchable=said[tool.name], similarity=alike, described=described)
        against = READS_ONLY * only_reads(tool, asked_for)
        ranked.append((tool.name, fit(evidence, by_words=vectors is None) + added - against))
        about = replace(evidence, numbers_missing=0.0, values_missing=0.0)
        alikes[tool.name] = fit(about, by_words=vectors is None)
    ranked.sort(key=lambda item: -item[1])
    nearest = tuple(sorted(alikes, key=lambda name: -alikes[name]))
    served = not unread and await _served(text, tools, dict(ranked), added, embedder)
    return Fitting(tuple(ranked), nearest, served=served, unread=unread, by_words=vectors is None)


def _ranking(embedder: Embedder | None) -> ToolRanking:
    from journeyman.choosing.ranking import ToolRanking  # it reads requests with what is here

    return _rankings.setdefault(id(embedder), ToolRanking(embedder=embedder))


_OF_ANY_TOOL = ("reads", "same_action", "any_action", "order_changes", "statement_changes", "kinds_taken")
"""What speaks for a tool only as far as it is about the same thing: any tool reads, and a day belongs to none."""
_rankings: dict[int, ToolRanking] = {}
"""By the embedder, which the ranking keeps."""


async def _served(
    text: str, tools: Sequence[ToolSpecification], fits: Mapping[str, float], added: float, embedder: Embedder | None
) -> bool:
    """Whether what the ranking sees, and how a request and a tool are worded, speaks for one of the tools."""
    signals, _, by_words = await _ranking(embedder).signals(text, tools)
    weights = packaged_json("journeyman.choosing", "gaps.json")["by_words" if by_words else "by_meaning"]
    looked_up = wording.looked_up.match(text) is not None
    personal = wording.in_person.search(wording.asks_in_person.sub("", text)) is not None
    objects = spoken_of(text)
    for tool in tools:
        if (signal := signals.get(tool.name)) is None:
            continue
        told = f"{tool.name.replace('_', ' ')} {first_paragraph(tool.description)}"
        seen = signal._asdict() | {
            "bias": 1.0,
            "fit": fits[tool.name] - added,
            "worded": float(any(within(text, request) for request in tool.requests)),
            "verb": float(begins_like_example(text, tool)),
            "looks_up": float(looked_up and not personal and bool(wording.of_the_web.search(told))),
            "recalls": float(personal and bool(wording.recalled.search(text) and wording.of_memory.search(told))),
        }
        about = signal.concepts + signal.name_meant + signal.words + signal.name_said
        about = min(1.0, about + max(signal.plain, signal.clause, 0.0)) ** 2
        for weighs in (about, 0.0):
            of_any = {name: seen[name] * weighs for name in _OF_ANY_TOOL}
            if sum(weight * (seen | of_any)[name] for name, weight in weights.items()) + added < 0:
                break
            if not weighs or await _is_about(objects, tool, embedder):
                return True
    return False


def spoken_of(text: str) -> tuple[str, ...]:
    """What a request is about: its words without verbs of action, names, numbers, days and those that any text has."""
    for day in reversed(mentions(text, date.today())):
        text = without(text, day)
    said = wording.quotation.sub(" ", wording.polite.sub("", text)).split()
    plain = (word for place, word in enumerate(said) if not (place and word[:1].isupper()) and "@" not in word)
    spoken = (each for word in plain if not any(map(str.isdecimal, word)) for each in words(word))
    return tuple(word for word in spoken if len(word) > 1 and stems(word) and not actions_of([word]))


async def _is_about(objects: Sequence[str], tool: ToolSpecification, embedder: Embedder | None) -> bool:
    """Whether a tool has a word or concept of those that a request is about, or where they are alike in meaning."""
    told = f"{searchable(tool)} {json.dumps(tool.parameters)} {' '.join(tool.requests)}"
    if not objects or stems(" ".join(objects)) & stems(told) or concepts(" ".join(objects)) & concepts(told):
        return True
    if embedder is None:
        return False
    named = " ".join(word for word in words(tool.name) if not actions_of([word])) or tool.name
    parts = [f"{name} {part.get('description', '')}" for name, part in tool.parameters.get("properties", {}).items()]
    try:
        from journeyman.retrieval.index import unit

        vectors = unit(await embedder.embed([" ".join(objects), named, tool.description, *parts, *tool.requests]))
    except ModelError:
        return True
    return float((vectors[1:] @ vectors[0]).max()) >= ALIKE


def sureness(confidence: float) -> float:
    """What a model's confidence adds to the fit: nothing at 0.5, and less the more unsure it is."""
    return CONFIDENCE_WEIGHS * math.log((confidence + _NEVER_SURER) / (1 - confidence + _NEVER_SURER))


async def _vectors(
    text: str, tools: Sequence[ToolSpecification], said: Mapping[str, str], embedder: Embedder | None
) -> Vectors | None:
    """Of the text, then two for each tool; None where there is no embedder, or it cannot be asked."""
    if embedder is None:
        return None
    from journeyman.retrieval.index import unit

    texts = [text, *(part for tool in tools for part in (said[tool.name], tool.description))]
    try:
        return unit(await embedder.embed(texts))
    except ModelError:
        return None


def _cosines(vectors: Vectors, number: int) -> tuple[float, float]:
    text, tool, description = vectors[0], vectors[1 + 2 * number], vectors[2 + 2 * number]
    return float(text @ tool), float(text @ description)


def _split(text: str, between: re.Pattern[str]) -> list[str]:
    # Blanks one by one: a pattern that meets long runs of them takes the square of their length.
    lines = "\n".join(" ".join(line.split()) for line in text[:SEARCHED_CHARS].splitlines() if line.strip())
    parts = [part.strip() for part in between.split(lines) if any(map(str.isalpha, part))]
    return parts[:_MOST_PARTS] or [text]


def phrase(request: str) -> str:
    """What a request asks for, in its own words: from the verb to the end of its object.

    >>> phrase("Please retrieve my stock portfolio performance for Q3 2024")
    'retrieve stock portfolio performance'
    """
    kept: list[str] = []
    for written in wording.asking.sub("", request).split():
        word = written.strip(_PUNCTUATION)
        if not word[:1].isalpha():
            continue
        folded = word.lower()
        if folded in vocabulary.phrase_ends and kept:
            break
        if folded not in vocabulary.left_out:
            kept.append(folded if not kept else word)
        if len(kept) == _LONGEST_PHRASE:
            break
    while kept and kept[-1].lower() == "of":
        kept.pop()
    return " ".join(kept) or request.strip()

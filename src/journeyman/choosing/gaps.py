"""Is there a tool for this? From what the texts say, from how sure the model was, and from the model if one is asked.

A report names what is missing in the request's own words; nothing in it is invented. What is only said in passing, a
greeting or thanks, is no request and gets no report.

How much speaks for a tool is one estimate (``serving``), which the embedded model asks as well: what the ranking sees,
which of the request's words nothing said of the tool has, and what else people might want that is nearer to the
request than the tools are (``surroundings.txt``). How much each counts (``gaps.json``) was fitted on the tuning sets,
and judged on kinds of tools that were left out: ``python -m benchmarks.gaps.weights``.
"""

from __future__ import annotations

import base64
import math
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from typing import TYPE_CHECKING

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
from journeyman.choosing.ranking import ToolRanking, unquoted
from journeyman.choosing.values import share
from journeyman.core.data import SEARCHED_CHARS
from journeyman.core.errors import ModelError
from journeyman.core.gaps import ToolGapReport
from journeyman.core.protocols import Embedder, Model, ModelRequest
from journeyman.core.runs import Message
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import packaged_json, packaged_text, words
from journeyman.models.arguments import mentions, without
from journeyman.models.embedded.tools import begins_like_example, first_paragraph, stems, within
from journeyman.tools.library import ToolLibrary, searchable

if TYPE_CHECKING:
    from journeyman.core.protocols import Vectors

NEEDED = 0.0
"""How much, in log odds, must speak for the best tool."""
NEEDED_OF_PARTS = -0.5
"""The same for a part of a request whose whole is served: there must be less doubt."""
CONFIDENCE_WEIGHS = 0.5
"""How much the log odds of a model's confidence add."""
APART = 0.5
"""How alike something else and a tool may be, to be told apart."""
_NEVER_SURER = 0.05
"""What keeps the odds of a confidence of 0 or 1 finite."""

_QUESTION = "Call the tool that does what the user asks for. If none does, call nothing and say so."
_LONGEST_PHRASE = 6
_MOST_PARTS = 50
_PUNCTUATION = string.punctuation + "“”‘’«»…–—"


@dataclass(frozen=True, slots=True)
class Fitting:
    """How well tools fit a text."""

    tools: tuple[tuple[str, float], ...]
    """Names with their fit in log odds, best first."""
    passing: bool = False
    """Whether nothing is asked for at all."""
    unread: bool = False
    """Whether the request's language is not known, so that its meaning alone was compared."""

    @property
    def best(self) -> float:
        return self.tools[0][1] if self.tools else float("-inf")

    @property
    def fits(self) -> bool:
        """Whether the best fits well enough."""
        return self.best >= NEEDED


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
        needed, parts = NEEDED, _split(text, wording.clause_ends)
        if whole.fits:
            # It may still hold a second request, which nothing else in it speaks for.
            needed, parts = NEEDED_OF_PARTS, _split(text, wording.connected)
            if len(parts) == 1:
                return []
        missing = []
        for part in parts:
            served = whole if len(parts) == 1 else await self.fitting(part, confidence=confidence)
            if not served.passing and served.best < needed:
                missing.append(phrase(part))
        if not missing and not whole.fits:
            missing = [phrase(text)]
        return list(dict.fromkeys(missing))

    def _report(self, text: str, missing: Sequence[str], whole: Fitting) -> ToolGapReport:
        checked = [name for name, _ in whole.tools]
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
    known = embedder is not None and not unread and embedder.name == EMBEDDER
    if unread and embedder is None:
        return Fitting((), passing=True)  # nobody can tell
    if known and (vectors := await _vectors([text], embedder)) is not None and sounds_like_talk(vectors[0]):
        return Fitting((), passing=True)
    added = 0.0 if confidence is None else sureness(confidence)
    scores = await serving(text, tools, embedder)
    ranked = sorted(((name, score + added) for name, score in scores.items()), key=lambda each: -each[1])
    return Fitting(tuple(ranked), unread=unread)


async def serving(text: str, tools: Sequence[ToolSpecification], embedder: Embedder | None) -> dict[str, float]:
    """How much speaks for each of the tools that seem nearest to a request, as log odds; 0 is undecided."""
    seen, by_words = await evidence(text, tools, embedder)
    weights = packaged_json("journeyman.choosing", "gaps.json")["by_words" if by_words else "by_meaning"]
    return {name: sum(weight * each[key] for key, weight in weights.items()) for name, each in seen.items()}


async def evidence(
    text: str, tools: Sequence[ToolSpecification], embedder: Embedder | None
) -> tuple[dict[str, dict[str, float]], bool]:
    """What speaks for and against each of these tools, by name; and whether nothing but words could be compared."""
    ranking = _rankings.setdefault(id(embedder), ToolRanking(embedder=embedder))
    signals, _, by_words = await ranking.signals(text, tools, patient=True)
    looked_up = wording.looked_up.match(text) is not None
    personal = wording.in_person.search(wording.asks_in_person.sub("", text)) is not None
    recalls = personal and wording.recalled.search(text) is not None
    asked = frozenset[str]() if wording.wish.match(text) else asked_actions(text)[0]
    objects = " ".join(spoken_of(text))
    about, spoken = stems(objects), concepts(objects or text)
    of_request = {"bias": 1.0, "objects": float(bool(objects))}
    if not by_words and signals:
        of_request |= await _elsewhere(text, tools, ranking, embedder)
    found = {}
    for tool in tools:
        if (signal := signals.get(tool.name)) is None:
            continue
        said, meant = _told(f"{searchable(tool)} {' '.join(tool.requests)}")
        told = f"{tool.name.replace('_', ' ')} {first_paragraph(tool.description)}"
        found[tool.name] = {
            **signal._asdict(),
            **of_request,
            "unsaid": share(len(about - said), len(about)),
            "unmeant": share(len(spoken - meant), len(spoken)),
            "only_reads": float(only_reads(tool, asked)),
            "verb": float(begins_like_example(text, tool)),
            "worded": float(any(within(text, request) for request in tool.requests)),
            "looks_up": float(looked_up and not personal and bool(wording.of_the_web.search(told))),
            "recalls": float(recalls and bool(wording.of_memory.search(told))),
        }
    return found, by_words


_rankings: dict[int, ToolRanking] = {}
"""By the embedder, which the ranking keeps."""


@lru_cache(1024)
def _told(text: str) -> tuple[set[str], frozenset[int]]:
    return stems(text), concepts(text)


async def _elsewhere(
    text: str, tools: Sequence[ToolSpecification], ranking: ToolRanking, embedder: Embedder | None
) -> dict[str, float]:
    """How near the request is to anything that people want, and to what none of the tools seems to be for."""
    surrounding = await surroundings(embedder)
    asked, offered = await _vectors([unquoted(text)], embedder), ranking.first_vectors(tools)
    if surrounding is None or asked is None or offered is None:
        return {"anything": 0.0, "elsewhere": 0.0}
    near = surrounding @ asked[0]
    apart = (surrounding @ offered.T).max(axis=1) < APART
    return {"anything": float(near.max()), "elsewhere": float(near[apart].max(initial=0.0))}


async def surroundings(embedder: Embedder | None) -> Vectors | None:
    """The vectors of what people want of all kinds of programs; those of the embedder that we ship are packaged."""
    if embedder is not None and embedder.name == EMBEDDER:
        return _packaged()
    lines = packaged_text("journeyman.choosing", "surroundings.txt").splitlines()
    return await _vectors([line for line in lines if not line.startswith("#")], embedder)


@cache
def _packaged() -> Vectors:
    import numpy as np

    kept = packaged_json("journeyman.choosing", "surroundings.json")
    rows = np.frombuffer(base64.b64decode(kept["rows"]), dtype=np.int8).reshape(kept["shape"])
    return rows.astype(np.float32) * np.float32(kept["scale"])


def spoken_of(text: str) -> tuple[str, ...]:
    """What a request is about: its words without verbs of action, names, numbers, days and those that any text has."""
    for day in reversed(mentions(text, date.today())):
        text = without(text, day)
    said = wording.quotation.sub(" ", wording.polite.sub("", text)).split()
    plain = (word for place, word in enumerate(said) if not (place and word[:1].isupper()) and "@" not in word)
    spoken = (each for word in plain if not any(map(str.isdecimal, word)) for each in words(word))
    return tuple(word for word in spoken if len(word) > 1 and stems(word) and not actions_of([word]))


def sureness(confidence: float) -> float:
    """What a model's confidence adds to the fit: nothing at 0.5, and less the more unsure it is."""
    return CONFIDENCE_WEIGHS * math.log((confidence + _NEVER_SURER) / (1 - confidence + _NEVER_SURER))


async def _vectors(texts: Sequence[str], embedder: Embedder | None) -> Vectors | None:
    """None where there is no embedder, or it cannot be asked."""
    if embedder is None:
        return None
    from journeyman.retrieval.index import unit

    try:
        return unit(await embedder.embed(texts))
    except ModelError:
        return None


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

"""Which tools serve a request, best first: the choice that needs no language model.

Several things are weighed: what the texts mean (where there is an embedder), which words they share, whether the verb
of the request and that of the tool's name agree, and whether the values in the request are those that the tool takes.
How much each counts was fitted on tuning halves alone: ``python -m benchmarks.choosing.weights``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from journeyman.core.errors import ModelError
from journeyman.core.protocols import Embedder
from journeyman.core.specification import ToolSpecification
from journeyman.memory.catalogue import Catalogue, Signals

CATALOGUES_KEPT = 8
MANY, MOST_MORE = 64, 200
"""From how many tools on a catalogue that holds so many more is used for them as well."""
LONGEST_REQUEST = 8_000
"""In characters; of a longer one the beginning counts."""

logger = logging.getLogger(__name__)

WEIGHTS = {
    "plain": 4.33,
    "clause": 4.67,
    "parameters": 3.86,
    "example": 3.0,
    "words": 2.43,
    "words_first": 0.8,
    "name_said": -0.0,
    "concepts": 2.3,
    "concepts_first": 0.77,
    "name_meant": 4.3,
    "opening": 1.4,
    "same_action": 0.56,
    "any_action": 0.19,
    "other_effect": -0.18,
    "reads": 2.8,
    "identified": 0.57,
    "numbers_missing": -1.09,
    "values_missing": -1.18,
    "choices_said": 0.82,
    "options_said": 1.36,
    "kinds_taken": 2.13,
    "kinds_missing": -0.73,
    "shape": 2.59,
    "prefix": 0.72,
}
WEIGHTS_BY_WORDS = {
    "plain": 0.0,
    "clause": 0.0,
    "parameters": 0.0,
    "example": 0.0,
    "words": 5.73,
    "words_first": 2.54,
    "name_said": 1.62,
    "concepts": 3.11,
    "concepts_first": 1.34,
    "name_meant": 4.57,
    "opening": 1.71,
    "same_action": 0.59,
    "any_action": 0.17,
    "other_effect": -0.23,
    "reads": 3.22,
    "identified": 0.48,
    "numbers_missing": -1.28,
    "values_missing": -1.13,
    "choices_said": 1.52,
    "options_said": 1.9,
    "kinds_taken": 2.36,
    "kinds_missing": -0.56,
    "shape": 2.5,
    "prefix": 0.9,
}


@dataclass(frozen=True, slots=True)
class Ranked:
    """Tools for a request."""

    tools: tuple[tuple[str, float], ...]
    """Names, best first, each with the chance that it is the one, if one of them is; together 1."""
    by_words: bool = False
    """Whether nothing but words could be compared."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.tools)


class ToolRanking:
    """Orders tools by how well they serve a request. Without an ``embedder`` words alone are compared."""

    def __init__(self, *, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._catalogues: list[Catalogue] = []
        """The latest first."""

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> list[str]:
        """The names of at most ``k`` of these tools, best first."""
        return list((await self.ranked(text, tools)).names[:k])

    async def ranked(self, text: str, tools: Sequence[ToolSpecification]) -> Ranked:
        """All of these tools with how likely each is."""
        signals, rest, by_words = await self.signals(text, tools)
        weights = tuple((WEIGHTS_BY_WORDS if by_words else WEIGHTS).values())
        scores = {name: sum(map(mul, weights, each)) for name, each in signals.items()}
        best = max(scores.values(), default=0.0)
        chances = {name: math.exp(score - best) for name, score in scores.items()}
        total = sum(chances.values())
        ordered = sorted(chances.items(), key=lambda item: -item[1])
        return Ranked(
            (*((name, chance / total) for name, chance in ordered), *((name, 0.0) for name in rest)), by_words
        )

    async def signals(
        self, text: str, tools: Sequence[ToolSpecification]
    ) -> tuple[dict[str, Signals], list[str], bool]:
        """The evidence for the tools that seem nearest; the names of the others; whether there were only words."""
        text = text[:LONGEST_REQUEST]
        if not tools or not any(map(str.isalnum, text)):
            return {}, [tool.name for tool in tools], self._embedder is None
        catalogue = self._catalogue(tools)
        try:
            meanings = await catalogue.meanings(text, self._embedder)
        except ModelError as error:
            logger.warning("choosing tools by words alone: %s", error)
            meanings = None
        found, rest = catalogue.compare(text, meanings, among=[tool.name for tool in tools])
        return found, rest, meanings is None

    def _catalogue(self, tools: Sequence[ToolSpecification]) -> Catalogue:
        """These tools, prepared; of many, also some more: a run that looks again leaves out what it has."""
        for place, kept in enumerate(self._catalogues):
            same = len(kept.tools) == len(tools)
            if (same or len(kept.tools) - MOST_MORE <= len(tools) >= MANY) and kept.covers(tools):
                self._catalogues.insert(0, self._catalogues.pop(place))
                return kept
        self._catalogues.insert(0, Catalogue(tools))
        del self._catalogues[CATALOGUES_KEPT:]
        return self._catalogues[0]

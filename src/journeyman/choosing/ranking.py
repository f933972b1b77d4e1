"""Which tools serve a request, best first: the choice that needs no language model.

Several things are weighed: what the texts mean (where there is an embedder), which words and concepts they share,
whether the tool does what the request wants done, and whether it takes the values that are in the request.
How much each counts was fitted on tuning sets alone: ``python -m benchmarks.choosing.weights``.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from journeyman.choosing.catalogue import Catalogue, Signals
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Embedder
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import packaged_json

CATALOGUES_KEPT = 8
MANY, MOST_MORE = 64, 200
"""From how many tools on a catalogue that holds so many more is used for them as well."""
LONGEST_REQUEST = 8_000
"""In characters; of a longer one the beginning counts."""

logger = logging.getLogger(__name__)

NAMED = 4.0
"""What counts that a request names a tool outright, or by the number in its name. Set by hand: no request of the sets
does so."""
_NUMBER = re.compile(r"\d+")


def _is_named(name: str, text: str, numbers: frozenset[str]) -> bool:
    if numbers and (own := _NUMBER.findall(name)):
        return numbers.issuperset(own)
    return "_" in name and name in text


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
        # What counts how much, with an embedder and without: see ``Signals``.
        known = packaged_json("journeyman.choosing", "ranking.json")
        weights = known["by_words" if by_words else "by_meaning"].values()
        said = frozenset(_NUMBER.findall(text))
        scores = {
            name: sum(map(mul, weights, each)) + NAMED * _is_named(name, text, said) for name, each in signals.items()
        }
        best = max(scores.values(), default=0.0)
        chances = {name: math.exp(score - best) for name, score in scores.items()}
        total = sum(chances.values())
        ordered = sorted(chances.items(), key=lambda item: -item[1])
        ranked = [(name, chance / total) for name, chance in ordered] + [(name, 0.0) for name in rest]
        return Ranked(tuple(ranked), by_words)

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
        return *catalogue.compare(text, meanings, among=[tool.name for tool in tools]), meanings is None

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

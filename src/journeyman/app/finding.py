"""How runs choose among many tools and look for what is missing. Nothing is loaded before the first look."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from journeyman.core.gaps import ToolGapReport
from journeyman.core.protocols import Embedder
from journeyman.core.specification import ToolSpecification
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.memory.choosing import ToolRanking


@cache
def gap_embedder() -> Embedder | None:
    """The one that the detector's weights were found with, whatever a library itself has; it keeps tools' vectors."""
    from journeyman.retrieval.embedders import default_embedder

    return default_embedder()


@cache
def tool_ranking() -> ToolRanking:
    """The one of this process: it keeps what it knows of the tools that it has ranked."""
    from journeyman.memory.choosing import ToolRanking

    return ToolRanking(embedder=gap_embedder())


class DefaultRanker:
    """Says which tools fit a request, where a run has more than its model is told of; by the library's own embedder
    where it has one."""

    def __init__(self, library: ToolLibrary) -> None:
        self._library = library

    async def rank(self, text: str, tools: Sequence[ToolSpecification], *, k: int) -> Sequence[str]:
        return await self._ranking().rank(text, tools, k=k)

    def _ranking(self) -> ToolRanking:
        if self._library.embedder is None:
            return tool_ranking()
        if (known := _rankings.get(self._library)) is None:
            from journeyman.memory.choosing import ToolRanking

            known = _rankings[self._library] = ToolRanking(embedder=self._library.embedder)
        return known


_rankings: WeakKeyDictionary[ToolLibrary, ToolRanking] = WeakKeyDictionary()
"""Of libraries that have an embedder of their own."""


async def find_gap(
    task_text: str, tools: Sequence[ToolSpecification], confidence: float | None
) -> ToolGapReport | None:
    """What is missing among the tools that a run could use."""
    from journeyman.memory.gaps import ToolGapDetector

    return await ToolGapDetector(tools, embedder=gap_embedder()).detect(task_text, confidence=confidence)

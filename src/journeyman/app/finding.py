"""How runs look for what is missing. Nothing is loaded before the first look."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from journeyman.core.gaps import ToolGapReport
from journeyman.core.protocols import Embedder
from journeyman.core.specification import ToolSpecification


@cache
def gap_embedder() -> Embedder | None:
    """The one that the detector's weights were found with, whatever a library itself has; it keeps tools' vectors."""
    from journeyman.retrieval.embedders import default_embedder

    return default_embedder()


async def find_gap(
    task_text: str, tools: Sequence[ToolSpecification], confidence: float | None
) -> ToolGapReport | None:
    """What is missing among the tools that a run could use."""
    from journeyman.memory.gaps import ToolGapDetector

    return await ToolGapDetector(tools, embedder=gap_embedder()).detect(task_text, confidence=confidence)

"""``app.gaps``: is there a tool for this? What is missing is kept in the store. How it is told is the memory's room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from journeyman.core.gaps import GapRow, ToolGapReport
from journeyman.core.principals import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.protocols import Clock
from journeyman.core.storing import Store
from journeyman.memory.gaps import ToolGapDetector
from journeyman.retrieval.embedders import default_embedder
from journeyman.tools.library import ToolLibrary
from journeyman.tools.tool import Tool


class Gaps:
    """Requests that the tools of a library cannot serve."""

    def __init__(self, store: Store, library: ToolLibrary, *, clock: Clock) -> None:
        self._store = store
        self._library = library
        self._clock = clock
        self._tools: tuple[Tool[..., Any], ...] = ()
        self._detector: ToolGapDetector | None = None

    async def detect(
        self,
        text: str,
        *,
        confidence: float | None = None,
        run_id: str | None = None,
        principal: Principal | None = None,
    ) -> ToolGapReport | None:
        """What is missing for a task, which is then kept; None when the tools at hand seem to do.

        ``confidence`` is how sure a model was, where one was asked; ``run_id`` is the run in which that was,
        on behalf of ``principal``.
        """
        report = await self._current().detect(text, confidence=confidence)
        if report is not None:
            principal_id = None if principal is None else principal.id
            await self._store.gaps.add(report, now=self._clock.time(), run_id=run_id, principal_id=principal_id)
        return report

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[GapRow]:
        """What was missing so far, newest first."""
        return await self._store.gaps.list(principal_id=principal_id, limit=limit, offset=offset)

    def _current(self) -> ToolGapDetector:
        tools = tuple(self._library)
        if self._detector is None or tools != self._tools:
            # Where a gap begins was measured with this embedder, so it is used whatever the library itself has.
            self._detector = ToolGapDetector(ToolLibrary(tools, embedder=default_embedder()))
            self._tools = tools
        return self._detector

"""``app.gaps``: what no tool can do, by demand. Runs report it by themselves; how it is told is the memory's room."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.app.finding import gap_embedder
from journeyman.core.errors import ConfigurationError
from journeyman.core.gaps import Gap, GapRow, ToolGapReport
from journeyman.core.principals import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.protocols import Clock, Model
from journeyman.core.storing import Store
from journeyman.memory.gaps import ToolGapDetector
from journeyman.tools.library import ToolLibrary


class Gaps:
    """Requests that the tools of a library cannot serve."""

    def __init__(self, store: Store, library: ToolLibrary, *, clock: Clock) -> None:
        self._store = store
        self._library = library
        self._clock = clock

    async def detect(
        self,
        text: str,
        *,
        confidence: float | None = None,
        model: Model | None = None,
        run_id: str | None = None,
        principal: Principal | None = None,
    ) -> ToolGapReport | None:
        """What is missing for a task, which is then kept; None when the tools at hand seem to do.

        ``confidence`` is how sure a model was, where one was asked; a ``model`` is asked here, and nothing that it
        wants to call is run. ``run_id`` is the run in which that was, on behalf of ``principal``.
        """
        detector = ToolGapDetector(self._library, embedder=gap_embedder(), model=model)
        report = await detector.detect(text, confidence=confidence)
        if report is not None:
            principal_id = None if principal is None else principal.id
            await self._store.gaps.add(report, now=self._clock.time(), run_id=run_id, principal_id=principal_id)
        return report

    detect_missing_tools = detect

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[GapRow]:
        """Every time that something was missing, newest first."""
        return await self._store.gaps.list(principal_id=principal_id, limit=limit, offset=offset)

    async def demand(
        self,
        *,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        dismissed: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Gap]:
        """What is missing, each gap once, those that most people asked for first."""
        return await self._store.gaps.demand(principal_id=principal_id, dismissed=dismissed, limit=limit, offset=offset)

    async def get(self, key: str, *, principal_id: PrincipalFilter = ANY_PRINCIPAL) -> Gap | None:
        """One gap, dismissed or not; counted as far as the principal may see."""
        found = await self._store.gaps.demand(principal_id=principal_id, dismissed=True, key=key, limit=1)
        return found[0] if found else None

    async def dismiss(self, key: str, *, by: str | None = None) -> None:
        """Leave a gap out of ``demand`` from now on. Raises ConfigurationError where there is none with this key."""
        if not await self._store.gaps.dismiss(key, by=by, now=self._clock.time()):
            raise ConfigurationError(f"there is no gap {key!r}; 'journeyman gaps list' shows their ids")

"""Forgets what is old, from time to time, for as long as the app is open."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Literal, TypeAlias

from journeyman.app.relay import KEPT_SECONDS
from journeyman.core.errors import StoreError
from journeyman.core.storing import Store

if TYPE_CHECKING:
    from journeyman.app.traces import Traces

logger = logging.getLogger("journeyman.app")

PURGE_SECONDS = 3600.0
RUNS_KEPT_SECONDS = 7 * 24 * 3600.0

Kept: TypeAlias = float | Literal["runs"] | None
"""How long everything is kept; ``"runs"``: ended runs and traces for ``RUNS_KEPT_SECONDS``; None: all for ever."""


class Retention:
    """Purges beside the rest: leases are renewed however much has piled up."""

    def __init__(self, store: Store, traces: Traces | None, kept: Kept) -> None:
        self._store = store
        self._traces = traces
        self._kept = kept
        self._next = 0.0
        self.task: asyncio.Task[None] | None = None
        """The latest purge."""

    def in_time(self, now: float) -> None:
        """Begin to purge if it is time, and the last one is over."""
        if self._kept is None or now < self._next or (self.task is not None and not self.task.done()):
            return
        self._next = now + PURGE_SECONDS
        self.task = asyncio.create_task(self._purge(now, self._kept))

    async def _purge(self, now: float, kept: float | Literal["runs"]) -> None:
        before = now - (RUNS_KEPT_SECONDS if kept == "runs" else kept)
        try:
            await self._store.signals.purge(before=now - KEPT_SECONDS)
            if kept == "runs":
                await self._store.runs.purge(ended_before=before)
            else:
                await self._store.purge(before=before, shrink=False)  # what is free is used again
            if self._traces is not None:
                self._traces.purge(before=before)
        except StoreError as error:
            logger.warning("the store is away, old runs stay for now: %s", error)
        except Exception:
            logger.exception("old runs could not be purged; it is tried again")

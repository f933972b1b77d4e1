"""Reasoning traces as files, one ``<task_id>.json`` a run, for people who debug with a text editor; and how long
they and all else are kept.

Two runs of one task, and two tasks whose ids are written alike in a file's name, do not overwrite each other: the
later trace has the run's id in its name, too.
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path
from typing import Literal, TypeAlias

from journeyman.app.handles import KEPT_SECONDS
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import StoreError
from journeyman.core.events import Event, RunFailed, RunFinished
from journeyman.core.runs import AgentResponse
from journeyman.stores.store import SqlStore

logger = logging.getLogger("journeyman.app")
trace_logger = logging.getLogger("journeyman.traces")

PURGE_SECONDS = 3600.0
RUNS_KEPT_SECONDS = 7 * 24 * 3600.0
Kept: TypeAlias = float | Literal["runs"] | None
"""How long everything is kept; ``"runs"``: ended runs and traces for ``RUNS_KEPT_SECONDS``; None: all for ever."""


class Traces:
    """A folder of traces. Losing one never harms a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def hear(self, event: Event) -> None:
        if not isinstance(event, RunFinished | RunFailed) or event.response is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(event.response)
        except OSError as error:
            trace_logger.warning("a trace was not written: %s", error, extra={LOG_FIELDS: {"run_id": event.run_id}})

    def _write(self, response: AgentResponse) -> None:
        task, run = (re.sub(r"[^\w.\-]", "_", name)[:100] for name in (response.task_id, response.run_id))
        text = response.model_dump_json(indent=2)
        try:
            # One system call decides who gets the name, also among processes; it is the same file on disks that
            # do not tell small letters from capitals.
            with (self._folder / f"{task}.json").open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            (self._folder / f"{task}.{run}.json").write_text(text, encoding="utf-8")

    def purge(self, *, before: float) -> int:
        """Delete traces last written before then; returns how many."""
        old = [path for path in self._folder.glob("*.json") if path.stat().st_mtime < before]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)


class Retention:
    """Forgets what is old, from time to time, for as long as the app is open.

    It purges beside the rest: leases are renewed however much has piled up.
    """

    def __init__(self, store: SqlStore, traces: Traces | None, kept: Kept) -> None:
        self._store = store
        self._traces = traces
        self._kept = kept
        self._next = float("-inf")
        self.task: asyncio.Task[None] | None = None
        """The latest purge."""

    def in_time(self, now: float) -> None:
        """Begin to purge if it is time, as the process counts it, and the last one is over."""
        if self._kept is None or now < self._next or (self.task is not None and not self.task.done()):
            return
        self._next = now + PURGE_SECONDS
        self.task = asyncio.create_task(self._purge(self._kept))

    async def _purge(self, kept: float | Literal["runs"]) -> None:
        try:
            now = await self._store.now()  # a process whose clock is ahead would forget what others need
            before = now - (RUNS_KEPT_SECONDS if kept == "runs" else kept)
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

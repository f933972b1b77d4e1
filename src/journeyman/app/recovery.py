"""Runs that do not recover: those on which one process after another dies, and those that no process can go on with."""

from __future__ import annotations

import logging
from collections.abc import Collection

from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ErrorCategory, ErrorInfo, JourneymanError, Severity
from journeyman.core.events import CallFinished, CallStarted, RunSuspended
from journeyman.core.protocols import Clock, Listener
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunRow, Store
from journeyman.execution.recorder import Recorder
from journeyman.stores.store_retry import RetryingJournal, retry_store_faults

logger = logging.getLogger("journeyman.app")

LATEST = 200
"""Facts in which the calls are looked for that were under way when a process died."""
TOLD_AFTER_SECONDS = 5.0
"""How long a run may be without a process that can go on with it, before whoever waits is told: another may be near."""


async def give_up(store: Store, run_id: str, *, epoch: int, clock: Clock, heard: Listener) -> None:
    """Leave a run to a person. It is not loaded for that: whatever it does next takes the process with it."""
    row = await retry_store_faults(lambda: store.runs.get(run_id), clock=clock, run_id=run_id)
    if row is None:
        return
    after = max(0, row.last_seq - LATEST)
    started: dict[str, str] = {}
    for fact in await retry_store_faults(lambda: store.runs.facts(run_id, after=after), clock=clock, run_id=run_id):
        if isinstance(fact, CallStarted):
            started[fact.call_id] = fact.tool_name
        elif isinstance(fact, CallFinished):
            started.pop(fact.record.call_id, None)
    logger.error("the run is given up: processes die on it", extra={LOG_FIELDS: {"run_id": run_id}})
    error = _stuck(row, sorted(set(started.values())))
    said = f"{error.message}. {error.user_guidance}"
    await retry_store_faults(
        lambda: store.runs.note_trouble(run_id, said, now=clock.time()), clock=clock, run_id=run_id
    )
    journal = RetryingJournal(run_id, store.runs, epoch=epoch, clock=clock)
    recorder = Recorder(run_id, journal, clock=clock, listeners=[heard], seq=row.last_seq)
    await recorder.record(RunSuspended(status=RunStatus.STUCK, waiting_for=(), error=error), sync=True)


def _stuck(row: RunRow, under_way: Collection[str]) -> ErrorInfo:
    during = f" during {', '.join(map(repr, under_way))}" if under_way else ""
    return ErrorInfo(
        code="RUN_STUCK",
        message=f"{row.deaths} processes in a row died, or were lost, while they worked on this run{during}; "
        "it is not taken up again by itself",
        category=ErrorCategory.SYSTEM_ERROR,
        severity=Severity.CRITICAL,
        user_guidance="Look at what the step does to its process (memory, signals, exits). "
        f"'journeyman runs resume {row.id}' tries again, 'journeyman runs cancel {row.id}' ends it",
    )


def trouble_of(row: RunRow, *, now: float) -> JourneymanError | None:
    """Why no process that has tried can go on with a run, if none can for a while and none holds it."""
    if row.trouble is None or row.trouble_since is None or row.status.ended or row.status.waiting:
        return None
    held = row.owner is not None and row.lease_until > now
    if held or now - row.trouble_since < TOLD_AFTER_SECONDS:
        return None
    return JourneymanError(
        f"no process that has tried can go on with run {row.id!r}: {row.trouble}; "
        "start one that has what is missing, or cancel the run"
    )

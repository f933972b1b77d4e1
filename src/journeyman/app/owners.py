"""Who holds a run: a name for an app in this process, whether another process is still alive, what becomes of its runs.

What a process knows of others by their ids holds for its own kernel and its own PID namespace: two containers may have
the same host name and the same process ids. Of all others only their leases and their silence can tell.

Given up are runs on which one process after another dies; told of are those that no process can go on with.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ErrorCategory, ErrorInfo, JourneymanError, Severity
from journeyman.core.events import CallFinished, CallStarted, RunSuspended
from journeyman.core.protocols import Clock, Listener
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunRow
from journeyman.execution.recorder import Recorder
from journeyman.stores.journal import RetryingJournal, retrying
from journeyman.stores.store import SqlStore

logger = logging.getLogger("journeyman.app")

LATEST = 200
"""Facts in which the calls are looked for that were under way when a process died."""
TOLD_AFTER_SECONDS = 5.0
"""How long a run may be without a process that can go on with it, before whoever waits is told: another may be near."""
Liveness: TypeAlias = Literal["dead", "alive", "unknown"]


def new_owner() -> str:
    """Host, process id, when the process started (ids are used again), a number (a process may hold two apps), and
    where all that holds: the boot of the kernel and the PID namespace."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_started(pid)}/{os.urandom(4).hex()}/{_boot()}/{_namespace()}"


def liveness(owner: str, *, one_machine: bool = False) -> Liveness:
    """Whether a process lives. ``one_machine``: whoever works on this store shares our kernel, if it is still up."""
    host, pid, started, _, boot, namespace, *_ = *owner.split("/"), *[""] * 6
    if not boot or not _boot():
        return "unknown"
    if boot != _boot():
        return "dead" if one_machine else "unknown"
    if host != socket.gethostname() or not namespace or namespace != _namespace() or not pid.isdigit():
        return "unknown"
    return "alive" if _started(int(pid)) == started else "dead"


def in_words(owner: str) -> str:
    """An owner for people."""
    host, pid, *_ = *owner.split("/"), ""
    return f"process {pid} on {host}"


def is_stopped(owner: str) -> bool:
    """Whether a process is there, and was stopped by a signal or a debugger."""
    return liveness(owner) == "alive" and _stat(int(owner.split("/")[1]))[:1] in (["T"], ["t"])


def dead_owners(owners: Iterable[str], *, one_machine: bool = False) -> list[str]:
    """Those of the owners that are known to be gone."""
    return [owner for owner in owners if liveness(owner, one_machine=one_machine) == "dead"]


@cache
def _boot() -> str:
    """This boot of this kernel; empty where nothing tells."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "" if Path("/proc/self").exists() else socket.gethostname()


def _namespace() -> str:
    """In which process ids mean something: the number of the PID namespace; empty where we cannot look at it."""
    if not Path("/proc/self").exists():
        return "none"
    try:
        # A namespace may have been made without a /proc of its own: then the one there is shows other processes.
        seen = os.readlink("/proc/self") == str(os.getpid())
        return os.readlink("/proc/self/ns/pid").strip("pid:[]") if seen else ""
    except OSError:
        return ""


def _started(pid: int) -> str:
    """The start time of a process in clock ticks since boot; empty when there is no such process."""
    if fields := _stat(pid):
        return "" if fields[0] in ("Z", "X") else fields[19]  # a zombie counts as gone
    return "" if Path("/proc/self").exists() else _alive(pid)


def _stat(pid: int) -> list[str]:
    """What the kernel says of a process, from its state on; nothing where it says nothing."""
    try:
        # The name in parentheses may hold spaces.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _alive(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"


# --- runs that do not recover


async def give_up(store: SqlStore, run_id: str, *, epoch: int, clock: Clock, heard: Listener) -> None:
    """Leave a run to a person. It is not loaded for that: whatever it does next takes the process with it."""
    runs = retrying(store.runs, clock=clock, run_id=run_id)
    row = await runs.get(run_id)
    if row is None:
        return
    started: dict[str, str] = {}
    for fact in await runs.facts(run_id, after=max(0, row.last_seq - LATEST)):
        if isinstance(fact, CallStarted):
            started[fact.call_id] = fact.tool_name
        elif isinstance(fact, CallFinished):
            started.pop(fact.record.call_id, None)
    logger.error("the run is given up: processes die on it", extra={LOG_FIELDS: {"run_id": run_id}})
    error = _stuck(row, sorted(set(started.values())))
    await runs.note_trouble(run_id, f"{error.message}. {error.user_guidance}")
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


def trouble_of(row: RunRow) -> JourneymanError | None:
    """Why no process that has tried can go on with a run, if none can for a while and none holds it."""
    if row.trouble is None or row.trouble_seconds is None or row.status.ended or row.status.waiting:
        return None
    if row.owner is not None or row.trouble_seconds < TOLD_AFTER_SECONDS:
        return None
    return JourneymanError(
        f"no process that has tried can go on with run {row.id!r}: {row.trouble}; "
        "start one that has what is missing, or cancel the run"
    )

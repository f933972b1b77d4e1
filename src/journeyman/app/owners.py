"""Who holds a run: a name for an app in this process, whether another process is still alive, what becomes of its runs.

What a process knows of others by their ids holds for its own kernel and its own PID namespace: two containers may have
the same host name and the same process ids. Of all others only their leases and their silence can tell.

Given up are runs on which one process after another dies; told of are those that no process can go on with.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ErrorCategory, ErrorInfo, JourneymanError, Severity
from journeyman.core.events import CallFinished, CallStarted, RunSuspended
from journeyman.core.protocols import Clock, Listener
from journeyman.core.runs import RunStatus
from journeyman.core.storing import CallReport, RunRow
from journeyman.execution.recorder import Recorder
from journeyman.stores.journal import RetryingJournal, retrying

if TYPE_CHECKING:
    from journeyman.stores.runs import SqlRuns
    from journeyman.stores.store import SqlStore

logger = logging.getLogger("journeyman.app")

LATEST = 200
"""Facts in which the calls are looked for that were under way when a process died."""
TOLD_AFTER_SECONDS = 5.0
"""How long a run may be without a process that can go on with it, before whoever waits is told: another may be near."""
SILENT_LEASES = 3
"""A process that cannot be seen from here counts as dead when it was silent for so many leases. It announces itself
several times in one; if it lives all the same, its report still settles the call."""
SILENT_LEASES_ALIVE = 20
"""One that can be seen to live is waited for so long: it was stopped, or its event loop is blocked."""

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


# --- leases, and what became of the calls of processes that have lost theirs


class Awaited(NamedTuple):
    """A process whose report on a call is waited for."""

    owner: str
    seconds_left: float
    """After which it is taken for gone, unless something is heard of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The leases of one owner on one store, and what is known there of the processes that held a run before.

    What the database is away for is asked again until it is back.
    """

    store: SqlStore
    clock: Clock
    owner: str
    lease_seconds: float
    poll_seconds: float

    def _runs(self, run_id: str) -> SqlRuns:
        return retrying(self.store.runs, clock=self.clock, run_id=run_id)

    async def take(self, run_id: str, *, principal_limit: int | None = None, in_turn: bool = True) -> int | None:
        """The epoch under which the run is held here now; None where somebody else has it, or it is not its turn."""
        runs = self._runs(run_id)
        claim = partial(runs.claim, run_id, owner=self.owner, lease_seconds=self.lease_seconds)
        claim = partial(claim, principal_limit=principal_limit, in_turn=in_turn)
        if (epoch := await claim()) is not None:
            return epoch
        row = await runs.get(run_id)
        dead = () if row is None or row.owner is None else self.dead([row.owner])
        return await claim(dead=dead) if dead else None

    async def give_back(self, run_id: str, epoch: int) -> None:
        # As long as it takes: this process renews the leases it holds, and nobody else could have the run.
        await self._runs(run_id).release(run_id, owner=self.owner, epoch=epoch)

    async def renew(self) -> Collection[str]:
        """Renew all leases; returns the runs among them that somebody elsewhere wants cancelled."""
        return await self.store.runs.renew(self.owner, lease_seconds=self.lease_seconds)

    def held(self, row: RunRow) -> bool:
        """Whether a living process works on a run, as far as its lease and its process id tell."""
        return row.owner is not None and not self.dead([row.owner])

    def dead(self, owners: Iterable[str]) -> list[str]:
        """Those of the owners that are known to be gone."""
        return dead_owners(owners, one_machine=not self.store.shared_limits)

    async def gone(self, owner: str, *, silent_seconds: float) -> bool:
        """Whether a program that carries out runs is not there any more, as its process id or its silence tells."""
        if self.dead([owner]):
            return True
        return owner not in await self.store.programs.executing(silent_seconds=silent_seconds)

    async def outcome(self, started: CallStarted, *, wait: bool) -> CallReport | None:
        """The report of the process that began a call; waited for where that may be alive, and for no other."""
        waiting_for: list[str] = []
        while True:
            report = await self._runs(started.run_id).reported(started)
            if report.reported:
                return report
            alive = self._alive(report)
            if not alive or not wait:
                return None
            if (owners := [awaited.owner for awaited in alive]) != waiting_for:
                waiting_for = owners
                fields = {
                    "run_id": started.run_id,
                    "call_id": started.call_id,
                    "processes": ", ".join(owners),
                    "at_most_seconds": round(max(awaited.seconds_left for awaited in alive)),
                }
                logger.warning("a call may be under way in the process before us: waiting", extra={LOG_FIELDS: fields})
            await self.clock.sleep(self.poll_seconds)

    async def awaited(self, started: CallStarted) -> Sequence[Awaited]:
        """Whose report on a call is waited for by whoever has its run."""
        report = await self._runs(started.run_id).reported(started)
        return () if report.reported else self._alive(report)

    def _alive(self, report: CallReport) -> Sequence[Awaited]:
        """Those who may report something. Not we: a process that has a run again is done with what it began before."""
        alive = []
        for former in report.at_work:
            known = liveness(former.owner, one_machine=not self.store.shared_limits)
            leases = {"dead": -1, "alive": SILENT_LEASES_ALIVE}.get(known, SILENT_LEASES)
            left = leases * self.lease_seconds - former.silent_seconds
            if former.owner != self.owner and left >= 0:
                alive.append(Awaited(former.owner, left))
        return alive


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

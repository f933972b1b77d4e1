"""Which runs this process may work on: the leases it holds, the places it has, and the runs that it gives up.

Also what became of the calls of processes that have lost their leases. Given up are runs on which one process after
another dies; told of are those that no process can go on with.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from journeyman.app.owners import dead_owners, fate
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ErrorCategory, ErrorInfo, JourneymanError, Severity
from journeyman.core.events import CallFinished, CallStarted, RunSuspended
from journeyman.core.protocols import Clock, Listener, Testimony
from journeyman.core.runs import RunStatus
from journeyman.core.storing import CallReport, RunRow
from journeyman.execution.recorder import Recorder
from journeyman.stores.journal import RetryingJournal, retry_store_faults

if TYPE_CHECKING:
    from journeyman.stores.store import SqlStore

NOT_KNOWN = "?"
"""In place of the principal of a run that is being loaded."""
MOST_WAITING = 1_000
"""Enough for a while: to look at all that is due each time would take ever longer."""
LATEST = 200
"""Facts in which the calls are looked for that were under way when a process died."""
TOLD_AFTER_SECONDS = 5.0
"""How long a run may be without a process that can go on with it, before whoever waits is told: another may be near."""

logger = logging.getLogger("journeyman.app")

SILENT_LEASES = 3
"""A process that cannot be seen from here counts as dead when it was silent for so many leases. It announces itself
several times in one; if it lives all the same, its report still settles the call."""
SILENT_LEASES_ALIVE = 20
"""One that can be seen to live is waited for so long: it was stopped, or its event loop is blocked."""


class Claims:
    """Of one owner on one store. What the database is away for is asked again until it is back."""

    def __init__(self, store: SqlStore, *, clock: Clock, owner: str, lease_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._lease_seconds = lease_seconds

    async def take(self, run_id: str, *, principal_limit: int | None = None, in_turn: bool = True) -> int | None:
        """The epoch under which the run is held here now; None where somebody else has it, or it is not its turn."""

        async def claim(dead: Collection[str] = ()) -> int | None:
            return await self._store.runs.claim(
                run_id,
                owner=self._owner,
                lease_seconds=self._lease_seconds,
                dead=dead,
                principal_limit=principal_limit,
                in_turn=in_turn,
            )

        async def claim_from_anybody() -> int | None:
            if (epoch := await claim()) is not None:
                return epoch
            row = await self._store.runs.get(run_id)
            dead = () if row is None or row.owner is None else self.dead([row.owner])
            return await claim(dead) if dead else None

        return await retry_store_faults(claim_from_anybody, clock=self._clock, run_id=run_id)

    async def give_back(self, run_id: str, epoch: int) -> None:
        # As long as it takes: this process renews the leases it holds, and nobody else could have the run.
        release = partial(self._store.runs.release, run_id, owner=self._owner, epoch=epoch)
        await retry_store_faults(release, clock=self._clock, run_id=run_id)

    async def renew(self) -> Collection[str]:
        """Renew all leases; returns the runs among them that somebody elsewhere wants cancelled."""
        return await self._store.runs.renew(self._owner, lease_seconds=self._lease_seconds)

    def held(self, row: RunRow) -> bool:
        """Whether a living process works on a run, as far as its lease and its process id tell."""
        return row.owner is not None and not self.dead([row.owner])

    def dead(self, owners: Iterable[str]) -> list[str]:
        """Those of the owners that are known to be gone."""
        return dead_owners(owners, one_machine=not self._store.shared_limits)

    async def gone(self, owner: str, *, silent_seconds: float) -> bool:
        """Whether a program that carries out runs is not there any more, as its process id or its silence tells."""
        if self.dead([owner]):
            return True
        return owner not in await self._store.programs.executing(silent_seconds=silent_seconds)


@dataclass(frozen=True, slots=True)
class Awaited:
    """A process whose report on a call is waited for."""

    owner: str
    seconds_left: float
    """After which it is taken for gone, unless something is heard of it."""


class StoreWitness:
    """Waits for the report of the process that began a call, where it may be alive, and for no other."""

    def __init__(self, store: SqlStore, *, clock: Clock, owner: str, lease_seconds: float, poll_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds

    async def outcome(self, started: CallStarted, *, wait: bool) -> Testimony | None:
        waiting_for: list[str] = []
        while True:
            found = await self._look(started)
            if found.reported:
                return Testimony(found.record)
            alive = self._alive(found)
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
            await self._clock.sleep(self._poll_seconds)

    async def awaited(self, started: CallStarted) -> Sequence[Awaited]:
        """Whose report on a call is waited for by whoever has its run."""
        found = await self._look(started)
        return () if found.reported else self._alive(found)

    async def _look(self, started: CallStarted) -> CallReport:
        look = partial(self._store.runs.reported, started)
        return await retry_store_faults(look, clock=self._clock, run_id=started.run_id)

    def _alive(self, found: CallReport) -> Sequence[Awaited]:
        """Those who may report something. Not we: a process that has a run again is done with what it began before."""
        others = (former for former in found.at_work if former.owner != self._owner)
        awaited = (Awaited(former.owner, self._patience(former.owner) - former.silent_seconds) for former in others)
        return [process for process in awaited if process.seconds_left >= 0]

    def _patience(self, owner: str) -> float:
        """How long a process may be silent, in seconds."""
        known = fate(owner, one_machine=not self._store.shared_limits)
        leases = {"dead": -1, "alive": SILENT_LEASES_ALIVE}.get(known, SILENT_LEASES)
        return leases * self._lease_seconds


# --- places


class Places:
    """Counts how many runs are worked on here at once, and each principal's share of that; begins nothing itself.

    Due runs come from the store in an order in which principals take turns. What finds no place is kept in that order
    and begun when a place is free, without another look at the store; the next regular look replaces it.
    """

    def __init__(self, places: int) -> None:
        self.count = places
        """Runs worked on here at once."""
        self._taken: dict[str, str | None] = {}
        self._by_principal: Counter[str | None] = Counter()
        """The same counted, since everybody who waits is looked at whenever a place is free."""
        self._waiting: dict[str, str | None] = {}

    @property
    def share(self) -> int:
        """How many places the runs of one principal may take: some are left to whoever comes next."""
        return self.count - self.count // 4

    @property
    def crowded(self) -> bool:
        return len(self._taken) >= self.share

    @property
    def waited_for(self) -> bool:
        return bool(self._waiting)

    @property
    def full(self) -> bool:
        """Whether there is enough to go on with until the next look."""
        return len(self._waiting) >= MOST_WAITING

    def take(self, run_id: str, principal_id: str | None) -> None:
        self.leave(run_id)
        self._taken[run_id] = principal_id
        self._by_principal[principal_id] += 1

    def leave(self, run_id: str) -> None:
        if run_id in self._taken:
            self._by_principal[self._taken.pop(run_id)] -= 1

    def free_for(self, principal_id: str | None) -> bool:
        """Whether there is a place for a run of this principal. Who has none is not held to a share."""
        if not self.crowded:
            return True
        if len(self._taken) >= self.count:
            return False
        if principal_id is None:
            return True
        return self._by_principal[principal_id] + self._by_principal[NOT_KNOWN] < self.share

    def wait(self, run_id: str, principal_id: str | None) -> None:
        self._waiting[run_id] = principal_id

    def forget_waiting(self) -> None:
        self._waiting.clear()

    def next(self) -> Iterator[tuple[str, str | None]]:
        """Runs that have waited and may be begun now, one after another as places are taken."""
        while self._waiting and len(self._taken) < self.count:
            found = next((item for item in self._waiting.items() if self.free_for(item[1])), None)
            if found is None:
                return
            del self._waiting[found[0]]
            yield found


# --- runs that do not recover


async def give_up(store: SqlStore, run_id: str, *, epoch: int, clock: Clock, heard: Listener) -> None:
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
    await retry_store_faults(lambda: store.runs.note_trouble(run_id, said), clock=clock, run_id=run_id)
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

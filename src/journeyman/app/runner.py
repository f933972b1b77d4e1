"""Which process works on which run: claims, leases, waking, cancelling, handing over.

A run is worked on by whoever holds its lease; the store refuses everybody else. ``wake`` and ``tick`` are the only
ways in which a run is begun: the one when something happened to it, the other by looking for what is due.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from journeyman.agent.ending import interrupted
from journeyman.agent.run import Run, advance
from journeyman.app.assembly import Shared
from journeyman.app.handles import UnderWay, Watches, send_signals
from journeyman.app.owners import dead_owners, give_up, is_stopped, liveness, trouble_of
from journeyman.app.traces import Kept, Retention
from journeyman.core.approvals import Label
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ConfigurationError, JournalConflictError, JourneymanError, StoreError
from journeyman.core.events import CallFinished, CallStarted, Event, MessageReceived, StepFinished
from journeyman.core.runs import RunStatus
from journeyman.core.storing import SHORTEST_LEASE, CallReport, DueRun, RunOrder, RunRow, checked_lease
from journeyman.stores.journal import retrying

if TYPE_CHECKING:
    from journeyman.app.traces import Traces
    from journeyman.app.worker import JobQueue
    from journeyman.stores.runs import SqlRuns

logger = logging.getLogger("journeyman.app")

NOT_KNOWN = "?"
"""In place of the principal of a run that is being loaded."""
MOST_WAITING = 1_000
"""Enough for a while: to look at all that is due each time would take ever longer."""
_FORGET_SECONDS = 60.0
"""How often runs that others have ended are forgotten here."""
ALIVE_SECONDS = 30.0
"""A program that has not announced itself for so long is taken for dead."""
_PROGRESS = (MessageReceived, CallFinished, StepFinished)
_CLOSE_SECONDS = 1.0
"""How long is waited for what should end at once, when the app is closed."""
_CANCELLATIONS = 5
"""How often a run that is under way is cancelled then, before it is left behind."""


SILENT_LEASES = 3
"""A process that cannot be seen from here counts as dead when it was silent for so many leases. It announces itself
several times in one; if it lives all the same, its report still settles the call."""
SILENT_LEASES_ALIVE = 20
"""One that can be seen to live is waited for so long: it was stopped, or its event loop is blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """How runs are worked on."""

    concurrency: int = 64
    """Runs worked on here at once."""
    principal_concurrency: int | None = None
    """Runs of one principal worked on at once, anywhere."""
    lease_seconds: float = 30.0
    poll_seconds: float = 1.0
    grace_seconds: float = 10.0
    """How long steps under way may take to finish when the app is closed."""
    retention_seconds: Kept = "runs"
    """How long anything is kept that ``store.purge`` forgets, and traces; None keeps it for ever.

    Unless it is set, ended runs and traces are kept for ``RUNS_KEPT_SECONDS`` and the rest for ever.
    """
    max_recoveries: int = 5
    """How many processes may die on a run, one after another and without progress, before it is left to a person."""

    def __post_init__(self) -> None:
        checked_lease(self.lease_seconds, least=SHORTEST_LEASE)


class Operation(TypedDict, total=False):
    """How runs are worked on; see ``RunnerSettings``."""

    concurrency: int
    principal_concurrency: int | None
    lease_seconds: float
    poll_seconds: float
    grace_seconds: float
    retention_seconds: Kept
    max_recoveries: int


# --- what this process holds, and has room for


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

    shared: Shared
    settings: RunnerSettings

    def runs(self, run_id: str) -> SqlRuns:
        return retrying(self.shared.store.runs, clock=self.shared.clock, run_id=run_id)

    async def take(self, run_id: str, *, principal_limit: int | None = None, in_turn: bool = True) -> int | None:
        """The epoch under which the run is held here now; None where somebody else has it, or it is not its turn."""
        runs = self.runs(run_id)
        claim = partial(runs.claim, run_id, owner=self.shared.owner, lease_seconds=self.settings.lease_seconds)
        claim = partial(claim, principal_limit=principal_limit, in_turn=in_turn)
        if (epoch := await claim()) is not None:
            return epoch
        row = await runs.get(run_id)
        dead = () if row is None or row.owner is None else self.dead([row.owner])
        return await claim(dead=dead) if dead else None

    async def give_back(self, run_id: str, epoch: int) -> None:
        # As long as it takes: this process renews the leases it holds, and nobody else could have the run.
        await self.runs(run_id).release(run_id, owner=self.shared.owner, epoch=epoch)

    async def renew(self) -> Collection[str]:
        """Renew all leases; returns the runs among them that somebody elsewhere wants cancelled."""
        return await self.shared.store.runs.renew(self.shared.owner, lease_seconds=self.settings.lease_seconds)

    def held(self, row: RunRow) -> bool:
        """Whether a living process works on a run, as far as its lease and its process id tell."""
        return row.owner is not None and not self.dead([row.owner])

    def dead(self, owners: Iterable[str]) -> list[str]:
        """Those of the owners that are known to be gone."""
        return dead_owners(owners, one_machine=not self.shared.store.shared_limits)

    async def gone(self, owner: str, *, silent_seconds: float) -> bool:
        """Whether a program that carries out runs is not there any more, as its process id or its silence tells."""
        if self.dead([owner]):
            return True
        return owner not in await self.shared.store.programs.executing(silent_seconds=silent_seconds)

    async def outcome(self, started: CallStarted, *, wait: bool) -> CallReport | None:
        """The report of the process that began a call; waited for where that may be alive, and for no other."""
        waiting_for: list[str] = []
        while True:
            report = await self.runs(started.run_id).reported(started)
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
            await self.shared.clock.sleep(self.settings.poll_seconds)

    async def awaited(self, started: CallStarted) -> Sequence[Awaited]:
        """Whose report on a call is waited for by whoever has its run."""
        report = await self.runs(started.run_id).reported(started)
        return () if report.reported else self._alive(report)

    def _alive(self, report: CallReport) -> Sequence[Awaited]:
        """Those who may report something. Not we: a process that has a run again is done with what it began before."""
        alive = []
        for former in report.at_work:
            known = liveness(former.owner, one_machine=not self.shared.store.shared_limits)
            leases = {"dead": -1, "alive": SILENT_LEASES_ALIVE}.get(known, SILENT_LEASES)
            left = leases * self.settings.lease_seconds - former.silent_seconds
            if former.owner != self.shared.owner and left >= 0:
                alive.append(Awaited(former.owner, left))
        return alive


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
            waiting = next((item for item in self._waiting.items() if self.free_for(item[1])), None)
            if waiting is None:
                return
            del self._waiting[waiting[0]]
            yield waiting


# --- working on runs


@dataclass(slots=True)
class _Work:
    """A run this process is working on."""

    task: asyncio.Task[None]
    run: Run | None = None
    again: bool = False
    """Whether something happened to the run meanwhile, so that it may go on at once."""
    cancelled: bool = False
    epoch: int = 0
    unproved: bool = False
    """Whether processes have died on it, or could not go on with it, and it has not got any further since."""
    under_way: UnderWay = field(default_factory=UnderWay)


class Runner:
    """Works on the runs of a store that this process is responsible for."""

    def __init__(
        self, shared: Shared, settings: RunnerSettings, *, queue: JobQueue | None, traces: Traces | None
    ) -> None:
        self.shared = shared
        self.store = shared.store
        self.clock = shared.clock
        self.settings = settings
        self.queue = queue
        """Where runs are put for worker processes, instead of being worked on here."""
        self.places = Places(settings.concurrency)
        self.watches = Watches()
        self.claims = shared.executors.claims = Claims(shared=shared, settings=settings)
        self._retention = Retention(self.store, traces, settings.retention_seconds)
        self._traces = traces
        self._working: dict[str, _Work] = {}
        self._held: set[str] = set()
        """Runs that are being settled or cancelled here: not to be begun meanwhile."""
        self._holding = asyncio.Lock()
        """One of these at a time: a claim does not exclude a second claim by the same owner."""
        self._adopted: dict[str, RunOrder | None] = {}
        """Runs this process is responsible for, with the order of those that were stored here and not begun."""
        self._with_text: set[str] = set()
        """Runs of this process whose text is streamed and kept from the start: somebody will come to read it."""
        self._woken: set[str] = set()
        """Runs to which something happened here since the last look."""
        self._next_look = 0.0
        self._broken: dict[str, JourneymanError] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        """Set when something may be due."""
        self._leaving = False
        self._housekeeping: asyncio.Task[None] | None = None
        self.rated: Callable[[str, Label], Awaitable[None]] | None = None
        """Told when a person has rated a run."""
        self.streams_text = False
        """Whether models stream although nobody listens here: in a worker, whose runs others show."""
        self._sending: asyncio.Task[None] | None = None
        self.changed: set[str] = set()
        """Runs of which there is something new since signals were sent; with ``news``, where readers can be told."""
        self.news = asyncio.Event()
        self._line: dict[str, int] = {}
        self._line_until = 0.0

    # --- opening and closing

    async def open(self) -> None:
        await self._announce()
        self._housekeeping = asyncio.create_task(self._keep())
        told = send_signals(self) if self.queue is None else self.queue.listen(self.watches.tell)
        self._sending = asyncio.create_task(told)

    async def close(self) -> None:
        """Finish the steps under way and release what is left."""
        tasks = [task for task in (self._housekeeping, self._sending, self._retention.task) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)
        await self.release_all()
        if self._background:
            await asyncio.wait(self._background, timeout=_CLOSE_SECONDS)
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.store.programs.leave(self.shared.owner)

    async def release_all(self) -> None:
        """Let the steps under way finish; what is not done in time is left to the process that resumes the run."""
        self._leaving = True
        tasks = []
        for work in self._working.values():
            if work.run is not None:
                work.run.leaving = True
            tasks.append(work.task)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self.settings.grace_seconds)
        for work in self._working.values():
            if work.task in late and work.run is not None:
                # As if this process had died: what was under way is settled by the process that resumes the run.
                work.run.recorder.close()
        for _ in range(_CANCELLATIONS):
            if not late:
                return
            for task in late:  # again, if need be: one that waits for a database that is away has more to give up
                task.cancel()
            _, late = await asyncio.wait(late, timeout=_CLOSE_SECONDS)
        if late:
            logger.warning(
                "runs do not let themselves be interrupted: left behind", extra={LOG_FIELDS: {"runs": len(late)}}
            )

    # --- waking

    async def adopt(self, run_id: str, *, order: RunOrder | None = None, priority: int = 0) -> None:
        """Take responsibility for a new run and begin it; ``order`` saves reading back what was just stored."""
        self._adopted[run_id] = order if self.queue is None else None
        if self.queue is None:
            self.wake(run_id)
            return
        try:
            await self.queue.put(run_id, priority=priority, place=await self.store.runs.place(run_id))
        except StoreError as error:
            # The run is kept, and workers find it by themselves: told of a fault, its caller would begin another one.
            logger.warning("no job could be put for a new run, workers will find it: %s", error)

    async def resume(self, run_ids: Iterable[str]) -> None:
        """Take responsibility for these runs, and begin those of them that can go on. Touches no other run.

        Whoever names a run wants it tried, also one that was given up because processes died on it.
        """
        for run_id in run_ids:
            self._adopted.setdefault(run_id, None)
            self._broken.pop(run_id, None)
            await self.store.runs.revive(run_id)
            async for due, _ in self.due([run_id]):
                await self._begin(due.id, due.principal_id)

    async def resume_all(self, run_ids: Iterable[str]) -> None:
        """The same for every unfinished run, with one look at what is due."""
        for run_id in run_ids:
            self._adopted.setdefault(run_id, None)
            self._woken.add(run_id)
        self._broken.clear()
        await self.tick(rested=False)  # what no other process could go on with, this one may

    def wake(self, run_id: str) -> None:
        """Something happened to a run: see whether it can go on. The one way to say so."""
        self._woken.add(run_id)
        order = self._adopted.get(run_id)
        place = not self.places.crowded or (order is not None and self.places.free_for(order.principal_id))
        mine = self.queue is None and run_id in self._adopted and not self._leaving
        if mine and place and self._is_free(run_id):
            self._start(run_id)
        elif (work := self._working.get(run_id)) is not None:
            work.again = True
        elif not self.places.waited_for:
            self._changed.set()  # else it is found in its turn, at the next regular look

    async def due(
        self, among: Collection[str] | None = None, *, rested: bool = True
    ) -> AsyncIterator[tuple[DueRun, bool]]:
        """Runs that can go on now, or those of some that can: decided, expired, left behind, or next in session.

        And of each whether a process has died on it. Those come last: they may take this one with them.
        """
        await self.store.approvals.expire()
        dead = self.claims.dead(set(await self.store.runs.owners()) - {self.shared.owner})
        for suspects in (False, True):
            for run in await self.store.runs.due(
                dead=dead, among=among, suspects=suspects, rested=rested, limit=MOST_WAITING
            ):
                yield run, suspects

    async def tick(self, *, rested: bool = True) -> None:
        """Begin what can go on of the runs this process is responsible for. Those of others are not looked at."""
        # Jobs are put for runs to which something happened here; workers look for all others.
        among = [run_id for run_id in (self._adopted if self.queue is None else self._woken) if self._is_free(run_id)]
        self._woken.clear()
        if not among:
            await self.store.approvals.expire()
            return
        began = self.clock.monotonic()
        self.places.forget_waiting()
        async for run, suspect in self.due(among, rested=rested):
            await self._begin(run.id, run.principal_id, suspect=suspect)
            if self.places.full:
                break
        ended = self.clock.monotonic()
        # With very many that wait, looking is given a tenth of the time.
        self._next_look = ended + (10 * (ended - began) if len(among) > MOST_WAITING else 0.0)

    async def _begin(self, run_id: str, principal_id: str | None, *, suspect: bool = False) -> None:
        """Begin a run if there is a place for it, and its principal has not got its share of the places already."""
        if not self._is_free(run_id):
            return
        if self.queue is not None:
            await self.queue.put(run_id)
        elif suspect and any(work.unproved for work in self._working.values()):
            return  # one by one: so it is known on which of them a process dies
        elif self.places.free_for(principal_id) and not self._leaving:
            self._start(run_id, principal_id, unproved=suspect)
        elif not suspect:
            self.places.wait(run_id, principal_id)

    def _is_free(self, run_id: str) -> bool:
        return run_id not in self._working and run_id not in self._held and run_id not in self._broken

    def _start(self, run_id: str, principal_id: str | None = NOT_KNOWN, *, unproved: bool = False) -> None:
        work = _Work(asyncio.create_task(self._work(run_id)), unproved=unproved)
        self._working[run_id] = work
        self.places.take(run_id, principal_id)
        work.task.add_done_callback(lambda task: self._ended(run_id, task))

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        crowded = self.places.crowded
        work = self._working.pop(run_id)
        self.places.leave(run_id)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the run stopped on a fault of ours", exc_info=error, extra={LOG_FIELDS: {"run_id": run_id}})
            # Tried again at once it would only fail again, and whoever waits for it would never know.
            self._broken[run_id] = JourneymanError(
                f"run {run_id!r} stopped on a fault of ours ({type(error).__name__}: {error}); "
                "the log has its traceback, and resume() tries again"
            )
            self._in_background(self._note(run_id, self._broken[run_id]))
        if work.run is not None:
            if work.run.state.status.ended:
                self._adopted.pop(run_id, None)
                self._with_text.discard(run_id)
            if work.run.in_session or self.settings.principal_concurrency is not None:
                crowded = True
        if not self._leaving:
            for waiting, principal_id in self.places.next():
                if self._is_free(waiting):
                    self._start(waiting, principal_id)
        # This one, or another that has waited for it, may go on.
        if work.again or (crowded and not self.places.waited_for):
            self._changed.set()
        self.watches.tell(run_id)

    async def work_on(self, run_id: str) -> RunStatus | None:
        """Take one run as far as it goes, here and now; None when it cannot be had. What a worker does."""
        if self.places.crowded:
            row = await self.store.runs.get(run_id)
            if row is not None and not self.places.free_for(row.principal_id):
                return None
        self._adopted.setdefault(run_id, None)
        if (error := self._broken.get(run_id)) is not None:
            # Or it would be brought here again at once, and keep others from their turn.
            await self._note(run_id, error)
        elif self._is_free(run_id):
            self._start(run_id)
        await self.at_rest(run_id)
        row = await self.store.runs.get(run_id)
        return None if row is None else row.status

    # --- working on a run

    async def _work(self, run_id: str) -> None:
        """Claim a run and take it to its end, to a person, or to the next process."""
        if self.shared.refused is not None:  # nothing is written into a store that nobody has confirmed
            self._broken[run_id] = ConfigurationError(self.shared.refused)
            return
        epoch = await self.claims.take(run_id, principal_limit=self.settings.principal_concurrency)
        if epoch is None:
            return
        work, lost = self._working[run_id], False
        work.epoch = epoch
        try:
            order = self._adopted.get(run_id)
            # One that was just stored here, and is begun for the first time, nobody else can have had.
            if (epoch > 1 or order is None or order.task.session_id) and not await self._may_go_on(run_id, work):
                return
            self._adopted[run_id] = None
            run = work.run = await self.shared.load(run_id, epoch, order=order, listener=partial(self._heard, run_id))
            self.places.take(run_id, None if run.state.principal is None else run.state.principal.id)
            if run.state.status.ended:
                return
            run.leaving = self._leaving
            # A model need not stream where nobody listens.
            run.wants_text = run_id in self._with_text or self.streams_text
            await advance(run)
            if (
                run.state.status.waiting
                and (row := await self.claims.runs(run_id).get(run_id)) is not None
                and row.cancel_wanted
            ):
                await interrupted(run)
        except JournalConflictError as error:
            lost = True
            logger.warning("the run is no longer ours: %s", error, extra={LOG_FIELDS: {"run_id": run_id}})
        except asyncio.CancelledError:
            if not work.cancelled:
                raise
        except StoreError as error:
            # Not the run's fault: it is due again as soon as the database is back.
            logger.warning("the store is away, the run waits: %s", error, extra={LOG_FIELDS: {"run_id": run_id}})
        except JourneymanError as error:
            self._broken[run_id] = error
            logger.error("the run cannot go on here: %s", error, extra={LOG_FIELDS: {"run_id": run_id}})
            await self._note(run_id, error)
        finally:
            # The facts that end or suspend a run have released it.
            if lost or work.run is None or work.run.state.status is RunStatus.RUNNING:
                await self.claims.give_back(run_id, epoch)

    async def _may_go_on(self, run_id: str, work: _Work) -> bool:
        """Whether a run that was held or has waited may be tried; else it is cancelled here, or left to a person."""
        row = await self.claims.runs(run_id).get(run_id)
        if row is None:
            return False
        if row.cancel_wanted:
            # By somebody who found it held by a process that is gone now, or who has died before they came to it.
            heard = partial(self._heard, run_id)
            work.run = await self.shared.load(run_id, work.epoch, listener=heard, advancing=False)
            if not work.run.state.status.ended:
                await interrupted(work.run)
            return False
        if row.deaths and row.taken_from is not None and is_stopped(row.taken_from):
            # Lost, and by no fault of the run. One that is merely slow is believed dead until it is heard of again: a
            # run that blocks its process looks the same, and must not have one after another.
            await self.claims.runs(run_id).heard_of(row.taken_from)
            row = row.model_copy(update={"deaths": row.deaths - 1})
        if row.deaths >= self.settings.max_recoveries:
            if row.last_seq == 0:  # it must have begun before it can be given up
                work.run = await self.shared.load(run_id, work.epoch, advancing=False)
            await give_up(self.store, row.id, epoch=work.epoch, clock=self.clock, heard=partial(self._heard, run_id))
            return False
        work.unproved = row.deaths > 0 or row.trouble is not None
        return True

    @contextlib.asynccontextmanager
    async def held(self, run_id: str) -> AsyncIterator[Run | None]:
        """A run to be settled or cancelled, while nobody works on it. None when it has ended or is held elsewhere."""
        await self.at_rest(run_id)
        async with self._holding:
            await self.at_rest(run_id)
            self._held.add(run_id)
            try:
                epoch = await self.claims.take(run_id, in_turn=False)  # people need not wait for their turn
                if epoch is None:
                    yield None
                    return
                try:
                    heard = partial(self._heard, run_id)
                    yield await self.shared.load(run_id, epoch, listener=heard, advancing=False)
                finally:
                    await self.claims.give_back(run_id, epoch)
            finally:
                self._held.discard(run_id)

    async def cancel(self, run_id: str, *, by: str | None = None) -> None:
        """Cancel a run wherever it is worked on. One that another process holds is cancelled there, in a moment."""
        # Before anything else: whoever suspends, hands over or takes up the run from now on finds that it is wanted.
        if not await self.store.runs.request_cancel(run_id, by=by):
            return
        if (work := self._working.get(run_id)) is not None:
            work.cancelled = True
            work.task.cancel()
            await asyncio.wait((work.task,))
            if work.run is not None and work.run.state.status.ended:
                return
            # It was only looking whether it could begin, or had lost the run.
        async with self.held(run_id) as run:
            if run is not None:
                await interrupted(run)
                self._adopted.pop(run_id, None)
                self._with_text.discard(run_id)
        self.watches.tell(run_id)

    # --- watching

    def stream_text(self, run_id: str) -> None:
        """Have a run's model stream although nobody listens yet: who joins later gets the text so far."""
        if self.queue is None and run_id in self._adopted:
            self._with_text.add(run_id)
            if (work := self._working.get(run_id)) is not None and work.run is not None:
                work.run.wants_text = True

    @property
    def busy(self) -> bool:
        return bool(self._working)

    def at_work(self, run_id: str) -> bool:
        return run_id in self._working

    async def at_rest(self, run_id: str) -> None:
        """Return when nobody works on the run here."""
        while (work := self._working.get(run_id)) is not None:
            await asyncio.wait((work.task,))

    def trouble(self, run_id: str, row: RunRow | None = None) -> JourneymanError | None:
        """Why a run cannot go on in this process, if it cannot; with its ``row``, in any that has tried lately."""
        own = self._broken.get(run_id)
        return own if own is not None or row is None else trouble_of(row)

    def _heard(self, run_id: str, event: Event) -> None:
        if self._traces is not None and event.seq is not None:
            self._traces.hear(event)
        if (work := self._working.get(run_id)) is not None:
            work.under_way.hear(event)
            if work.unproved and isinstance(event, _PROGRESS):
                work.unproved = False
                self._in_background(self._prove(run_id, work.epoch))
        if self.store.shared_limits:
            self.changed.add(run_id)
            self.news.set()
        self.watches.hear(event)

    def under_way(self, run_id: str) -> UnderWay | None:
        """The signals of a run that is worked on here, for another process that shows it."""
        if (work := self._working.get(run_id)) is None:
            return None
        if work.run is not None:
            work.run.wants_text = True
        return work.under_way

    async def position(self, run_id: str) -> int | None:
        """A run's place among those that wait to be begun, 1 being the next; None where it does not wait."""
        now = self.clock.monotonic()
        if now >= self._line_until:
            self._line_until = now + self.settings.poll_seconds
            self._line = {waiting: place for place, waiting in enumerate(await self.store.runs.waiting(), start=1)}
        return self._line.get(run_id)

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        """Write something for which nobody waits."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _note(self, run_id: str, error: JourneymanError) -> None:
        with contextlib.suppress(StoreError):
            await self.store.runs.note_trouble(run_id, str(error))

    async def _prove(self, run_id: str, epoch: int) -> None:
        # Not vital: whoever takes the run over sees in its facts how far it got.
        with contextlib.suppress(StoreError):
            await self.store.runs.proved(run_id, epoch=epoch)
        self._changed.set()  # others on which processes have died wait for this one

    # --- housekeeping

    async def _keep(self) -> None:
        """One task for all runs: leases, expiry, decisions taken elsewhere, whatever is due, old traces."""
        settings = self.settings
        renewed, renewal = self.clock.monotonic(), min(settings.poll_seconds, settings.lease_seconds / 3)
        announced = forgotten = renewed
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(settings.poll_seconds):
                    await self._changed.wait()
            self._changed.clear()
            try:
                now = self.clock.monotonic()
                if now - announced >= min(settings.lease_seconds, ALIVE_SECONDS) / 3:
                    announced = now
                    await self._announce()
                if self._working and now - renewed >= renewal:
                    renewed = now
                    for run_id in await self.claims.renew():
                        work = self._working.get(run_id)
                        if work is not None and not work.cancelled:
                            work.cancelled = True
                            work.task.cancel()
                if now - forgotten >= _FORGET_SECONDS:
                    forgotten = now
                    await self.forget_ended()
                if self.clock.monotonic() >= self._next_look:
                    await self.tick()
                self._retention.in_time(self.clock.monotonic())
            except StoreError as error:
                logger.warning("the store is away, runs wait: %s", error)
            except Exception:
                logger.exception("housekeeping failed; it goes on")

    async def forget_ended(self) -> None:
        """Let go of runs that have ended elsewhere, or were deleted: with workers those are all that begin here."""
        known = {*self._adopted, *self._with_text, *self._broken} - self._working.keys()
        for run_id in known.difference(await self.store.runs.unfinished(known)):
            self._adopted.pop(run_id, None)
            self._with_text.discard(run_id)
            self._broken.pop(run_id, None)

    async def _announce(self) -> None:
        """Say that this program is at work on the store, and find out what the oldest one there can read."""
        self.shared.format = await self.store.programs.announce(
            self.shared.owner, silent_seconds=3 * self.settings.lease_seconds, executes=self.queue is None
        )
        await self.store.audit.fold()

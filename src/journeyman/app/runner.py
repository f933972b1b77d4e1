"""Which process works on which run: claims, leases, waking, cancelling, handing over.

A run is worked on by whoever holds its lease; the store refuses everybody else. ``wake`` and ``tick`` are the only
ways in which a run is begun: the one when something happened to it, the other by looking for what is due.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from journeyman.agent.ending import interrupted
from journeyman.agent.loop import advance
from journeyman.agent.run import Run
from journeyman.app.factory import RunFactory
from journeyman.app.handles import Watches
from journeyman.app.owners import dead_owners
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import JournalConflictError, JourneymanError, StoreError
from journeyman.core.events import Event
from journeyman.core.protocols import Listener
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunOrder
from journeyman.stores.store_retry import retry_store_faults

if TYPE_CHECKING:
    from journeyman.app.traces import Traces
    from journeyman.app.worker import JobQueue

logger = logging.getLogger("journeyman.app")

_DUE_AT_ONCE = 1_000
_PURGE_SECONDS = 3600.0


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
    retention_seconds: float | None = 7 * 24 * 3600.0
    """How long ended runs and traces are kept; None keeps them for ever."""


@dataclass(slots=True)
class _Work:
    """A run this process is working on."""

    task: asyncio.Task[None]
    run: Run | None = None
    again: bool = False
    """Whether something happened to the run meanwhile, so that it may go on at once."""
    cancelled: bool = False
    listeners: list[Listener] = field(default_factory=list)


class Runner:
    """Works on the runs of a store that this process is responsible for."""

    def __init__(
        self, factory: RunFactory, settings: RunnerSettings, *, queue: JobQueue | None, traces: Traces | None
    ) -> None:
        self.factory = factory
        self.store = factory.store
        self.clock = factory.clock
        self.settings = settings
        self.queue = queue
        """Where runs are put for worker processes, instead of being worked on here."""
        self.watches = Watches()
        self._traces = traces
        self._working: dict[str, _Work] = {}
        self._held: set[str] = set()
        """Runs that are being settled or cancelled here: not to be begun meanwhile."""
        self._holding = asyncio.Lock()
        """One of these at a time: a claim does not exclude a second claim by the same owner."""
        self._adopted: dict[str, RunOrder | None] = {}
        """Runs this process is responsible for, with the order of those that were stored here and not begun."""
        self._broken: dict[str, JourneymanError] = {}
        self._changed = asyncio.Event()
        """Set when something may be due."""
        self._leaving = False
        self._housekeeping: asyncio.Task[None] | None = None
        self._next_purge = 0.0

    # --- opening and closing

    async def open(self) -> None:
        await self._announce()
        self._housekeeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Finish the steps under way and release what is left."""
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._housekeeping
        await self.release_all()
        with contextlib.suppress(StoreError):
            await self.store.programs.leave(self.factory.owner)

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
        while late:
            for task in late:  # again, if need be: one that waits for a database that is away has more to give up
                task.cancel()
            _, late = await asyncio.wait(late, timeout=1.0)

    # --- waking

    async def adopt(self, run_id: str, *, order: RunOrder | None = None, priority: int = 0) -> None:
        """Take responsibility for a new run and begin it; ``order`` saves reading back what was just stored."""
        self._adopted[run_id] = order if self.queue is None else None
        if self.queue is not None:
            await self.queue.put(run_id, priority=priority)
        else:
            self.wake(run_id)

    async def resume(self, run_ids: Iterable[str]) -> None:
        """Take responsibility for these runs, and begin those of them that can go on. Touches no other run."""
        for run_id in run_ids:
            self._adopted.setdefault(run_id, None)
            self._broken.pop(run_id, None)
            async for due in self.due(run_id):
                await self._begin(due)

    async def resume_all(self, run_ids: Iterable[str]) -> None:
        """The same for every unfinished run, with one look at what is due."""
        for run_id in run_ids:
            self._adopted.setdefault(run_id, None)
        self._broken.clear()
        await self.tick()

    def wake(self, run_id: str) -> None:
        """Something happened to a run: see whether it can go on. The one way to say so."""
        if self.queue is None and run_id in self._adopted and self._is_free(run_id) and self._has_room():
            self._start(run_id)
        elif (work := self._working.get(run_id)) is not None:
            work.again = True
        else:
            self._changed.set()

    async def due(self, run_id: str | None = None) -> AsyncIterator[str]:
        """Runs that can go on now, or just this one if it can: decided, expired, left behind, or next in session."""
        now = self.clock.time()
        await self.store.approvals.expire(now=now)
        dead = dead_owners(set(await self.store.runs.owners()) - {self.factory.owner})
        seen = 0
        # Page by page: runs that are somebody else's business must not hide ours.
        while page := await self.store.runs.due(now=now, dead=dead, run_id=run_id, limit=_DUE_AT_ONCE, offset=seen):
            for found in page:
                yield found
            seen += len(page)
            if len(page) < _DUE_AT_ONCE:
                return

    async def tick(self) -> None:
        """Begin what can go on of the runs this process is responsible for."""
        if not self._adopted:
            await self.store.approvals.expire(now=self.clock.time())
            return
        async for run_id in self.due():
            if run_id in self._adopted:
                await self._begin(run_id)

    async def _begin(self, run_id: str) -> None:
        if not self._is_free(run_id):
            return
        if self.queue is not None:
            await self.queue.put(run_id)
        elif self._has_room():
            self._start(run_id)

    def _is_free(self, run_id: str) -> bool:
        return run_id not in self._working and run_id not in self._held and run_id not in self._broken

    def _has_room(self) -> bool:
        return len(self._working) < self.settings.concurrency and not self._leaving

    def _start(self, run_id: str) -> None:
        work = _Work(asyncio.create_task(self._work(run_id)))
        self._working[run_id] = work
        work.task.add_done_callback(lambda task: self._ended(run_id, task))

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        crowded = len(self._working) >= self.settings.concurrency
        work = self._working.pop(run_id)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the run stopped on a fault of ours", exc_info=error, extra={LOG_FIELDS: {"run_id": run_id}})
            # Tried again at once it would only fail again, and whoever waits for it would never know.
            self._broken[run_id] = JourneymanError(
                f"run {run_id!r} stopped on a fault of ours ({type(error).__name__}: {error}); "
                "the log has its traceback, and resume() tries again"
            )
        if work.run is not None:
            if work.run.state.status.ended:
                self._adopted.pop(run_id, None)
            if work.again or crowded or self.settings.principal_concurrency is not None or work.run.in_session:
                self._changed.set()  # this one, or another that has waited for it, may go on
        self.watches.tell(run_id)

    async def work_on(self, run_id: str) -> RunStatus | None:
        """Take one run as far as it goes, here and now; None when it cannot be had. What a worker does."""
        self._adopted.setdefault(run_id, None)
        if self._is_free(run_id):
            self._start(run_id)
        await self.at_rest(run_id)
        row = await self.store.runs.get(run_id)
        return None if row is None else row.status

    # --- working on a run

    async def _work(self, run_id: str) -> None:
        """Claim a run and take it to its end, to a person, or to the next process."""
        epoch = await self._claim(run_id, principal_limit=self.settings.principal_concurrency)
        if epoch is None:
            return
        work = self._working[run_id]
        try:
            order, self._adopted[run_id] = self._adopted.get(run_id), None
            run = work.run = await self.factory.load(run_id, epoch, order=order, listener=partial(self._heard, run_id))
            if run.state.status.ended:
                return
            # Somebody may have wanted it cancelled while it waited, or while a process that is gone held it.
            if (epoch > 1 or run.in_session) and run_id in await self._renew_leases():
                await interrupted(run)
                return
            run.leaving = self._leaving
            run.wants_text = bool(work.listeners)  # a model need not stream where nobody listens
            await advance(run)
        except JournalConflictError as error:
            logger.warning("the run is no longer ours: %s", error, extra={LOG_FIELDS: {"run_id": run_id}})
        except asyncio.CancelledError:
            if not work.cancelled:
                raise
        except JourneymanError as error:
            self._broken[run_id] = error
            logger.error("the run cannot go on here: %s", error, extra={LOG_FIELDS: {"run_id": run_id}})
        finally:
            # The facts that end or suspend a run have released it.
            if work.run is None or work.run.state.status is RunStatus.RUNNING:
                await self._release(run_id, epoch)

    async def _claim(self, run_id: str, *, principal_limit: int | None = None, in_turn: bool = True) -> int | None:
        async def claim(dead: Collection[str] = ()) -> int | None:
            now = self.clock.time()
            return await self.store.runs.claim(
                run_id,
                owner=self.factory.owner,
                now=now,
                lease_until=now + self.settings.lease_seconds,
                dead=dead,
                principal_limit=principal_limit,
                in_turn=in_turn,
            )

        async def claim_from_anybody() -> int | None:
            if (epoch := await claim()) is not None:
                return epoch
            row = await self.store.runs.get(run_id)
            dead = () if row is None or row.owner is None else dead_owners([row.owner])
            return await claim(dead) if dead else None

        return await retry_store_faults(claim_from_anybody, clock=self.clock, run_id=run_id)

    async def _release(self, run_id: str, epoch: int) -> None:
        # As long as it takes: this process renews the leases it holds, and nobody else could have the run.
        release = partial(self.store.runs.release, run_id, epoch=epoch)
        await retry_store_faults(release, clock=self.clock, run_id=run_id)

    @contextlib.asynccontextmanager
    async def held(self, run_id: str) -> AsyncIterator[Run | None]:
        """A run to be settled or cancelled, while nobody works on it. None when it has ended or is held elsewhere."""
        await self.at_rest(run_id)
        async with self._holding:
            await self.at_rest(run_id)
            self._held.add(run_id)
            try:
                epoch = await self._claim(run_id, in_turn=False)  # people need not wait for their turn
                if epoch is None:
                    yield None
                    return
                try:
                    heard = partial(self._heard, run_id)
                    yield await self.factory.load(run_id, epoch, listener=heard, advancing=False)
                finally:
                    await self._release(run_id, epoch)
            finally:
                self._held.discard(run_id)

    async def cancel(self, run_id: str) -> None:
        """Cancel a run wherever it is worked on. One that another process holds is cancelled there, in a moment."""
        if (work := self._working.get(run_id)) is not None:
            work.cancelled = True
            work.task.cancel()
            await asyncio.wait((work.task,))
            if work.run is not None:
                return
            # It was only looking whether it could begin.
        async with self.held(run_id) as run:
            if run is None:
                await self.store.runs.request_cancel(run_id)
            else:
                await interrupted(run)
                self._adopted.pop(run_id, None)
        self.watches.tell(run_id)

    # --- watching

    def listen(self, run_id: str, listener: Listener) -> None:
        """Hear signals (deltas, progress) of a run while it is worked on here."""
        work = self._working.get(run_id)
        if work is not None and listener not in work.listeners:
            work.listeners.append(listener)
            if work.run is not None:
                work.run.wants_text = True

    def unlisten(self, run_id: str, listener: Listener) -> None:
        work = self._working.get(run_id)
        if work is not None and listener in work.listeners:
            work.listeners.remove(listener)

    def at_work(self, run_id: str) -> bool:
        return run_id in self._working

    async def at_rest(self, run_id: str) -> None:
        """Return when nobody works on the run here."""
        while (work := self._working.get(run_id)) is not None:
            await asyncio.wait((work.task,))

    def trouble(self, run_id: str) -> JourneymanError | None:
        """Why a run cannot go on in this process, if it cannot."""
        return self._broken.get(run_id)

    def _heard(self, run_id: str, event: Event) -> None:
        if self._traces is not None and event.seq is not None:
            self._traces.hear(event)
        if (work := self._working.get(run_id)) is not None:
            for listener in work.listeners:
                listener(event)
        if event.seq is not None:
            self.watches.hear(event)

    # --- housekeeping

    async def _keep(self) -> None:
        """One task for all runs: leases, expiry, decisions taken elsewhere, whatever is due, old traces."""
        settings = self.settings
        renewed, renewal = self.clock.monotonic(), min(settings.poll_seconds, settings.lease_seconds / 3)
        announced = renewed
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(settings.poll_seconds):
                    await self._changed.wait()
            self._changed.clear()
            try:
                now = self.clock.monotonic()
                if now - announced >= settings.lease_seconds / 3:
                    announced = now
                    await self._announce()
                if self._working and now - renewed >= renewal:
                    renewed = now
                    await self._cancel_wanted()
                await self.tick()
                await self._purge()
            except StoreError as error:
                logger.warning("the store is away, runs wait: %s", error)
            except Exception:
                logger.exception("housekeeping failed; it goes on")

    async def _announce(self) -> None:
        """Say that this program is at work on the store, and find out what the oldest one there can read."""
        now = self.clock.time()
        self.factory.format = await self.store.programs.announce(
            self.factory.owner, now=now, alive_since=now - 3 * self.settings.lease_seconds
        )

    async def _cancel_wanted(self) -> None:
        for run_id in await self._renew_leases():
            work = self._working.get(run_id)
            if work is not None and not work.cancelled:
                work.cancelled = True
                work.task.cancel()

    async def _renew_leases(self) -> Collection[str]:
        """Renew the leases held here; returns the runs among them that somebody elsewhere wants cancelled."""
        lease_until = self.clock.time() + self.settings.lease_seconds
        return await self.store.runs.renew(self.factory.owner, lease_until=lease_until)

    async def _purge(self) -> None:
        now, retention = self.clock.time(), self.settings.retention_seconds
        if retention is None or now < self._next_purge:
            return
        self._next_purge = now + _PURGE_SECONDS
        await self.store.runs.purge(ended_before=now - retention)
        if self._traces is not None:
            self._traces.purge(before=now - retention)

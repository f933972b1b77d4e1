"""``Journeyman``: governed agents over a store. Whatever dies, the run goes on, and no side effect happens twice.

A run is worked on by whoever holds its lease; the store refuses everybody else. A run that waits for a person is a
few rows and nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from journeyman.agent.agent import Agent
from journeyman.agent.ending import interrupted
from journeyman.agent.loop import advance
from journeyman.agent.run import Run, run_tools
from journeyman.app.approvals import Approvals
from journeyman.app.chains import ChainStep, chain_results, start_chain
from journeyman.app.gaps import Gaps
from journeyman.app.handles import Handle, Session
from journeyman.app.owners import dead, new_owner
from journeyman.app.parts import Shared, close_model, model_named
from journeyman.app.resuming import FreshRun, take_up
from journeyman.app.splits import Split
from journeyman.app.traces import Traces
from journeyman.app.watching import Watches
from journeyman.core.data import LOG_FIELDS, canonical_json, new_id
from journeyman.core.errors import ConfigurationError, JournalConflictError, JourneymanError, StoreError
from journeyman.core.events import Event
from journeyman.core.messages import Message
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import Clock, Listener, Model, StrategySource, SystemClock
from journeyman.core.runs import Limits, RunStatus, TaskInput
from journeyman.core.storing import RunOrder, Store
from journeyman.stores.store_retry import RetryingBreaker, RetryingLimiter, retry_store_faults
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.app.queue import JobQueue

logger = logging.getLogger("journeyman.app")

LEASE_SECONDS = 30.0
POLL_SECONDS = 1.0
GRACE_SECONDS = 10.0
RETENTION_SECONDS = 7 * 24 * 3600.0
MOST_AGENTS = 100
"""Agents that are kept ready for further runs."""

_ALL = 2**31
_DUE_AT_ONCE = 1_000
_UNFINISHED = frozenset(status for status in RunStatus if not status.ended)


@dataclass(slots=True)
class _Work:
    """A run this process is working on."""

    task: asyncio.Task[None]
    run: Run | None = None
    again: bool = False
    """Whether something happened to the run meanwhile, so that it may go on at once."""
    cancelled: bool = False
    listeners: list[Listener] = field(default_factory=list)


class Journeyman:
    """Agents, tools, rules and a store, put together.

    ``async with Journeyman(library=…, store="sqlite:///journeyman.db") as app: …``

    With ``workers`` (PostgreSQL) runs are put into a queue for ``journeyman worker`` processes instead of being worked
    on here. ``concurrency`` limits the runs worked on here at once, ``principal_concurrency`` those of one principal
    anywhere. A ``split`` divides runs between libraries; ``library`` is then left out and is its first arm.
    """

    def __init__(
        self,
        *,
        library: ToolLibrary | None = None,
        policy: Policy | None = None,
        store: Store | str = "sqlite:///journeyman.db",
        model: Model | str | None = None,
        playbook: StrategySource | None = None,
        split: Split | None = None,
        workers: bool = False,
        concurrency: int = 64,
        principal_concurrency: int | None = None,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = POLL_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
        retention_seconds: float | None = RETENTION_SECONDS,
        traces: Path | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        if library is None:
            library = ToolLibrary() if split is None else split.arms[split.control]
        self.library = library
        self.split = split
        self.policy = policy or Policy()
        self.store = _opened_by_name(store) if isinstance(store, str) else store
        self.clock = clock or SystemClock()
        self.playbook = playbook
        self.owner = new_owner()
        self.approvals = Approvals(self.store, self.library, clock=self.clock, decided=self.wake)
        self.gaps = Gaps(self.store, self.library, clock=self.clock)
        self._model = model
        self._queue = _job_queue(store) if workers else None
        self._principal_concurrency = principal_concurrency
        self._concurrency = concurrency
        self.lease_seconds = lease_seconds
        self.poll_seconds = poll_seconds
        self.grace_seconds = grace_seconds
        self._retention_seconds = retention_seconds
        self._traces = Traces(Path(traces)) if traces is not None else None
        self._shared: dict[int, Shared] | None = None
        self._models: dict[str, Model] = {}
        self._agents: dict[str, Agent] = {}
        self._working: dict[str, _Work] = {}
        self._held: set[str] = set()
        """Runs that are in a person's hands here for a moment."""
        self._hand = asyncio.Lock()
        """One person's word at a time: a claim of our own would not keep another of ours away."""
        self._adopted: dict[str, FreshRun | None] = {}
        """Runs this process is responsible for, with what is known of those that were ordered here and not begun."""
        self._broken: dict[str, JourneymanError] = {}
        self.watches = Watches()
        self._poked = asyncio.Event()
        self._leaving = False
        self._keeper: asyncio.Task[None] | None = None
        self._next_purge = 0.0

    # --- opening and closing

    async def __aenter__(self) -> Self:
        if self._leaving or self._shared is not None:
            raise ConfigurationError("an app is opened once; make a new Journeyman(...)")
        await self.store.open()
        self._shared = {}
        if self._queue is not None:
            await self._queue.open()
        self._keeper = asyncio.create_task(self._keep())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish the steps under way, hand over what is left, and let go of everything."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        await self.hand_over()
        for model in self._models.values():
            await close_model(model)
        self._models.clear()
        if self._queue is not None:
            await self._queue.close()
        await self.store.close()
        self._shared = None

    async def hand_over(self) -> None:
        """Let the steps under way finish; what is not done in time is left to whoever takes the runs up."""
        self._leaving = True
        tasks = []
        for work in self._working.values():
            if work.run is not None:
                work.run.leaving = True
            tasks.append(work.task)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self.grace_seconds)
        for work in self._working.values():
            if work.task in late and work.run is not None:
                # As if this process had died: what was under way is settled by whoever takes the run up.
                work.run.recorder.close()
        while late:
            for task in late:  # again, if need be: one that waits for a database that is away has more to give up
                task.cancel()
            _, late = await asyncio.wait(late, timeout=1.0)

    # --- starting and finding runs

    async def start(
        self,
        agent: Agent,
        task: TaskInput | str,
        *,
        principal: Principal | None = None,
        limits: Limits | None = None,
        history: Sequence[Message] = (),
        session_id: str | None = None,
        priority: int = 0,
        run_id: str | None = None,
    ) -> Handle:
        """Keep a run in the store and begin it. A ``run_id`` of the caller's makes starting twice harmless."""
        self._check_open()
        given = TaskInput(description=task) if isinstance(task, str) else task
        if session_id is not None:
            given = given.model_copy(update={"session_id": session_id})
        if self.split is not None:
            await self.split.look(self.store.audit, self.clock)
            given = self.split.stamp(given)
        run_tools(agent, self.library_of(given).bind(agent), given)  # a run that could never begin is refused here
        order = RunOrder(
            run_id=run_id or new_id("run"),
            agent=agent.snapshot,
            task=given,
            principal=principal or given.principal,
            limits=limits or Limits(),
            history=tuple(history),
            priority=priority,
            created_at=self.clock.time(),
        )
        new = await self.store.runs.create(order)
        self._adopted[order.run_id] = FreshRun(order, agent) if new and self._queue is None else None
        if self._queue is not None:
            await self._queue.put(order.run_id, priority=priority)
        self.wake(order.run_id)
        return Handle(self, order.run_id)

    async def chain(
        self,
        steps: Sequence[ChainStep | Mapping[str, Any]],
        *,
        principal: Principal | None = None,
        session_id: str | None = None,
    ) -> list[Any]:
        """Carry out tool calls one after another and return their results. Raises ChainError where one fails.

        ``$NAME`` in a text is a field of the latest result that has it, ``$N.path`` one of the N-th step's result,
        ``$$`` a dollar sign.
        """
        return await chain_results(await start_chain(self, steps, principal=principal, session_id=session_id))

    async def handle(self, run_id: str) -> Handle:
        """A handle on any run of the store."""
        if await self.store.runs.get(run_id) is None:
            raise ConfigurationError(f"there is no run {run_id!r}; 'journeyman runs list' shows what there is")
        return Handle(self, run_id)

    def session(self, session_id: str) -> Session:
        """A stored conversation. Runs of one session go one after another."""
        return Session(self, session_id)

    async def resume(self, *run_ids: str) -> list[Handle]:
        """Take responsibility for every unfinished run of the store, or for these; waiting ones included."""
        self._check_open()
        handles = [await self.handle(run_id) for run_id in run_ids]
        if not run_ids:
            # All at once: pages of a list that changes meanwhile would leave some out.
            handles = [Handle(self, row.id) for row in await self.store.runs.list(statuses=_UNFINISHED, limit=_ALL)]
        for handle in handles:
            self._adopted.setdefault(handle.run_id, None)
        self._broken.clear()
        await self._tick()
        return handles

    # --- working on runs

    def wake(self, run_id: str) -> None:
        """Something happened to a run: see whether it can go on."""
        if self._queue is None and run_id in self._adopted and self._is_free(run_id) and self._has_room():
            self._begin(run_id)
        elif (work := self._working.get(run_id)) is not None:
            work.again = True
        else:
            self._poked.set()

    def _is_free(self, run_id: str) -> bool:
        return run_id not in self._working and run_id not in self._held and run_id not in self._broken

    def _has_room(self) -> bool:
        return len(self._working) < self._concurrency and not self._leaving

    def _begin(self, run_id: str) -> None:
        work = _Work(asyncio.create_task(self._work(run_id)))
        self._working[run_id] = work
        work.task.add_done_callback(lambda task: self._ended(run_id, task))

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        crowded = len(self._working) >= self._concurrency
        work = self._working.pop(run_id)
        if not task.cancelled() and (error := task.exception()) is not None:
            told = {"run_id": run_id}
            logger.error("the run stopped on a fault of ours", exc_info=error, extra={LOG_FIELDS: told})
            # Tried again at once it would only fail again, and whoever waits for it would never know.
            self._broken[run_id] = JourneymanError(
                f"run {run_id!r} stopped on a fault of ours ({type(error).__name__}: {error}); "
                "the log has its traceback, and resume() tries again"
            )
        if work.run is not None:
            if work.run.state.status.ended:
                self._adopted.pop(run_id, None)
            if work.again or crowded or self._principal_concurrency is not None or work.run.in_session:
                self._poked.set()  # this one, or another that has waited for it, may go on
        self.watches.tell(run_id)

    async def work_on(self, run_id: str) -> RunStatus | None:
        """Take one run as far as it goes, here and now; None when it cannot be had. What a worker does."""
        self._adopted.setdefault(run_id, None)
        if self._is_free(run_id):
            self._begin(run_id)
        await self.at_rest(run_id)
        row = await self.store.runs.get(run_id)
        return None if row is None else row.status

    async def _work(self, run_id: str) -> None:
        """Claim a run and take it to its end, to a person, or to the next process."""
        epoch = await self._claim(run_id, principal_limit=self._principal_concurrency)
        if epoch is None:
            return
        work = self._working[run_id]
        try:
            fresh, self._adopted[run_id] = self._adopted.get(run_id), None
            run = work.run = await take_up(self, run_id, epoch, fresh=fresh, listener=partial(self._heard, run_id))
            if run.state.status.ended:
                return
            # Somebody may have wanted it cancelled while it waited, or while a process that is gone held it.
            if (epoch > 1 or run.in_session) and run_id in await self._cancellations():
                await interrupted(run)
                return
            run.leaving = self._leaving
            run.wants_text = bool(work.listeners)  # a model need not stream for nobody
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
        async def claim(gone: Collection[str] = ()) -> int | None:
            now = self.clock.time()
            lease_until = now + self.lease_seconds
            return await self.store.runs.claim(
                run_id,
                owner=self.owner,
                now=now,
                lease_until=lease_until,
                dead=gone,
                principal_limit=principal_limit,
                in_turn=in_turn,
            )

        async def claim_from_anybody() -> int | None:
            if (epoch := await claim()) is not None:
                return epoch
            row = await self.store.runs.get(run_id)
            gone = () if row is None or row.owner is None else dead([row.owner])
            return await claim(gone) if gone else None

        return await retry_store_faults(claim_from_anybody, clock=self.clock, run_id=run_id)

    async def _release(self, run_id: str, epoch: int) -> None:
        # As long as it takes: what this app holds it prolongs, and nobody else could have the run.
        await retry_store_faults(lambda: self.store.runs.release(run_id, epoch=epoch), clock=self.clock, run_id=run_id)

    @contextlib.asynccontextmanager
    async def held(self, run_id: str) -> AsyncIterator[Run | None]:
        """A run for a person's word: nobody works on it meanwhile. None when it has ended or is held elsewhere."""
        await self.at_rest(run_id)
        async with self._hand:
            await self.at_rest(run_id)
            self._held.add(run_id)
            try:
                epoch = await self._claim(run_id, in_turn=False)  # people need not wait for their turn
                if epoch is None:
                    yield None
                    return
                try:
                    heard = partial(self._heard, run_id)
                    yield await take_up(self, run_id, epoch, listener=heard, advancing=False)
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
        renewed, renewal = self.clock.monotonic(), min(self.poll_seconds, self.lease_seconds / 3)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.poll_seconds):
                    await self._poked.wait()
            self._poked.clear()
            try:
                if self._working and self.clock.monotonic() - renewed >= renewal:
                    renewed = self.clock.monotonic()
                    await self._renew()
                await self._tick()
                await self._purge()
            except StoreError as error:
                logger.warning("the store is away, runs wait: %s", error)
            except Exception:
                logger.exception("housekeeping failed; it goes on")

    async def _renew(self) -> None:
        for run_id in await self._cancellations():
            work = self._working.get(run_id)
            if work is not None and not work.cancelled:
                work.cancelled = True
                work.task.cancel()

    async def _cancellations(self) -> Collection[str]:
        """Prolong what is held here; returns what somebody elsewhere wants cancelled of it."""
        return await self.store.runs.renew(self.owner, lease_until=self.clock.time() + self.lease_seconds)

    async def _tick(self) -> None:
        """Begin what can go on: decided, expired, left behind, or next in its session."""
        now = self.clock.time()
        await self.store.approvals.expire(now=now)
        if not self._adopted:
            return
        gone = dead(set(await self.store.runs.owners()) - {self.owner})
        seen = 0
        # Page by page: runs that are somebody else's business must not hide ours.
        while due := await self.store.runs.due(now=now, dead=gone, limit=_DUE_AT_ONCE, offset=seen):
            for run_id in due:
                if run_id not in self._adopted or not self._is_free(run_id):
                    continue
                if self._queue is not None:
                    await self._queue.put(run_id)
                elif self._has_room():
                    self._begin(run_id)
            seen += len(due)
            if len(due) < _DUE_AT_ONCE:
                return

    async def _purge(self) -> None:
        now = self.clock.time()
        if self._retention_seconds is None or now < self._next_purge:
            return
        self._next_purge = now + 3600.0
        await self.store.runs.purge(ended_before=now - self._retention_seconds)
        if self._traces is not None:
            self._traces.purge(before=now - self._retention_seconds)

    # --- parts

    def _check_open(self) -> None:
        if self._shared is None:
            raise ConfigurationError("the app is not open; write 'async with Journeyman(...) as app:'")

    def library_of(self, task: TaskInput) -> ToolLibrary:
        """Where a run finds its tools: in the arm it was given, or in the app's library."""
        return (self.split.library_of(task) if self.split is not None else None) or self.library

    def shared_by(self, library: ToolLibrary) -> Shared:
        """What runs with one library have in common."""
        self._check_open()
        assert self._shared is not None
        found = self._shared.get(id(library))
        if found is None:
            # One process counts for itself; several share what the store counts.
            counted = self.store.shared_limits
            found = self._shared[id(library)] = Shared(
                self.clock,
                limiter=RetryingLimiter(self.store.limiter, clock=self.clock) if counted else None,
                breaker=RetryingBreaker(self.store.breaker, clock=self.clock) if counted else None,
            )
        return found

    def agent_of(self, snapshot: dict[str, Any]) -> Agent:
        """The agent of a snapshot: one object for all its runs, since reading and binding takes longer than a step."""
        text = canonical_json(snapshot)
        if (agent := self._agents.pop(text, None)) is None:
            agent = Agent.model_validate(snapshot)
        self._agents[text] = agent  # the latest last
        if len(self._agents) > MOST_AGENTS:
            del self._agents[next(iter(self._agents))]
        return agent

    def model_for(self, agent: Agent) -> Model:
        """The app's model, or the one the agent names; kept open for the next run."""
        if self._model is not None and not isinstance(self._model, str):
            return self._model
        name = self._model or agent.model
        if name not in self._models:
            self._models[name] = model_named(name)
        return self._models[name]


def _job_queue(store: Store | str) -> JobQueue:
    if not isinstance(store, str):
        raise ConfigurationError("workers=True needs the store's URL, to reach its job queue")
    from journeyman.app.queue import JobQueue

    return JobQueue(store)


def _opened_by_name(url: str) -> Store:
    from journeyman.stores.store import open_store

    return open_store(url)

"""``Journeyman``: governed agents over a store. Whatever dies, the run goes on, and no side effect happens twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from journeyman.agent.agent import Agent
from journeyman.agent.offer import Offer
from journeyman.app.approvals import Approvals
from journeyman.app.chains import chain_results, start_chain
from journeyman.app.factory import RunFactory
from journeyman.app.gaps import Gaps
from journeyman.app.handles import Handle, Session
from journeyman.app.owners import new_owner
from journeyman.app.runner import Runner, RunnerSettings
from journeyman.app.splits import Split
from journeyman.app.traces import Traces
from journeyman.core.data import new_id
from journeyman.core.errors import ConfigurationError
from journeyman.core.messages import Message
from journeyman.core.playbook import StrategySource
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import Clock, Model, SystemClock
from journeyman.core.runs import UNFINISHED, Limits, TaskInput
from journeyman.core.storing import ChainStep, RunOrder, Store
from journeyman.tools.library import ToolLibrary

_ALL = 2**31


class Operation(TypedDict, total=False):
    """How runs are worked on; see ``RunnerSettings``."""

    concurrency: int
    principal_concurrency: int | None
    lease_seconds: float
    poll_seconds: float
    grace_seconds: float
    retention_seconds: float | None


class Journeyman:
    """Agents, tools, rules and a store, put together.

    ``async with Journeyman(library=…, store="sqlite:///journeyman.db") as app: …``

    With ``workers`` (PostgreSQL) runs are put into a queue for ``journeyman worker`` processes instead of being worked
    on here. A ``split`` divides runs between libraries; ``library`` is then left out and is its first arm.
    ``concurrency`` limits the runs worked on here at once, ``principal_concurrency`` those of one principal anywhere;
    further options are lease_seconds, poll_seconds, grace_seconds and retention_seconds.
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
        traces: Path | str | None = None,
        clock: Clock | None = None,
        **operation: Unpack[Operation],
    ) -> None:
        if unknown := operation.keys() - {field.name for field in fields(RunnerSettings)}:
            raise TypeError(f"Journeyman() got unexpected options: {', '.join(sorted(unknown))}")
        if library is None and split is not None:
            library = split.arms[split.control]
        self.library = ToolLibrary() if library is None else library
        self.split = split
        self.policy = policy or Policy()
        self.store = _opened_by_name(store) if isinstance(store, str) else store
        self.clock = clock or SystemClock()
        self._factory = RunFactory(
            store=self.store,
            library=library,
            policy=self.policy,
            clock=self.clock,
            owner=new_owner(),
            model=model,
            playbook=playbook,
            split=split,
        )
        queue = None
        if workers:
            from journeyman.app.worker import JobQueue

            queue = JobQueue.at(store)
        self.runner = Runner(
            self._factory,
            RunnerSettings(**operation),
            queue=queue,
            traces=Traces(Path(traces)) if traces is not None else None,
        )
        self.approvals = Approvals(self.store, self.library, clock=self.clock, decided=self.runner.wake)
        self.gaps = Gaps(self.store, self.library, clock=self.clock)
        self._opened = self._open = False

    async def __aenter__(self) -> Self:
        if self._opened:
            raise ConfigurationError("an app is opened once; make a new Journeyman(...)")
        self._opened = True
        await self.store.open()
        try:
            if self.runner.queue is not None:
                await self.runner.queue.open()
            await self.library.open()
            await self.runner.open()
        except BaseException:
            await self.close()
            raise
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish the steps under way, release what is left, and close everything."""
        self._open = False
        await self.runner.close()
        await self._factory.close()
        await self.library.close()
        if self.runner.queue is not None:
            await self.runner.queue.close()
        await self.store.close()

    # --- runs

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
        chain: Sequence[ChainStep] = (),
    ) -> Handle:
        """Keep a run in the store and begin it. A ``run_id`` of the caller's makes starting twice harmless."""
        self._check_open()
        given = TaskInput(description=task) if isinstance(task, str) else task
        if session_id is not None:
            given = given.model_copy(update={"session_id": session_id})
        if self.split is not None:
            await self.split.look(self.store.audit, self.clock)
            given = self.split.stamp(given)
        order = RunOrder(
            run_id=run_id or new_id("run"),
            agent=agent.snapshot,
            task=given,
            principal=principal or given.principal,
            limits=limits or Limits(),
            history=tuple(history),
            chain=tuple(chain),
            priority=priority,
            created_at=self.clock.time(),
        )
        # A run that could never begin is refused here.
        Offer(agent, self._factory.library_of(agent, given), given, order.principal, most=None).begin()
        if agent.own_tools:
            self._factory.remember(agent)
        new = await self.store.runs.create(order)
        await self.runner.adopt(order.run_id, order=order if new else None, priority=priority)
        return Handle(self.runner, order.run_id)

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
        return Handle(self.runner, run_id)

    def session(self, session_id: str) -> Session:
        """A stored conversation. Runs of one session go one after another."""
        return Session(self, session_id)

    async def resume(self, *run_ids: str) -> list[Handle]:
        """Take responsibility for every unfinished run of the store, or for just these; waiting ones included."""
        self._check_open()
        handles = [await self.handle(run_id) for run_id in run_ids]
        if run_ids:
            await self.runner.resume(run_ids)
            return handles
        # All at once: pages of a list that changes meanwhile would leave some out.
        rows = await self.store.runs.list(statuses=UNFINISHED, limit=_ALL)
        await self.runner.resume_all(row.id for row in rows)
        return [Handle(self.runner, row.id) for row in rows]

    async def must_bind(self, run_id: str) -> None:
        """Raise BindingError where this process lacks tools that an unfinished run was ordered with.

        ``resume`` goes on without them, and the model is told; whoever resumes by hand wants to know first.
        """
        order = await self.store.runs.order(run_id)
        if order is not None:
            agent = self._factory.agent_of(order.agent)
            self._factory.library_of(agent, order.task).bind(agent, descriptions=False)

    async def cancel(self, run_id: str) -> None:
        """Cancel a run wherever it is worked on."""
        await self.runner.cancel(run_id)

    def model_for(self, agent: Agent) -> Model:
        """The model that answers for an agent here: the app's, or the one the agent names."""
        return self._factory.model_for(agent)

    def _check_open(self) -> None:
        if not self._open:
            raise ConfigurationError("the app is not open; write 'async with Journeyman(...) as app:'")


def _opened_by_name(url: str) -> Store:
    from journeyman.stores.store import open_store

    return open_store(url)

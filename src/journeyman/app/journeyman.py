"""``Journeyman``: governed agents over a store. Whatever dies, the run goes on, and no side effect happens twice.

What carries out runs is loaded when an app is made; playbooks, memory and gaps when they are first used.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from journeyman.agent.agent import Agent, Verify
from journeyman.agent.offer import Offer
from journeyman.core.data import new_id
from journeyman.core.errors import ConfigurationError
from journeyman.core.gaps import UserIntent
from journeyman.core.model_settings import ModelSettings
from journeyman.core.playbook import StrategySource
from journeyman.core.policy import Policy, Principal
from journeyman.core.protocols import Clock, Model, SystemClock
from journeyman.core.runs import UNFINISHED, Limits, Message, Wanted, task_of
from journeyman.core.storing import ChainStep, Origin, RunOrder
from journeyman.telemetry import current_span, tracing
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.app.configuration import Configuration
    from journeyman.app.gaps import Gaps
    from journeyman.app.handles import Handle, SendOptions, Session
    from journeyman.app.playbooks import Playbooks
    from journeyman.app.replays import ForkOptions, ReplayOptions
    from journeyman.app.runner import Operation
    from journeyman.app.splits import Split
    from journeyman.app.trust import TrustGate
    from journeyman.learning.forms import LearningSettings
    from journeyman.memory.manager import MemoryManager
    from journeyman.replay.playing import RunDiff
    from journeyman.replay.report import ReplayReport
    from journeyman.stores.store import SqlStore

    class StartOptions(SendOptions, total=False):
        """What ``start`` takes besides the agent, the task and the output."""

        history: Sequence[Message]
        session_id: str | None
        chain: Sequence[ChainStep]
        verify: Verify | None


logger = logging.getLogger("journeyman.app")

T = TypeVar("T")

_ALL = 2**31
CLOSE_SECONDS = 10.0
"""How long models and sources of tools may take to close."""


class Journeyman:
    """Agents, tools, rules and a store, put together.

    ``async with Journeyman(library=…, store="sqlite:///journeyman.db") as app: …``

    With ``workers`` (PostgreSQL) runs are put into a queue for ``journeyman worker`` processes instead of being worked
    on here. With ``learning``, runs get advice from the playbook of their task's domain, and feed it when they have
    ended. A ``split`` divides runs between libraries; ``library`` is then left out and is its first arm.
    ``principals`` tells who a principal is by now (None: nobody any more): a call that a person has approved is checked
    against what its principal may do when it runs. ``concurrency`` limits the runs worked on here at once,
    ``principal_concurrency`` those of one principal anywhere; further options are lease_seconds, poll_seconds,
    grace_seconds, retention_seconds and max_recoveries. ``origin`` says how a command line named the agent and the
    library, and is kept with the runs; ``find_tools`` finds those of a run that was begun with others.
    ``deps`` makes what tools and instructions get as ``context.deps``, for each run and its principal: a function, or
    the import path of one (``shop:connect``), so that every worker makes its own.
    A ``gate`` is asked whether anything in the store may run; without one the program vouches for the store it names.
    """

    def __init__(
        self,
        *,
        library: ToolLibrary | None = None,
        policy: Policy | None = None,
        store: SqlStore | str = "sqlite:///journeyman.db",
        model: Model | ModelSettings | str | None = None,
        deps: Callable[[Principal | None], Any] | str | None = None,
        playbook: StrategySource | None = None,
        learning: LearningSettings | bool | None = None,
        split: Split | None = None,
        workers: bool = False,
        traces: Path | str | None = None,
        principals: Callable[[Principal], Principal | None] | None = None,
        clock: Clock | None = None,
        origin: Origin | None = None,
        find_tools: Callable[[RunOrder], ToolLibrary] | None = None,
        configuration: Configuration | None = None,
        gate: TrustGate | None = None,
        **operation: Unpack[Operation],
    ) -> None:
        from journeyman.app.approvals import Approvals
        from journeyman.app.assembly import Executors, Rules, Shared
        from journeyman.app.owners import new_owner
        from journeyman.app.runner import Runner, RunnerSettings

        if unknown := operation.keys() - {field.name for field in fields(RunnerSettings)}:
            raise TypeError(f"Journeyman() got unexpected options: {', '.join(sorted(unknown))}")
        if library is None and split is not None:
            library = split.arms[split.control]
        self.configuration = configuration
        rules = Rules(policy=policy or Policy())
        if configuration is not None:
            library = configuration.library if library is None else library
            rules = configuration.rules if policy is None else replace(configuration.rules, policy=policy)
        self.library = ToolLibrary() if library is None else library
        self.split = split
        if isinstance(store, str):
            from journeyman.stores.store import open_store

            self.store: SqlStore = open_store(store, queued=workers, clock=clock)
        else:
            self.store = store
        self.clock = clock or SystemClock()
        self._shared = Shared(
            store=self.store,
            clock=self.clock,
            owner=new_owner(),
            rules=rules,
            library=library,
            split=split,
            origin=origin,
            find_tools=find_tools,
            executors=Executors(self.clock, self.store, now=principals),
            model=model,
            deps=resolve_name(deps) if isinstance(deps, str) else deps,
            gate=gate,
            playbook=lambda domain: playbook,
            environments=None if configuration is None else configuration.in_environment,
        )
        queue = None
        if workers:
            from journeyman.app.worker import JobQueue

            queue = JobQueue(self.store.url or "")
        kept_traces = None
        if traces is not None:
            from journeyman.app.traces import Traces

            kept_traces = Traces(Path(traces))
        self.runner = Runner(self._shared, RunnerSettings(**operation), queue=queue, traces=kept_traces)
        self.approvals = Approvals(self._shared, self.library, decided=self.runner.wake)
        if learning is None and configuration is not None and configuration.settings.learning.enabled:
            from journeyman.learning.forms import LearningSettings

            learning = LearningSettings(**configuration.settings.learning.model_dump(exclude={"enabled"}))
        self._learning = learning
        self.learning = bool(learning)
        if self.learning and playbook is None:
            self._shared.playbook = self.playbooks.__getitem__
        self.runner.rated = lambda run_id, label: self.playbooks.rated(run_id, label)
        self._opened = self._open = False

    @cached_property
    def gaps(self) -> Gaps:
        """What people asked for and no tool could do."""
        from journeyman.app.gaps import Gaps

        return Gaps(self.store, self.library, clock=self.clock)

    @cached_property
    def memory(self) -> MemoryManager:
        """Documents and stored conversations."""
        from journeyman.memory.manager import MemoryManager

        return MemoryManager(self.store.memories, self.store.conversations, clock=self.clock)

    @cached_property
    def playbooks(self) -> Playbooks:
        """What was learned from runs, by domain."""
        from journeyman.app.playbooks import Playbooks
        from journeyman.learning.forms import LearningSettings

        given = self._learning
        settings = given if isinstance(given, LearningSettings) else LearningSettings()
        return Playbooks(self.store, clock=self.clock, owner=self._shared.owner, settings=settings)

    @classmethod
    def from_config(
        cls,
        path: Path | str | None = None,
        *,
        environment: str | None = None,
        store: str | None = None,
        model: Model | ModelSettings | str | None = None,
        watch: bool = True,
        principals: Callable[[Principal], Principal | None] | None = None,
        clock: Clock | None = None,
        **operation: Unpack[Operation],
    ) -> Self:
        """What a configuration file describes: ``async with Journeyman.from_config("journeyman.yaml") as app: …``

        Without a path, the file that JOURNEYMAN_CONFIG names, or journeyman.yaml in the current folder. Keywords win
        over the environment, which wins over the file; ``model`` wins over what agents name. While the app is open the
        file is watched, and an edit holds from the next step of every run on. Raises SettingsError with every problem.
        """
        from journeyman.app.configuration import Configuration, found_file, operation_of

        given = {"environment": environment, "store": store}
        options = {name: value for name, value in given.items() if value is not None}
        configuration = Configuration(found_file(path), options=options, watched=watch)
        runs = configuration.settings.runs
        return cls(
            configuration=configuration,
            store=configuration.database,
            model=model,
            traces=runs.traces,
            principals=principals,
            clock=clock,
            **{**operation_of(runs), **operation},  # keywords win
        )

    @property
    def policy(self) -> Policy:
        """The rules as they are now."""
        return self._shared.rules.policy

    async def __aenter__(self) -> Self:
        if self._opened:
            raise ConfigurationError("an app is opened once; make a new Journeyman(...)")
        self._opened = True
        if tracing():
            from journeyman.stores.database import Database
            from journeyman.telemetry.spans import store_span

            Database.observe = store_span
        await self.store.open()
        try:
            if self._shared.gate is not None:
                self._shared.refused = await self._shared.gate.refuses(self.store)
            if self.runner.queue is not None:
                await self.runner.queue.open()
            await self.library.open()
            await self.runner.open()
            if self.learning:
                self.playbooks.open()
            if self.configuration is not None:
                await self.configuration.watch(self._shared)
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
        if self.configuration is not None:
            await self.configuration.close()
        await self.runner.close()
        async with _no_longer_than(CLOSE_SECONDS, "playbooks"):
            if self.learning:
                await self.playbooks.close()
        async with _no_longer_than(CLOSE_SECONDS, "models"):
            await self._shared.close()
        async with _no_longer_than(CLOSE_SECONDS, "sources of tools"):
            await self.library.close()
        if self.runner.queue is not None:
            await self.runner.queue.close()
        await self.store.close()

    # --- runs

    @overload
    async def start(
        self, agent: Agent, task: Wanted, *, output: type[T], **options: Unpack[StartOptions]
    ) -> Handle[T]: ...

    @overload
    async def start(
        self, agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[StartOptions]
    ) -> Handle: ...

    async def start(
        self,
        agent: Agent,
        task: Wanted,
        *,
        output: Any = None,
        principal: Principal | None = None,
        limits: Limits | None = None,
        history: Sequence[Message] = (),
        session_id: str | None = None,
        priority: int = 0,
        run_id: str | None = None,
        chain: Sequence[ChainStep] = (),
        verify: Verify | None = None,
    ) -> Handle:
        """Keep a run in the store and begin it. A ``run_id`` of the caller's makes starting twice harmless.

        With ``output``, a type or a JSON Schema, the answer is data that fits it; it wins over the agent's. The store
        keeps the schema alone: a process that does not have the type checks answers against that.

        ``verify`` says of the run, when it has ended here, whether it is right; it wins over the agent's. Like that one
        it is part of this program, and not kept in the store.

        A name that another principal's run has already is no hindrance: then the run has an id of its own, the same
        one each time. Raises SessionTakenError where another principal has begun the session, unless this one has the
        permission 'runs:write'.
        """
        self._check_open()
        self._shared.must_be_confirmed()
        if output is not None:
            agent = agent.with_output(output)
        given = task_of(task)
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
            origin=self._shared.origin,
            trace_parent=current_span(),
            created_at=self.clock.time(),
        )
        # A run that could never begin is refused here.
        Offer(agent, self._shared.own_library(agent, given), given, order.principal, most=None).begin()
        if agent.carries:
            self._shared.remember(agent)
        order, new = await self._shared.keep(order)
        if verify is not None and new:
            self._shared.verify(order.run_id, verify)
        await self.runner.adopt(order.run_id, order=order if new else None, priority=priority)
        return self._handle(order.run_id, agent)

    async def chain(
        self,
        steps: Sequence[ChainStep | Mapping[str, Any]],
        *,
        principal: Principal | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
    ) -> list[Any]:
        """Carry out tool calls one after another and return their results. Raises ChainError where one fails.

        A ``run_id`` of the caller's makes asking twice harmless: the chain runs once, and its results come again.

        ``$NAME`` in a text is a field of the latest result that has it, ``$N.path`` one of the N-th step's result,
        ``$$`` a dollar sign.
        """
        from journeyman.app.chains import chain_results, start_chain

        handle = await start_chain(self, steps, principal=principal, session_id=session_id, run_id=run_id)
        return await chain_results(handle)

    async def handle(self, run_id: str) -> Handle:
        """A handle on any run of the store."""
        if await self.store.runs.get(run_id) is None:
            raise ConfigurationError(f"there is no run {run_id!r} in this store")
        return self._handle(run_id)

    def _handle(self, run_id: str, agent: Agent | None = None) -> Handle:
        from journeyman.app.handles import Handle

        return Handle(self.runner, run_id, agent=agent)

    def session(self, session_id: str) -> Session:
        """A stored conversation. Runs of one session go one after another."""
        from journeyman.app.handles import Session

        return Session(self, session_id)

    async def resume(self, *run_ids: str) -> list[Handle]:
        """Take responsibility for every unfinished run of the store, or for just these; waiting ones included."""
        self._check_open()
        handles = [await self.handle(run_id) for run_id in run_ids]
        if run_ids:
            self._shared.must_be_confirmed()
            await self.runner.resume(run_ids)
            return handles
        # All at once: pages of a list that changes meanwhile would leave some out.
        rows = await self.store.runs.list(statuses=UNFINISHED, limit=_ALL)
        if rows and self._shared.refused is not None:
            logger.warning("%s", self._shared.refused)
            return []
        await self.runner.resume_all(row.id for row in rows)
        return [self._handle(row.id) for row in rows]

    async def must_bind(self, run_id: str) -> None:
        """Raise BindingError where this process lacks tools that an unfinished run was ordered with.

        A program's own run is resumed without them, and the model is told; whoever resumes by hand wants to know first.
        """
        order = await self.store.runs.order(run_id)
        if order is not None:
            self._shared.may_load(order)
            agent = self._shared.agent_of(order.agent)
            (await self._shared.library_of(agent, order)).bind(agent, descriptions=False)

    async def cancel(self, run_id: str, *, by: str | None = None) -> None:
        """Cancel a run wherever it is worked on; ``by`` whom is in the audit."""
        await self.runner.cancel(run_id, by=by)

    async def understand(
        self,
        text: str,
        *,
        principal: Principal | None = None,
        context: Mapping[str, Any] | None = None,
        offline: bool = False,
    ) -> UserIntent | None:
        """What a request asks for, among the tools that ``principal`` may use; nothing is run for it.

        None where it asks for nothing, or for nothing of a known type. The model that the app was given, or that its
        configuration names, is asked once, unless ``offline`` is set; where it fails, the answer is made without it.
        ``context`` has values for parameters that the text leaves open.
        """
        from journeyman.app.finding import understand

        model = None if offline else self._shared.own_model()
        return await understand(text, self.library, principal=principal, context=context, model=model, clock=self.clock)

    async def replay(self, *runs: str, **options: Unpack[ReplayOptions]) -> ReplayReport:
        """What would become of recorded runs under other rules: these, or those of the last ``since`` seconds, or all.

        Nothing has an effect. Every recorded call passes today's gate, under the app's policy or ``policy``.
        """
        from journeyman.app.replays import replay

        return await replay(self, runs, **options)

    async def fork(self, run_id: str, *, at: int, **options: Unpack[ForkOptions]) -> Handle:
        """Begin a run that shares the past of another one up to the step ``at``, and goes on otherwise from there.

        The model is asked again; or something is said to it first (``say``), or the step's call gets other
        ``arguments`` or another ``result``. Nothing of the past is done again, and what follows is governed afresh:
        nothing that was allowed to the parent is allowed to the fork.
        """
        from journeyman.app.replays import fork

        self._check_open()
        return self._handle(await fork(self, run_id, at=at, **options))

    async def diff(self, a: str, b: str) -> RunDiff:
        """Where two stored runs part, and calls, results, answers and costs of both."""
        from journeyman.app.replays import recorded
        from journeyman.replay.playing import diff

        return diff(*[item async for item in recorded(self, (a, b), since=None)])

    def model_for(self, agent: Agent) -> Model:
        """The model that answers for an agent here: the app's, or the one the agent names."""
        return self._shared.model_for(agent)

    def _check_open(self) -> None:
        if not self._open:
            raise ConfigurationError("the app is not open; write 'async with Journeyman(...) as app:'")


@contextlib.asynccontextmanager
async def _no_longer_than(seconds: float, what: str) -> AsyncIterator[None]:
    """Leave behind what takes too long to close: the rest must be closed as well."""
    try:
        # In the task that closes: some sources of tools must be closed where they were opened.
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        logger.warning("the %s did not close within %g s: left behind", what, seconds)

"""The one way to build a ``Run``, for direct and for durable runs alike, and what all runs over a store share."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from journeyman.agent.agent import Agent, Verify
from journeyman.agent.offer import Offer
from journeyman.agent.run import NO_LIMITS, Planner, Run, effective_limits
from journeyman.agent.state import RunState
from journeyman.agent.turn import ModelPlanner, NoModel
from journeyman.app.finding import DefaultRanker, find_gap, how_served, tools_with_chances
from journeyman.core.approvals import CURE
from journeyman.core.calls import Caller
from journeyman.core.data import FORMAT, LOG_FIELDS, Latest, canonical_json, new_id, unchecked
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import Fact, RunForked, RunResumed, RunStarted, StepRestarted, StrategiesInjected, read_fact
from journeyman.core.model_settings import AUTO, ModelSettings
from journeyman.core.playbook import Advice, StrategySource
from journeyman.core.policy import WRITE_ALL, Policy, Principal, RiskLevel
from journeyman.core.protocols import ApprovalGate, Clock, Journal, Listener, Model, SystemClock
from journeyman.core.runs import Limits, Message, SessionHistory, TaskInput, Wanted, task_of
from journeyman.core.specification import Environment
from journeyman.core.storing import Fork, Origin, RunOrder, own_run_id
from journeyman.execution.approval import AskApprover, NoApprover
from journeyman.execution.checks import LocalBreaker, LocalLimiter, ResultCache, base_risk
from journeyman.execution.executor import Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.recorder import MemoryJournal, Recorder
from journeyman.execution.threads import default_pool
from journeyman.telemetry import logging_runs, metering, tracing
from journeyman.telemetry.logs import LogListener
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.app.direct import RunOptions
    from journeyman.app.runner import Claims
    from journeyman.app.splits import Split
    from journeyman.app.trust import TrustGate
    from journeyman.stores.audit import SqlAudit
    from journeyman.stores.store import SqlStore
    from journeyman.telemetry.spans import SpanListener

logger = logging.getLogger("journeyman.app")

EMBEDDED = "embedded"
SESSION_HISTORY_SINCE = 2
"""The format from which on programs look for a run's history in its session."""
MOST_VERIFIERS = 10_000
"""Of runs that were started here and may wait for a person."""
MOST_AGENTS = 100
"""Agents that are kept ready for further runs."""


# --- what runs share: the rules that hold, an executor for each library, where tools are found, the models that answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for runs where nobody says anything else."""

    policy: Policy
    limits: Limits = NO_LIMITS
    model: Callable[[], str | ModelSettings] | None = None
    """The model for agents that name none, looked up when it is used: it may hold a secret."""


class Executors:
    """By library, because two libraries may hold different tools under one name: rate limits, breakers, cached results.

    What was counted for a library goes with it. An agent's own library lives no longer than its agent, and another one
    may be made at the same address.
    """

    def __init__(
        self,
        clock: Clock,
        store: SqlStore | None = None,
        *,
        now: Callable[[Principal], Principal | None] | None = None,
    ) -> None:
        self.claims: Claims | None = None
        """Knows of calls that another process has begun; set before the first run."""
        self.callers: dict[str, Caller] = {}
        """By run, who can be reached while its calls run; a door's business."""
        self.recall: Callable[[RunOrder], None] = lambda order: None
        """Told of each run that is taken up: a door knows whether its caller may come back, and notes them above."""
        self._clock = clock
        self._store = store
        self._now = now
        self._known: WeakKeyDictionary[ToolLibrary, Executor] = WeakKeyDictionary()

    def of(self, library: ToolLibrary) -> Executor:
        """What runs with this library share."""
        executor = self._known.get(library)
        if executor is None:
            executor = self._known[library] = self._made()
        return executor

    def _made(self) -> Executor:
        clock, store = self._clock, self._store
        made = Executor(
            clock=clock,
            invoker=Invoker(threads=default_pool()),
            limiter=LocalLimiter(clock=clock),
            breaker=LocalBreaker(clock=clock),
            cache=ResultCache(clock=clock),
            now=self._now,
            callers=self.callers,
        )
        if store is not None:
            from journeyman.stores.journal import retrying

            made.artifacts = retrying(store.artifacts, clock=clock)
            made.durable, made.claims = True, self.claims
            if store.shared_limits:  # one process counts for itself; several share what the store counts
                made.limiter = retrying(store.limiter, clock=clock)
                made.breaker = retrying(store.breaker, clock=clock)
        return made


in_process = Executors(SystemClock())
"""Of the direct runs of this process."""


def ranking_tools(model: Model) -> Model:
    """A model that somebody made, with the ranking of tools if it can use one and has none."""
    if getattr(model, "rank", ...) is None:
        model.rank = tools_with_chances  # type: ignore[attr-defined]  # just seen
    if getattr(model, "serves", ...) is None:
        model.serves = how_served  # type: ignore[attr-defined]  # just seen
    return model


def model_named(model: str | ModelSettings) -> Model:
    from journeyman.models.resolve import model_from_name

    return ranking_tools(model_from_name(model))


_SHARED: dict[tuple[str | None, ...], Model] = {}
_MOST_SHARED = 32


def shared_model(settings: ModelSettings) -> Model:
    """The model of these settings that every run of this process uses: its connections are kept between runs.

    Only those whose unused connections cost nothing; the others are made anew, and closed by whoever asked for them.
    """
    if settings.name.partition(":")[0] not in ("openai", "ollama", "http", "https"):
        return model_named(settings)
    key = (str(settings) if not settings.given else settings.key, *map(os.environ.get, _DECISIVE))
    if (model := _SHARED.get(key)) is None:
        if len(_SHARED) >= _MOST_SHARED:
            _SHARED.clear()  # whoever uses one keeps it
        model = _SHARED[key] = model_named(settings)
    return model


def is_shared(model: Model) -> bool:
    return any(model is shared for shared in _SHARED.values())


_DECISIVE = (
    *("OPENAI_BASE_URL", "OPENAI_API_KEY", "OLLAMA_HOST"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
"""What of the environment such a model is made by."""


async def close_model(model: Model) -> None:
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()


# --- one run


def build(
    order: RunOrder,
    agent: Agent,
    library: ToolLibrary,
    *,
    executor: Executor,
    rules: Rules,
    gate: ApprovalGate,
    journal: Journal,
    planner: Callable[[], Planner],
    listener: Listener | None = None,
    past: tuple[RunState, int] | None = None,
    verify: Verify | None = None,
    deps: Any = None,
    tools: Literal["bind", "all", "none"] = "bind",
    shared: Shared | None = None,
) -> Run:
    """The run as its facts leave it. Raises BindingError where a new run's tools are missing.

    ``past`` is the fold of what the journal holds of the run already, and how many facts that are. Without tools a run
    can be settled and cancelled, but not advanced. With ``all``, one that is resumed needs each of them, as a new one
    does; else it goes on without those that are gone. ``shared`` is given for a run that a store keeps.
    """
    clock, policy = executor.clock, rules.policy
    if shared is not None:
        shared.executors.recall(order)
    state, seq = past or (RunState(result_limit=policy.max_result_chars), 0)
    ranker = DefaultRanker(library)
    offer = Offer(agent, library, order.task, order.principal, most=policy.max_offered_tools, ranker=ranker)
    offer.resume(state)
    if tools != "none":
        # A resumed run goes on under the descriptions it began with.
        offer.begin(missing="skip" if seq and tools == "bind" else "refuse", descriptions=not seq)
    limits = effective_limits(order.limits, order.task, agent, rules.limits)
    listeners, spans = _listeners(order, agent, library, policy, state, listener)
    recorder = Recorder(
        order.run_id,
        journal,
        clock=clock,
        fold=state.apply,
        listeners=listeners,
        seq=seq,
        format=lambda: FORMAT if shared is None else shared.format,
    )
    return Run(
        agent=agent,
        executor=executor,
        run_id=order.run_id,
        recorder=recorder,
        tools=offer.tools,
        policy=policy,
        gate=gate,
        principal=order.principal,
        deadline=None if limits.seconds is None else clock.monotonic() + limits.seconds - state.active_seconds,
        around=None if spans is None else spans.running,
        deps=deps,
        state=state,
        limits=limits,
        offer=offer,
        planner=planner(),
        trace=spans,
        rules=None if shared is None else lambda: shared.in_environment(order.task, library)[1].policy,
        verify=verify or agent.verify,
        gaps=None if order.chain else find_gap,
        wants_text=listener is not None,
    )


def _listeners(
    order: RunOrder,
    agent: Agent,
    library: ToolLibrary,
    policy: Policy,
    state: RunState,
    listener: Listener | None,
) -> tuple[list[Listener], SpanListener | None]:
    """The library's counters, logs, spans and metrics if they are configured, and the caller's listener."""
    content = policy.capture_content
    listeners: list[Listener] = [library.count]
    if logging_runs():
        listeners.append(LogListener(capture_content=content))
    spans: SpanListener | None = None
    if tracing():
        from journeyman.telemetry.spans import SpanListener

        pasts = () if state.turn is None else state.turn.pasts.values()
        asked = [past.approval for past in pasts if past.approval is not None and past.decision is None]
        parent = state.trace_parent or order.trace_parent
        spans = SpanListener(agent.name, parent=parent, asked=asked, capture_content=content)
        listeners.append(spans)
    if metering():
        from journeyman.telemetry.metrics import MetricListener

        listeners.append(MetricListener(agent.name))
    if listener is not None:
        listeners.append(listener)
    return listeners, spans


async def begin(
    run: Run,
    order: RunOrder,
    playbook: StrategySource | None,
    *,
    history: tuple[Message, ...] = (),
    session_history: SessionHistory | None = None,
) -> None:
    """Record a new run's first facts: what it was asked, and the advice it is given."""
    started = RunStarted(
        agent=order.agent,
        task=order.task,
        principal=order.principal,
        limits=order.limits,
        history=history,
        session_history=session_history,
    )
    if run.trace is not None:
        parent = run.trace.begin(run.id, run.clock.time())
        started = started.model_copy(update={"trace_parent": parent})
    await run.recorder.record(started)
    advice = [Advice(text=text) for text in order.task.playbook_bullets if text.strip()]
    if playbook is not None:
        try:
            offered = await playbook.advise(
                order.task.description,
                tools=run.offer.names,
                principal=order.principal or order.task.principal,
                previous=next((call.tool_name for said in reversed(history) for call in said.calls[-1:]), None),
                run_id=run.id,
            )
            given = StrategiesInjected(advice=tuple(offered)).advice
            several = isinstance(run.planner, ModelPlanner) and run.planner.several_strategies
            advice += [item for item in given if several or not item.spare]
        except Exception:
            # A run is as good without advice as it was before there was a playbook.
            logger.exception("the playbook failed; the run begins without it", extra={LOG_FIELDS: {"run_id": run.id}})
    if advice:
        await run.recorder.record(StrategiesInjected(advice=tuple(advice)))


# --- runs that live and die with their caller


@asynccontextmanager
async def prepared(
    agent: Agent, wanted: Wanted, options: RunOptions, *, listener: Listener | None, last: bool
) -> AsyncIterator[Run]:
    """A run with its first facts recorded. A model that was made for this run alone is closed in the end.

    ``last`` says that the event loop ends with this run: then any model lets go of what is bound to it.
    """
    task = task_of(wanted)
    library = options.get("library")
    library = agent.own_library if library is None else library
    playbook = options.get("playbook")
    journal = MemoryJournal() if (given_journal := options.get("journal")) is None else given_journal
    executor = in_process.of(library)
    fields = {
        "run_id": new_id("run"),
        "agent": agent.snapshot,
        "task": task,
        "principal": options.get("principal") or task.principal,
        "limits": options.get("limits") or NO_LIMITS,
        "created_at": executor.clock.time(),
    }
    order = unchecked(RunOrder, fields)
    gate: ApprovalGate = NoApprover()
    if (approver := options.get("approver")) is not None:
        gate = AskApprover(approver, clock=executor.clock, waited=lambda seconds: made.postpone(seconds))
    given = agent.model_settings if (chosen := options.get("model")) is None else chosen
    model: Model | None = None

    def planner() -> Planner:
        nonlocal model
        if (planning := options.get("planner")) is not None:
            return planning
        if isinstance(given, str | ModelSettings):
            model = shared_model(ModelSettings.of(given).over(agent.model_settings))
        else:
            model = ranking_tools(given)
        return ModelPlanner(model)

    await library.open()
    try:
        made = build(
            order,
            agent,
            library,
            executor=executor,
            rules=Rules(policy=options.get("policy") or Policy()),
            gate=gate,
            journal=journal,
            planner=planner,
            listener=listener,
            verify=options.get("verify"),
            deps=options.get("deps"),
        )
        if approver is None:
            _warn_of_denials(made)
        await begin(made, order, playbook, history=tuple(options.get("history", ())))
        yield made
        if (feed := getattr(playbook, "feed", None)) is not None:
            await _feed(feed, journal, made)
    finally:
        if model is not None and (last or (given is not model and not is_shared(model))):
            await close_model(model)
        await library.close()


def _warn_of_denials(run: Run) -> None:
    """Say at once which tools nobody can agree to, and what to do: their calls will be denied."""
    own = [tool.specification for tool in run.agent.own_tools]
    if denied := [item.name for item in own if base_risk(item, run.policy) is RiskLevel.IRREVERSIBLE]:
        logger.warning("nobody can be asked in this run, so calls of %s will be denied: %s", ", ".join(denied), CURE)


async def _feed(feed: Callable[[Any], Awaitable[None]], journal: Journal, run: Run) -> None:
    from journeyman.learning.episodes import from_facts

    try:
        if run.state.status.ended and (episode := from_facts(await journal.read(run.id))) is not None:
            await feed(episode)
    except Exception:
        # What a run came to does not depend on whether something was learned from it.
        logger.exception("nothing was learned from a run", extra={LOG_FIELDS: {"run_id": run.id}})


class AuditedJournal(MemoryJournal):
    """Of runs that no store keeps, but whose tools work on one: its audit has their effects and refusals all the same.

    The rows are those of a run that is kept.
    """

    def __init__(self, audit: SqlAudit, *, actor: str | None) -> None:
        super().__init__()
        self._audit = audit
        self._actor = actor

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        from journeyman.stores.journal import audited

        await super().append(run_id, facts, sync=sync)
        for fact in facts:
            # Nobody else waits for a start to be synced than a call with effects.
            if (noted := audited(fact, effect=sync)) is not None:
                kind, call_id, details = noted
                await self._audit.append(
                    kind, actor=self._actor, run_id=run_id, subject=call_id, details=details, now=fact.time
                )


# --- runs over a store


@dataclass(slots=True, kw_only=True)
class Shared:
    """What all runs over one store share. A run is built from it, from its order and from its facts."""

    store: SqlStore
    clock: Clock
    owner: str
    rules: Rules
    library: ToolLibrary | None
    """None where none was given: agents then run with the tools they carry."""
    executors: Executors
    model: Model | ModelSettings | str | None
    """The app's, which wins over what agents and runs name."""
    playbook: Callable[[str], StrategySource | None]
    """By domain: what runs are advised by, if anything."""
    environments: Callable[[ToolLibrary, Rules, Environment], tuple[ToolLibrary, Rules]] | None = None
    """What holds for a task that names its environment, where a configuration file has overrides."""
    gate: TrustGate | None = None
    """Who is asked about a store and its runs; None where the program has named the store itself."""
    refused: str | None = None
    """Why nothing in the store may run."""
    format: int = FORMAT
    """What every program at work on the store can read; brought up to date while the app is open."""
    deps: Callable[[Principal | None], Any] | None = None
    """Makes what the tools of a run are given."""
    split: Split | None = None
    origin: Origin | None = None
    """How this program was told of its agents and its library; kept with the runs that it begins."""
    find_tools: Callable[[RunOrder], ToolLibrary] | None = None
    """Finds the tools of a run that was begun with others than this program's. Raises where it cannot, or must not."""
    _found: set[ToolLibrary] = field(default_factory=set)
    """Libraries that were found so, and opened here."""
    _models: dict[str, Model] = field(default_factory=dict)
    """Kept open for the app's runs."""
    _verifiers: Latest[str, Verify] = field(default_factory=lambda: Latest(MOST_VERIFIERS))
    """By run: who judges it when it ends, where that was said when it was started here."""
    _agents: Latest[str, Agent] = field(default_factory=lambda: Latest(MOST_AGENTS))

    def must_be_confirmed(self) -> None:
        """Refuse to begin or to go on with a run in a store that nobody has confirmed. Raises ConfigurationError."""
        if self.refused is not None:
            raise ConfigurationError(self.refused)

    def may_load(self, order: RunOrder, *, model: bool = True) -> None:
        """Refuse a stored run that names code or a model's address which nobody has. Raises ConfigurationError.

        Without ``model``, another one has been named in the place of the run's own.
        """
        self.must_be_confirmed()
        if self.gate is not None:
            code = self.find_tools is not None and self._with_others(order)
            self.gate.check_run(order, code=code, model=model and not order.chain and not self.model)

    async def load(
        self,
        run_id: str,
        epoch: int,
        *,
        order: RunOrder | None = None,
        listener: Listener | None = None,
        advancing: bool = True,
    ) -> Run:
        """The run as it stands, for the holder of this epoch: to be advanced, or only to be settled or cancelled.

        ``order`` is given where this process has just stored it.
        """
        from journeyman.app.approvals import StoreGate
        from journeyman.stores.journal import RetryingJournal, retry_store_faults, retrying

        runs, read = self.store.runs, partial(retry_store_faults, clock=self.clock, run_id=run_id)
        if order is None:
            order = await read(lambda: runs.order(run_id))
            if order is None:
                raise ConfigurationError(f"there is no run {run_id!r}")
            if advancing:
                self.may_load(order)
        # With the first epoch nobody can have written anything.
        past = None if epoch == 1 and order.fork is None else await read(partial(self.fold, run_id))
        # The agent as it was ordered: a newer version of it does not change this run.
        agent = self.agent_of(order.agent)
        library = await self.library_of(agent, order) if advancing else self.own_library(agent, order.task)
        executor = self.executors.of(library)  # limits count the calls of every environment together
        library, rules = self.in_environment(order.task, library)
        gate: ApprovalGate = StoreGate(store=self.store, session_id=order.task.session_id)
        deps = self.deps(order.principal) if advancing and self.deps is not None else None
        run = build(
            order,
            agent,
            library,
            executor=executor,
            rules=rules,
            gate=retrying(gate, clock=self.clock, run_id=run_id),
            journal=RetryingJournal(run_id, runs, epoch=epoch, clock=self.clock),
            planner=partial(self._planner, order, agent, advancing=advancing),
            listener=listener,
            past=past,
            verify=self._verifiers.get(run_id),
            deps=await deps if isawaitable(deps) else deps,
            tools="none" if not advancing else "all" if self._with_others(order) else "bind",
            shared=self,
        )
        if past is None or not past[1]:
            history, span = order.history, None
            if (session_id := order.task.session_id) is not None and not history:
                most = run.limits.history_messages  # the model is sent no more than that
                span, said = await read(lambda: self.store.conversations.history(session_id, last=most))
                history = tuple(said)
            await begin(
                run,
                order,
                self.playbook(order.task.domain) if advancing and not order.chain else None,
                history=history,
                session_history=span if self.format >= SESSION_HISTORY_SINCE else None,
            )
        elif order.fork is not None and not run.state.forked:
            await self._fork(run, order.fork)
        elif not run.state.status.ended:
            await run.recorder.record(RunResumed(owner=self.owner))
            if run.state.turn is None:
                # The model will be asked (again) for this step: whatever was shown of its text is void.
                await run.recorder.record(StepRestarted(iteration=run.iteration))
        return run

    async def _fork(self, run: Run, fork: Fork) -> None:
        """Record where the run leaves its parent, with what it begins with, all at once."""
        if self.format < RunForked.since:
            raise ConfigurationError("a program of an older version works on this store, which cannot read forked runs")
        left = RunForked(parent_id=fork.run_id, parent_seq=fork.seq, iteration=fork.iteration, say=fork.say)
        await run.recorder.record(left, *(read_fact(to_json(fact)) for fact in fork.facts))

    def in_environment(self, task: TaskInput, library: ToolLibrary) -> tuple[ToolLibrary, Rules]:
        """The tools and rules of a task, with the overrides of the environment that it names."""
        if task.environment is None or self.environments is None:
            return library, self.rules
        return self.environments(library, self.rules, task.environment)

    def _planner(self, order: RunOrder, agent: Agent, *, advancing: bool) -> Planner:
        if not advancing:
            # That must work without tools and a model.
            why = "this run was loaded to be settled or cancelled, not to be advanced"
            return ModelPlanner(NoModel(ConfigurationError(why)))
        if order.chain:
            from journeyman.app.chains import ChainPlanner

            return ChainPlanner(order.chain)
        return ModelPlanner(self.model_for(agent, named=None if order.origin is None else order.origin.model))

    def model_for(self, agent: Agent, *, named: str | None = None) -> Model:
        """The app's model, or the one that a run was begun with, or the one the agent names."""
        if self.model is not None and not isinstance(self.model, str | ModelSettings):
            return ranking_tools(self.model)
        settings = ModelSettings.of(self.model or named or agent.model_settings)
        if self.model is not None or named is not None:
            settings = settings.over(agent.model_settings)
        if settings.name == AUTO and self.rules.model is not None:
            settings = settings.over(self.rules.model())
        return self._open(settings)

    def own_model(self) -> Model | None:
        """The model that the app was given or its configuration names, if it can do more than call tools."""
        name = self.model if self.model is not None or self.rules.model is None else self.rules.model()
        if name is None or not isinstance(name, str | ModelSettings):
            return name
        settings = ModelSettings.of(name)
        return None if settings.name == EMBEDDED else self._open(settings)

    def _open(self, settings: ModelSettings) -> Model:
        if settings.key not in self._models:
            self._models[settings.key] = model_named(settings)
        return self._models[settings.key]

    def own_library(self, agent: Agent, task: TaskInput) -> ToolLibrary:
        """The tools of a run that was begun here: in its arm of a split, in the app's library, or with its agent."""
        arm = self.split.library_of(task) if self.split is not None else None
        return next(library for library in (arm, self.library, agent.own_library) if library is not None)

    async def library_of(self, agent: Agent, order: RunOrder) -> ToolLibrary:
        """Where a run finds its tools: with what it was begun with, where that is not what this program has."""
        if self.find_tools is None or not self._with_others(order):
            return self.own_library(agent, order.task)
        library = self.find_tools(order)
        if library not in self._found:
            await library.open()
            self._found.add(library)
        return library

    def _with_others(self, order: RunOrder) -> bool:
        """Whether a run was begun with another agent or library, by name, than this program was given."""
        return order.origin is not None and (self.origin is None or self.origin.code != order.origin.code)

    async def keep(self, order: RunOrder) -> tuple[RunOrder, bool]:
        """The order as it is kept in the store, and whether it is new."""
        principal, runs = order.principal, self.store.runs
        any_session = principal is not None and principal.may(WRITE_ALL)
        whole = order
        order, texts = await asyncio.to_thread(order.by_reference) if order.task.media else order.by_reference()
        if await runs.create(order, any_session=any_session, artifacts=texts):
            return order, True
        row = await runs.get(order.run_id)
        if row is None or row.principal_id == order.principal_id:
            return order, False
        order = whole.model_copy(update={"run_id": own_run_id(order.principal_id, order.run_id)})
        order, texts = order.by_reference()
        return order, await runs.create(order, any_session=any_session, artifacts=texts)

    async def fold(self, run_id: str) -> tuple[RunState, int]:
        """What a run's facts amount to, and how many there are."""
        state, seq = RunState(result_limit=self.rules.policy.max_result_chars), 0
        async for fact in self.store.runs.all_facts(run_id):
            state.apply(fact)
            seq = fact.seq or seq
        return state, seq

    def agent_of(self, snapshot: dict[str, Any]) -> Agent:
        """The agent of a snapshot: one object for all its runs, since reading and binding takes longer than a step."""
        text = canonical_json(snapshot)
        self._agents[text] = agent = self._agents.get(text) or Agent.stored(snapshot)
        return agent

    def remember(self, agent: Agent) -> None:
        """Keep an agent for its runs: one read from a snapshot would have lost the tools and the type it carries."""
        self._agents[canonical_json(agent.snapshot)] = agent

    def verify(self, run_id: str, by: Verify) -> None:
        """Have a run judged by this function when it ends here."""
        self._verifiers[run_id] = by

    async def close(self) -> None:
        for model in self._models.values():
            await close_model(model)
        self._models.clear()
        for library in self._found:
            await library.close()
        self._found.clear()

"""Durable runs, built from what a store knows of them. How a run is put together is in ``assembly``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from journeyman.agent.agent import Agent, Verify
from journeyman.agent.limits import NO_LIMITS
from journeyman.agent.run import Run
from journeyman.agent.state import RunState
from journeyman.app.approvals import StoreGate
from journeyman.app.assembly import Assembly, Resources, begin, close_model, model_named
from journeyman.app.chains import ChainPlanner
from journeyman.app.finding import DefaultRanker, find_gap
from journeyman.app.splits import Split
from journeyman.core.data import FORMAT, canonical_json
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import RunResumed, RunStarted, StepRestarted
from journeyman.core.playbook import StrategySource
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import Clock, Deltas, Listener, Model, ModelRequest, ModelResponse, Witness
from journeyman.core.runs import Limits, TaskInput
from journeyman.core.storing import Origin, RunOrder, Store
from journeyman.execution.artifacts import whole
from journeyman.stores.store_retry import (
    RetryingArtifacts,
    RetryingBreaker,
    RetryingGate,
    RetryingJournal,
    RetryingLimiter,
    retry_store_faults,
)
from journeyman.tools.library import ToolLibrary

SESSION_HISTORY_SINCE = 2
"""The format from which on programs look for a run's history in its session."""
FACTS_AT_ONCE = 500
"""Facts to a page. A run may have a hundred thousand, and nobody else may wait for them."""
AUTO = "auto"
"""The model of an agent that names none."""
EMBEDDED = "embedded"
MOST_VERIFIERS = 10_000
"""Of runs that were started here and may wait for a person."""
MOST_AGENTS = 100
"""Agents that are kept ready for further runs."""


class NoModel:
    """In the model's place where a run is only settled or cancelled: that must work without tools and a model."""

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        raise ConfigurationError("this run was loaded to be settled or cancelled, not to be advanced")


@dataclass(slots=True)
class RunFactory:
    """Builds runs from what a store knows of them: the order, then the facts."""

    store: Store
    library: ToolLibrary | None
    """None where none was given: agents then run with the tools they carry."""
    policy: Policy
    clock: Clock
    owner: str
    model: Model | str | None = None
    playbook: StrategySource | None = None
    playbooks: Callable[[str], StrategySource] | None = None
    """By domain, where runs are advised by what others have learned."""
    split: Split | None = None
    limits: Limits = NO_LIMITS
    """What holds for runs where nobody says anything else."""
    default_model: Callable[[], str] | None = None
    """The name of the model of agents that name none."""
    principals: Callable[[Principal], Principal | None] | None = None
    """Who a principal is by now; None where nobody keeps a list."""
    origin: Origin | None = None
    """How this program was told of its agents and its library; kept with the runs that it begins."""
    find_tools: Callable[[RunOrder], ToolLibrary] | None = None
    """Finds the tools of a run that was begun with others than this program's. Raises where it cannot, or must not."""
    witness: Witness | None = None
    verifiers: dict[str, Verify] = field(default_factory=dict)
    """By run: who judges it when it ends, where that was said when it was started here."""
    format: int = FORMAT
    """What every program at work on the store can read; brought up to date while the app is open."""
    _resources: dict[int, Resources] = field(default_factory=dict)
    _models: dict[str, Model] = field(default_factory=dict)
    _agents: dict[str, Agent] = field(default_factory=dict)
    _found: dict[int, ToolLibrary] = field(default_factory=dict)
    """Libraries that were found for runs, and opened here."""

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
        runs, read = self.store.runs, partial(retry_store_faults, clock=self.clock, run_id=run_id)
        order = order or await read(lambda: runs.order(run_id))
        if order is None:
            raise ConfigurationError(f"there is no run {run_id!r}")
        # With the first epoch nobody can have written anything.
        state, seq = (None, 0) if epoch == 1 else await read(partial(self.fold, run_id))
        # The agent as it was ordered: a newer version of it does not change this run.
        agent = self.agent_of(order.agent)
        library = await self.library_for(agent, order) if advancing else self.own_library(agent, order.task)
        run = Assembly(
            run_id=run_id,
            agent=agent,
            task=order.task,
            principal=order.principal,
            limits=order.limits,
            library=library,
            policy=self.policy,
            resources=self.resources_of(library),
            gate=RetryingGate(
                StoreGate(self.store, session_id=order.task.session_id, clock=self.clock), clock=self.clock
            ),
            witness=self.witness,
            durable=True,
            journal=RetryingJournal(run_id, runs, epoch=epoch, clock=self.clock),
            model=partial(self._model_of, order, agent) if advancing else lambda _: NoModel(),
            artifacts=RetryingArtifacts(self.store.artifacts, clock=self.clock),
            listener=listener,
            state=state,
            seq=seq,
            approval_seconds=self.policy.stored_approval_seconds,
            now=self.principals,
            defaults=self.limits,
            before_step=self._follow_policy,
            gaps=None if order.chain else find_gap,
            ranker=DefaultRanker(library),
            format=lambda: self.format,
            verify=self.verifiers.get(run_id),
            trace_parent=order.trace_parent,
            system="postgresql" if self.store.shared_limits else "sqlite",
            tools="none" if not advancing else "all" if self._begun_with_others(order) else "bind",
        ).build()
        if order.chain:
            run.repeatable = True  # whoever wrote the chain meant every step of it
        if not seq:
            history, span = order.history, None
            if (session_id := order.task.session_id) is not None and not history:
                most = run.limits.history_messages  # the model is sent no more than that
                span, said = await read(lambda: self.store.conversations.history(session_id, last=most))
                history = tuple(said)
            started = RunStarted(
                agent=order.agent,
                task=order.task,
                principal=order.principal,
                limits=order.limits,
                history=history,
                session_history=span if self.format >= SESSION_HISTORY_SINCE else None,
            )
            await begin(run, started, self._playbook_of(order) if advancing else None)
        elif not run.state.status.ended:
            await run.recorder.record(RunResumed(owner=self.owner))
            if run.state.turn is None:
                # The model will be asked (again) for this step: whatever was shown of its text is void.
                await run.recorder.record(StepRestarted(iteration=run.iteration))
        return run

    def _playbook_of(self, order: RunOrder) -> StrategySource | None:
        if order.chain:
            return None  # it asks no model
        if self.playbook is None and self.playbooks is not None:
            return self.playbooks(order.task.domain)
        return self.playbook

    def _follow_policy(self, run: Run) -> None:
        """A policy that has changed holds from a run's next step on."""
        policy = self.policy
        if run.executor.policy is not policy:
            run.executor.policy, run.executor.approval_seconds = policy, policy.stored_approval_seconds
            run.offer.limit_to(policy.max_offered_tools)

    async def fold(self, run_id: str) -> tuple[RunState, int]:
        """What a run's facts amount to, and how many there are. Read in pages: others go on in between."""
        state, seq = RunState(result_limit=self.policy.max_result_chars), 0
        while page := await self.store.runs.facts(run_id, after=seq, limit=FACTS_AT_ONCE):
            for fact in page:
                state.apply(fact)
            seq = page[-1].seq or seq
            if len(page) < FACTS_AT_ONCE:
                break
        return state, seq

    def _model_of(self, order: RunOrder, agent: Agent, state: RunState) -> Model:
        if not order.chain:
            named = None if order.origin is None else order.origin.model
            return self.model_for(agent, named)
        artifacts = RetryingArtifacts(self.store.artifacts, clock=self.clock)
        return ChainPlanner(order.chain, state, look_up=lambda record: whole(record, order.run_id, artifacts))

    async def library_for(self, agent: Agent, order: RunOrder) -> ToolLibrary:
        """Where a run finds its tools: with what it was begun with, where that is not what this program has."""
        if self.find_tools is None or not self._begun_with_others(order):
            return self.own_library(agent, order.task)
        library = self.find_tools(order)
        if id(library) not in self._found:
            await library.open()
            self._found[id(library)] = library
        return library

    def _begun_with_others(self, order: RunOrder) -> bool:
        """Whether a run was begun with another agent or library, by name, than this program was given."""
        return order.origin is not None and (self.origin is None or self.origin.code != order.origin.code)

    def own_library(self, agent: Agent, task: TaskInput) -> ToolLibrary:
        """The tools of a run that was begun here: in its arm of a split, in the app's library, or with its agent."""
        arm = self.split.library_of(task) if self.split is not None else None
        return next(library for library in (arm, self.library, agent.own_library) if library is not None)

    def resources_of(self, library: ToolLibrary) -> Resources:
        """What runs with one library share. One process counts for itself; several share what the store counts."""
        found = self._resources.get(id(library))
        if found is None:
            counted = self.store.shared_limits
            found = self._resources[id(library)] = Resources(
                self.clock,
                limiter=RetryingLimiter(self.store.limiter, clock=self.clock) if counted else None,
                breaker=RetryingBreaker(self.store.breaker, clock=self.clock) if counted else None,
            )
        return found

    def agent_of(self, snapshot: dict[str, Any]) -> Agent:
        """The agent of a snapshot: one object for all its runs, since reading and binding takes longer than a step."""
        text = canonical_json(snapshot)
        if (agent := self._agents.pop(text, None)) is None:
            agent = Agent.stored(snapshot)
        self._agents[text] = agent  # the latest last
        if len(self._agents) > MOST_AGENTS:
            del self._agents[next(iter(self._agents))]
        return agent

    def remember(self, agent: Agent) -> None:
        """Keep an agent for its runs: one read from a snapshot would have lost the tools and the type it carries."""
        self._agents[canonical_json(agent.snapshot)] = agent

    def verify(self, run_id: str, by: Verify) -> None:
        """Have a run judged by this function when it ends here."""
        self.verifiers[run_id] = by
        if len(self.verifiers) > MOST_VERIFIERS:
            del self.verifiers[next(iter(self.verifiers))]

    def own_model(self) -> Model | None:
        """The model that the app was given or its configuration names, if it can do more than call tools."""
        name = self.model if self.model is not None or self.default_model is None else self.default_model()
        if name is None or not isinstance(name, str):
            return name
        if name == EMBEDDED:
            return None
        if name not in self._models:
            self._models[name] = model_named(name)
        return self._models[name]

    def model_for(self, agent: Agent, named: str | None = None) -> Model:
        """The app's model, or the one that a run was begun with, or the one the agent names; kept open."""
        if self.model is not None and not isinstance(self.model, str):
            return self.model
        name = self.model or named or agent.model
        if name == AUTO and self.default_model is not None:
            name = self.default_model()
        if name not in self._models:
            self._models[name] = model_named(name)
        return self._models[name]

    async def close(self) -> None:
        for model in self._models.values():
            await close_model(model)
        self._models.clear()
        for library in self._found.values():
            await library.close()
        self._found.clear()

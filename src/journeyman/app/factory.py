"""Durable runs, built from what a store knows of them. How a run is put together is in ``assembly``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from journeyman.agent.agent import Agent
from journeyman.agent.run import Run
from journeyman.agent.state import RunState
from journeyman.app.approvals import StoreGate
from journeyman.app.assembly import Assembly, Resources, begin, close_model, model_named
from journeyman.app.chains import ChainPlanner
from journeyman.app.splits import Split
from journeyman.core.data import FORMAT, canonical_json
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import RunResumed, RunStarted, StepRestarted
from journeyman.core.playbook import StrategySource
from journeyman.core.policy import Policy
from journeyman.core.protocols import Clock, Deltas, Listener, Model, ModelRequest, ModelResponse
from journeyman.core.runs import TaskInput
from journeyman.core.storing import RunOrder, Store
from journeyman.stores.store_retry import (
    RetryingBreaker,
    RetryingGate,
    RetryingJournal,
    RetryingLimiter,
    retry_store_faults,
)
from journeyman.tools.library import ToolLibrary

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
    split: Split | None = None
    format: int = FORMAT
    """What every program at work on the store can read; brought up to date while the app is open."""
    _resources: dict[int, Resources] = field(default_factory=dict)
    _models: dict[str, Model] = field(default_factory=dict)
    _agents: dict[str, Agent] = field(default_factory=dict)

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
        facts = () if epoch == 1 else await read(lambda: runs.facts(run_id))
        # The agent as it was ordered: a newer version of it does not change this run.
        agent = self.agent_of(order.agent)
        library = self.library_of(agent, order.task)
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
            journal=RetryingJournal(run_id, runs, epoch=epoch, clock=self.clock),
            model=partial(self._model_of, order, agent) if advancing else lambda _: NoModel(),
            listener=listener,
            facts=facts,
            format=lambda: self.format,
            tools="bind" if advancing else "none",
        ).build()
        if order.chain:
            run.repeatable = True  # whoever wrote the chain meant every step of it
        if not facts:
            history = order.history
            if (session_id := order.task.session_id) is not None and not history:
                history = tuple(await read(lambda: self.store.conversations.messages(session_id)))
            started = RunStarted(
                agent=order.agent, task=order.task, principal=order.principal, limits=order.limits, history=history
            )
            await begin(run, started, self.playbook if advancing else None)
        elif not run.state.status.ended:
            await run.recorder.record(RunResumed(owner=self.owner))
            if run.state.turn is None:
                # The model will be asked (again) for this step: whatever was shown of its text is void.
                await run.recorder.record(StepRestarted(iteration=run.iteration))
        return run

    def _model_of(self, order: RunOrder, agent: Agent, state: RunState) -> Model:
        return ChainPlanner(order.chain, state) if order.chain else self.model_for(agent)

    def library_of(self, agent: Agent, task: TaskInput) -> ToolLibrary:
        """Where a run finds its tools: in its arm of a split, in the app's library, or with its agent."""
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
        """Keep an agent for its runs: one read from a snapshot would have lost the tools that it carries."""
        self._agents.setdefault(canonical_json(agent.snapshot), agent)

    def model_for(self, agent: Agent) -> Model:
        """The app's model, or the one the agent names; kept open for the next run."""
        if self.model is not None and not isinstance(self.model, str):
            return self.model
        name = self.model or agent.model
        if name not in self._models:
            self._models[name] = model_named(name)
        return self._models[name]

    async def close(self) -> None:
        for model in self._models.values():
            await close_model(model)
        self._models.clear()

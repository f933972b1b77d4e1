"""Building a run from what the store knows of it: its order, then the fold of its facts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from journeyman.agent.agent import Agent
from journeyman.agent.limits import effective_limits
from journeyman.agent.run import Run, run_tools
from journeyman.agent.state import RunState
from journeyman.app.approvals import StoreGate
from journeyman.app.chains import planner_for
from journeyman.app.parts import Audience, advise
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import RunResumed, RunStarted, StepRestarted
from journeyman.core.messages import Message
from journeyman.core.protocols import Deltas, Listener, ModelRequest, ModelResponse, StrategySource
from journeyman.core.storing import RunOrder
from journeyman.execution.recorder import Recorder
from journeyman.stores.store_retry import RetryingGate, RetryingJournal, retry_store_faults

if TYPE_CHECKING:
    from journeyman.app.journeyman import Journeyman


class _Nobody:
    """In the model's place where a person only settles or cancels: that must work without tools and without a model."""

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        raise ConfigurationError("this run was taken up for a person's word, not to be advanced")


@dataclass(frozen=True, slots=True)
class FreshRun:
    """A run that this process has just put into the store: what it would read there."""

    order: RunOrder
    agent: Agent


async def take_up(
    app: Journeyman,
    run_id: str,
    epoch: int,
    *,
    fresh: FreshRun | None = None,
    listener: Listener | None = None,
    advancing: bool = True,
) -> Run:
    """The run as it stands, for the holder of this epoch: to be advanced, or only to have a person's word recorded."""
    runs, clock = app.store.runs, app.clock
    order = fresh.order if fresh else await retry_store_faults(lambda: runs.order(run_id), clock=clock, run_id=run_id)
    if order is None:
        raise ConfigurationError(f"there is no run {run_id!r}")
    first = epoch == 1  # then nobody has written anything
    facts = () if first else await retry_store_faults(lambda: runs.facts(run_id), clock=clock, run_id=run_id)
    # The agent as it was ordered: a newer version of it does not change this run. Its tools may have been described
    # anew since, but must still take the same arguments.
    agent = fresh.agent if fresh else app.agent_of(order.agent)
    library = app.library_of(order.task)
    tools, offered = (
        run_tools(agent, library.bind(agent, descriptions=not facts), order.task) if advancing else ({}, ())
    )
    limits = effective_limits(order.limits, order.task, agent)
    state = RunState(result_limit=app.policy.max_result_chars)
    for fact in facts:
        state.apply(fact)
    planner = planner_for(order.task, agent, state)
    if planner is not None:
        # Whoever wrote the chain meant every step of it.
        tools = {name: replace(tool, repeatable=True) for name, tool in tools.items()}
    gate = StoreGate(app.store, session_id=order.task.session_id, clock=clock)
    audience = Audience(library, app.policy, agent.name, listener)
    run = Run(
        id=run_id,
        agent=agent,
        model=(planner or app.model_for(agent)) if advancing else _Nobody(),
        executor=app.shared_by(library).executor(app.policy, RetryingGate(gate, clock=clock)),
        recorder=Recorder(
            run_id,
            RetryingJournal(run_id, runs, epoch=epoch, clock=clock),
            clock=clock,
            fold=state.apply,
            listeners=audience.listeners,
            seq=len(facts),
        ),
        state=state,
        limits=limits,
        tools=tools,
        offered=offered,
        clock=clock,
        deadline=None if limits.seconds is None else clock.monotonic() + limits.seconds - state.active_seconds,
        around=audience.around,
    )
    if not facts:
        await _begin(app, run, order, playbook=app.playbook if advancing else None)
    elif not state.status.ended:
        await run.recorder.record(RunResumed(owner=app.owner))
        if state.turn is None:
            # The model will be asked (again) for this step: whatever was shown of its text is void.
            await run.recorder.record(StepRestarted(iteration=run.iteration))
    return run


async def _begin(app: Journeyman, run: Run, order: RunOrder, *, playbook: StrategySource | None) -> None:
    history: tuple[Message, ...] = order.history
    session_id = order.task.session_id
    if session_id is not None and not history:
        conversations = app.store.conversations
        history = tuple(
            await retry_store_faults(lambda: conversations.messages(session_id), clock=app.clock, run_id=run.id)
        )
    await run.recorder.record(
        RunStarted(agent=order.agent, task=order.task, principal=order.principal, limits=order.limits, history=history)
    )
    await advise(run, order.task, playbook)

"""The composition root: the one place where concrete parts meet. ``run``, ``run_sync`` and ``stream`` live here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from journeyman.agent.agent import Agent
from journeyman.agent.ending import response
from journeyman.agent.limits import effective_limits
from journeyman.agent.loop import advance
from journeyman.agent.run import Run, run_tools
from journeyman.agent.state import RunState
from journeyman.core.approvals import Approver
from journeyman.core.data import new_id
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import CallFinished, Event, RunStarted, StrategiesInjected
from journeyman.core.messages import Message
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import ApprovalGate, Clock, Journal, Listener, Model, StrategySource, SystemClock
from journeyman.core.runs import AgentResponse, Limits, TaskInput
from journeyman.execution.approval import AskApprover, NobodyToAsk
from journeyman.execution.breaker import LocalBreaker
from journeyman.execution.cache import ResultCache
from journeyman.execution.executor import Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.processes import ProcessPool
from journeyman.execution.rate import TokenBuckets
from journeyman.execution.recorder import Recorder
from journeyman.execution.threads import default_pool
from journeyman.stores.memory import MemoryJournal
from journeyman.telemetry.logs import LogListener
from journeyman.tools.library import ToolLibrary


class _Shared:
    """What all runs with one library share: pools, buckets, breakers, cached answers.

    Tied to the library, because two libraries may hold different tools under one name.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.invoker = Invoker(threads=default_pool(), processes=ProcessPool())
        self.limiter = TokenBuckets(clock=clock)
        self.breaker = LocalBreaker(clock=clock)
        self.cache = ResultCache(clock=clock)

    def executor(self, policy: Policy, gate: ApprovalGate) -> Executor:
        return Executor(
            policy=policy,
            gate=gate,
            invoker=self.invoker,
            limiter=self.limiter,
            breaker=self.breaker,
            cache=self.cache,
            clock=self.clock,
        )


_shared: WeakKeyDictionary[ToolLibrary, _Shared] = WeakKeyDictionary()


async def run(
    agent: Agent,
    task: TaskInput | str,
    *,
    library: ToolLibrary | None = None,
    model: Model | str | None = None,
    policy: Policy | None = None,
    approver: Approver | None = None,
    principal: Principal | None = None,
    history: Sequence[Message] = (),
    limits: Limits | None = None,
    playbook: StrategySource | None = None,
    journal: Journal | None = None,
) -> AgentResponse:
    """Run an agent to its end and return what came out, whatever the end was.

    With no approver, calls that need approval are denied. With no principal, there are no permissions.
    """
    order = _Order(agent, task, library, model, policy, approver, principal, history, limits, playbook, journal)
    async with _prepared(order) as prepared:
        await advance(prepared)
    return response(prepared.id, prepared.state)


def run_sync(
    agent: Agent,
    task: TaskInput | str,
    *,
    library: ToolLibrary | None = None,
    model: Model | str | None = None,
    policy: Policy | None = None,
    approver: Approver | None = None,
    principal: Principal | None = None,
    history: Sequence[Message] = (),
    limits: Limits | None = None,
    playbook: StrategySource | None = None,
    journal: Journal | None = None,
) -> AgentResponse:
    """``run()`` for programs without an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise ConfigurationError("run_sync() was called where an event loop is running; write 'await run(...)' there")
    order = _Order(agent, task, library, model, policy, approver, principal, history, limits, playbook, journal)

    async def whole() -> AgentResponse:
        async with _prepared(order, last=True) as prepared:
            await advance(prepared)
        return response(prepared.id, prepared.state)

    return asyncio.run(whole())


async def stream(
    agent: Agent,
    task: TaskInput | str,
    *,
    library: ToolLibrary | None = None,
    model: Model | str | None = None,
    policy: Policy | None = None,
    approver: Approver | None = None,
    principal: Principal | None = None,
    history: Sequence[Message] = (),
    limits: Limits | None = None,
    playbook: StrategySource | None = None,
    journal: Journal | None = None,
) -> AsyncIterator[Event]:
    """The same run, as events. The last one carries the response; leaving the loop early cancels the run."""
    order = _Order(agent, task, library, model, policy, approver, principal, history, limits, playbook, journal)
    events: asyncio.Queue[Event | None] = asyncio.Queue()

    async def whole() -> None:
        async with _prepared(order, listener=events.put_nowait) as prepared:
            await advance(prepared)

    running = asyncio.ensure_future(whole())
    running.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await running
    finally:
        running.cancel()
        await asyncio.wait((running,))


@dataclass(frozen=True, slots=True)
class _Order:
    """What a caller asked for."""

    agent: Agent
    task: TaskInput | str
    library: ToolLibrary | None
    model: Model | str | None
    policy: Policy | None
    approver: Approver | None
    principal: Principal | None
    history: Sequence[Message]
    limits: Limits | None
    playbook: StrategySource | None
    journal: Journal | None


@asynccontextmanager
async def _prepared(order: _Order, *, listener: Listener | None = None, last: bool = False) -> AsyncIterator[Run]:
    """A run with its first facts recorded. A model that was given by name is closed in the end.

    ``last`` says that the event loop ends with this run: then whatever is bound to it is closed, too.
    """
    agent, policy = order.agent, order.policy or Policy()
    task = TaskInput(description=order.task) if isinstance(order.task, str) else order.task
    library = order.library if order.library is not None else ToolLibrary()
    tools, offered = run_tools(agent, library.bind(agent), task)
    limits = order.limits or Limits()
    effective = effective_limits(limits, task, agent)
    if (shared := _shared.get(library)) is None:
        shared = _shared[library] = _Shared(SystemClock())
    gate = AskApprover(order.approver) if order.approver is not None else NobodyToAsk()
    state = RunState(result_limit=policy.max_result_chars)
    run_id = new_id("run")
    recorder = Recorder(
        run_id,
        order.journal or MemoryJournal(),
        clock=shared.clock,
        listeners=_listeners(state, library, policy, listener),
    )
    named = order.model if isinstance(order.model, str) else agent.model if order.model is None else None
    model = _model(named) if named is not None else order.model
    assert model is not None
    assert not isinstance(model, str)
    prepared = Run(
        id=run_id,
        agent=agent,
        model=model,
        executor=shared.executor(policy, gate),
        recorder=recorder,
        state=state,
        limits=effective,
        tools=tools,
        offered=offered,
        clock=shared.clock,
        deadline=None if effective.seconds is None else shared.clock.monotonic() + effective.seconds,
        wants_text=listener is not None,
    )
    try:
        await recorder.record(
            RunStarted(
                agent=agent.snapshot,
                task=task,
                principal=order.principal or task.principal,
                limits=limits,
                history=tuple(order.history),
            )
        )
        await _advise(prepared, task, order.playbook)
        yield prepared
    finally:
        if named is not None or last:
            await _close(model)
        if last:
            await shared.invoker.close_processes()


def _listeners(state: RunState, library: ToolLibrary, policy: Policy, listener: Listener | None) -> list[Listener]:
    from journeyman.telemetry.spans import SpanListener

    def count(event: Event) -> None:
        if isinstance(event, CallFinished) and event.record.attempts:
            library.count(event.record.tool_name, success=event.record.success)

    content = policy.capture_content
    found: list[Listener] = [
        state.apply,
        count,
        LogListener(capture_content=content),
        SpanListener(capture_content=content),
    ]
    return found if listener is None else [*found, listener]


async def _advise(prepared: Run, task: TaskInput, playbook: StrategySource | None) -> None:
    advice = list(task.playbook_bullets)
    if playbook is not None:
        advice += await playbook.advise(task.description, tools=[item.name for item in prepared.offered])
    if advice:
        await prepared.recorder.record(StrategiesInjected(strategies=tuple(advice)))


def _model(name: str) -> Model:
    from journeyman.models.resolve import model_from_name

    return model_from_name(name)


async def _close(model: Model) -> None:
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()

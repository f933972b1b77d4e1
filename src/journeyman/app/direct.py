"""Runs that live and die with their caller: ``run``, ``run_sync`` and ``stream``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from journeyman.agent.agent import Agent
from journeyman.agent.ending import response
from journeyman.agent.limits import effective_limits
from journeyman.agent.loop import advance
from journeyman.agent.run import Run, run_tools
from journeyman.agent.state import RunState
from journeyman.app.parts import Audience, advise, close_model, model_named, shared_by
from journeyman.core.approvals import Approver
from journeyman.core.data import LOG_FIELDS, new_id
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import Event, RunStarted
from journeyman.core.messages import Message
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import ApprovalGate, Journal, Listener, Model, StrategySource
from journeyman.core.runs import AgentResponse, Limits, TaskInput
from journeyman.execution.approval import AskApprover, NobodyToAsk
from journeyman.execution.recorder import Recorder
from journeyman.gram import dump_tools
from journeyman.models.resolve import explain_choice
from journeyman.stores.in_memory import MemoryJournal
from journeyman.telemetry.logs import JsonFormatter
from journeyman.tools.decorator import tool
from journeyman.tools.library import ToolLibrary
from journeyman.tools.tool import Tool

# What doors may use besides the core.
__all__ = [
    "Agent",
    "JsonFormatter",
    "Tool",
    "ToolLibrary",
    "dump_tools",
    "explain_choice",
    "hello_library",
    "local_library",
    "run",
    "run_sync",
    "stream",
    "tool",
]

logger = logging.getLogger("journeyman.app")

SHUTDOWN_SECONDS = 2.0
"""How long whatever a run has left running may take to end when its event loop closes."""

T = TypeVar("T")


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

    return _to_its_end(whole())


def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run``, except that a task which swallows its cancellation is left behind and not waited for."""
    runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    loop = runner.get_loop()
    try:
        try:
            return runner.run(work)
        finally:
            if not runner.run(_end_others()):
                runner.close()
    finally:
        loop.close()


async def _end_others() -> set[asyncio.Task[Any]]:
    """Cancel every other task; those that go on regardless are returned."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if not others:
        return set()
    for task in others:
        task.cancel()
    _, strays = await asyncio.wait(others, timeout=SHUTDOWN_SECONDS)
    for task in strays:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # the warning below says it better
    if strays:
        fields = {"tasks": len(strays)}
        logger.warning("left tasks behind that ignore their cancellation", extra={LOG_FIELDS: fields})
    return strays


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


def local_library(folder: Path) -> ToolLibrary:
    """Tools that look around in a folder, calculate and keep notes."""
    from journeyman.toolkits.local import LocalTools

    return ToolLibrary(LocalTools(folder, notes=folder / "journeyman-notes").tools())


def hello_library() -> ToolLibrary:
    """The tool of the Hello World agent."""
    from journeyman.toolkits.hello import say_hello

    return ToolLibrary([say_hello])


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

    ``last`` says that the event loop ends with this run: then any model lets go of what is bound to it.
    """
    agent, policy = order.agent, order.policy or Policy()
    task = TaskInput(description=order.task) if isinstance(order.task, str) else order.task
    library = order.library if order.library is not None else ToolLibrary()
    tools, offered = run_tools(agent, library.bind(agent), task)
    limits = order.limits or Limits()
    effective = effective_limits(limits, task, agent)
    shared = shared_by(library)
    gate: ApprovalGate = NobodyToAsk()
    if order.approver is not None:
        gate = AskApprover(order.approver, clock=shared.clock, waited=lambda seconds: prepared.postpone(seconds))
    state = RunState(result_limit=policy.max_result_chars)
    run_id = new_id("run")
    audience = Audience(library, policy, agent.name, listener)
    recorder = Recorder(
        run_id,
        MemoryJournal() if order.journal is None else order.journal,
        clock=shared.clock,
        fold=state.apply,
        listeners=audience.listeners,
    )
    named = order.model if isinstance(order.model, str) else agent.model if order.model is None else None
    model = model_named(named) if named is not None else order.model
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
        around=audience.around,
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
        await advise(prepared, task, order.playbook)
        yield prepared
    finally:
        if named is not None or last:
            await close_model(model)

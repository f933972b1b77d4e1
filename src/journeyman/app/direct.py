"""Runs that live and die with their caller: ``run``, ``run_sync``, ``run_batch`` and ``stream``.

Whoever imports these names pays for what a run needs when the first one begins.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from journeyman.core.errors import ConfigurationError

if TYPE_CHECKING:
    import asyncio

    from journeyman.agent.agent import Agent, Verify
    from journeyman.agent.run import Planner
    from journeyman.core.approvals import Approver
    from journeyman.core.events import Event
    from journeyman.core.model_settings import ModelSettings
    from journeyman.core.playbook import StrategySource
    from journeyman.core.policy import Policy, Principal
    from journeyman.core.protocols import Journal, Listener, Model
    from journeyman.core.runs import AgentResponse, Limits, Message, TaskInput, Wanted
    from journeyman.tools.library import ToolLibrary

SHUTDOWN_SECONDS = 2.0
"""How long whatever a run has left running may take to end when its event loop closes."""

T = TypeVar("T")


class RunOptions(TypedDict, total=False):
    """What ``run``, ``run_sync`` and ``stream`` take besides the agent and the task."""

    library: ToolLibrary | None
    """Where the tools are implemented. An agent that was given tools or functions needs none."""
    model: Model | ModelSettings | str | None
    """Wins over the agent's; settings without a name are laid over them."""
    planner: Planner | None
    """Says what to do next in the place of a model, which is then not asked."""
    policy: Policy | None
    approver: Approver | None
    """Who is asked. Without one, calls that need approval are denied."""
    principal: Principal | None
    """On whose behalf. None has no permissions."""
    history: Sequence[Message]
    """A conversation to go on with, e.g. an earlier response's ``messages``."""
    limits: Limits | None
    playbook: StrategySource | None
    journal: Journal | None
    deps: Any
    """What tools and instructions get as ``context.deps``: a connection, a client, who is logged in. Never stored."""
    verify: Verify | None
    """Says of the run, when it has ended, whether it is right. Wins over the agent's."""


@overload
async def run(agent: Agent, task: Wanted, *, output: type[T], **options: Unpack[RunOptions]) -> AgentResponse[T]: ...


@overload
async def run(agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[RunOptions]) -> AgentResponse: ...


async def run(agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[RunOptions]) -> AgentResponse:
    """Run an agent to its end and return what came out, whatever the end was.

    With ``output``, a type or a JSON Schema, the answer is data that fits it: ``response.output``. It wins over the
    agent's. Options: library, model, planner, policy, approver, principal, history, limits, playbook, journal,
    deps, verify; see ``RunOptions``.
    """
    return await _whole(_for_output(agent, output), task, options)


@overload
def run_sync(agent: Agent, task: Wanted, *, output: type[T], **options: Unpack[RunOptions]) -> AgentResponse[T]: ...


@overload
def run_sync(agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[RunOptions]) -> AgentResponse: ...


def run_sync(agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[RunOptions]) -> AgentResponse:
    """``run()`` for programs without an event loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _to_its_end(_whole(_for_output(agent, output), task, options, last=True))
    raise ConfigurationError("run_sync() was called where an event loop is running; write 'await run(...)' there")


@overload
async def run_batch(
    agent: Agent,
    tasks: Sequence[Wanted],
    *,
    output: type[T],
    concurrency: int = 10,
    **options: Unpack[RunOptions],
) -> list[AgentResponse[T]]: ...


@overload
async def run_batch(
    agent: Agent,
    tasks: Sequence[Wanted],
    *,
    output: Any = None,
    concurrency: int = 10,
    **options: Unpack[RunOptions],
) -> list[AgentResponse]: ...


async def run_batch(
    agent: Agent,
    tasks: Sequence[Wanted],
    *,
    output: Any = None,
    concurrency: int = 10,
    **options: Unpack[RunOptions],
) -> list[AgentResponse]:
    """Run an agent on several tasks, some at a time; the responses come in the order of the tasks.

    No two tasks may have the same ``task_id``. A run that fails is a response like any other and stops none of the
    others. Options as for ``run``.
    """
    import asyncio

    from journeyman.core.errors import InvalidDataError
    from journeyman.core.runs import task_of

    if concurrency < 1:
        raise InvalidDataError("run_batch", [("concurrency", f"must be at least 1, got {concurrency}")])
    inputs = [task_of(task) for task in tasks]
    first: dict[str, int] = {}
    doubled = [
        (f"tasks[{at}].task_id", f"{task.task_id!r} is also the id of tasks[{first[task.task_id]}]")
        for at, task in enumerate(inputs)
        if first.setdefault(task.task_id, at) != at
    ]
    if doubled:
        raise InvalidDataError("run_batch", doubled)
    turns = asyncio.Semaphore(concurrency)
    answering = _for_output(agent, output)

    async def one(task: TaskInput) -> AgentResponse:
        async with turns:
            return await _whole(answering, task, options)

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one(task)) for task in inputs]
    return [done.result() for done in running]


async def stream(
    agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[RunOptions]
) -> AsyncIterator[Event]:
    """The same run, as events. The last one carries the response; leaving the loop early cancels the run."""
    import asyncio

    events: asyncio.Queue[Event | None] = asyncio.Queue()
    running = asyncio.ensure_future(_whole(_for_output(agent, output), task, options, listener=events.put_nowait))
    running.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        await running
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def _whole(
    agent: Agent, task: Wanted, options: RunOptions, *, listener: Listener | None = None, last: bool = False
) -> AgentResponse:
    if unknown := options.keys() - RunOptions.__annotations__:
        known = ", ".join(("output", *RunOptions.__annotations__))
        raise TypeError(f"unknown options: {', '.join(sorted(unknown))}; there are {known}")

    from journeyman.agent.ending import response, typed
    from journeyman.agent.run import advance
    from journeyman.app.assembly import prepared

    async with prepared(agent, task, options, listener=listener, last=last) as made:
        await advance(made)
    return made.state.response or typed(response(made.id, made.state), agent)


def _for_output(agent: Agent, output: Any) -> Agent:
    return agent if output is None else agent.with_output(output)


def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run``, except that a task which swallows its cancellation is left behind and not waited for."""
    import asyncio

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
    import asyncio
    import logging

    from journeyman.core.data import LOG_FIELDS

    others = asyncio.all_tasks() - {asyncio.current_task()}
    if not others:
        return set()
    for task in others:
        task.cancel()
    _, left = await asyncio.wait(others, timeout=SHUTDOWN_SECONDS)
    for task in left:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # the warning below says it better
    if left:
        fields = {"tasks": len(left)}
        logger = logging.getLogger("journeyman.app")
        logger.warning("left tasks behind that ignore their cancellation", extra={LOG_FIELDS: fields})
    return left

"""``journeyman run``: one task, followed on stderr, answered on stdout; in this process alone, or kept in a store."""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext, redirect_stdout
from typing import Annotated

import typer

from journeyman.app import Agent, Handle, Journeyman, ToolLibrary, stream
from journeyman.core.events import RunFailed, RunFinished, RunSuspended
from journeyman.core.protocols import Model as ModelProtocol
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import (
    command,
    is_document,
    library_to_resume,
    load_agent,
    open_at,
    opened,
    running_app,
)
from journeyman.doors.cli.options import (
    AgentName,
    ExitCode,
    Json,
    Library,
    Log,
    Model,
    Permissions,
    RunOptions,
    Yes,
    default_store,
    start_logs,
    task_text,
    user_with,
)
from journeyman.doors.cli.outcome import blocking_run, follow, needs, next_steps, resume_command, row_of
from journeyman.doors.cli.trace import Allow, Trace, approver, asker


def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do, in words.")],
    agent: AgentName = None,
    library: Library = None,
    model: Model = None,
    permission: Permissions = None,
    yes: Yes = False,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable",
            help="Keep the run in the store: it survives this process, and a risky call waits until somebody decides.",
        ),
    ] = False,
    store: Annotated[
        str | None, typer.Option(metavar="URL", help="Where to keep it; implies --durable.", show_default=False)
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Go on with a stored conversation; implies --durable.", show_default=False),
    ] = None,
    as_json: Json = False,
    log_level: Log = None,
) -> None:
    """Carry out a task: its trace on stderr, its answer on stdout.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 waiting for a person.
    """
    start_logs(log_level)
    options = RunOptions(
        store=store or default_store(),
        agent=agent,
        library=library,
        model=model,
        principal=user_with(permission),
        session=session,
        yes=yes,
        as_json=as_json,
        log_level=log_level,
    )
    carry_out = run_durably if durable or store or session else run_directly
    raise typer.Exit(carry_out(task_text(task), options))


# --- in this process alone


def run_directly(task: str, options: RunOptions) -> ExitCode:
    store = open_at(options.store)
    agent, tools = load_agent(options.agent, options.library, store=store)
    # The run is not kept in the store, but its tools may work on the tasks there.
    on_tasks = options.library is None and (options.agent is None or is_document(options.agent))
    trace = Trace(screen.console(stderr=True), live=options.live)

    async def whole() -> AgentResponse | None:
        async with opened(store) if on_tasks else nullcontext():
            return await stream_run(agent, task, options, tools=tools, model=options.model, trace=trace)

    response = asyncio.run(whole())
    if response is None:
        screen.note("the run waits for a person")
        return ExitCode.WAITING
    return print_response(response, as_json=options.as_json)


async def stream_run(
    agent: Agent, task: str, options: RunOptions, *, tools: ToolLibrary, model: ModelProtocol | str | None, trace: Trace
) -> AgentResponse | None:
    """Run an agent and show its trace; None when the run waits for a person.

    Tools may print; stdout is for the answer alone, so that goes to stderr.
    """
    response = None
    asks = approver(trace, yes=options.yes)
    with redirect_stdout(sys.stderr), trace:
        async for event in stream(agent, task, library=tools, model=model, approver=asks, principal=options.principal):
            trace.show(event)
            match event:
                case RunFinished() | RunFailed():
                    response = event.response
                case RunSuspended():
                    return None
                case _:
                    pass
    return response


def print_response(response: AgentResponse, *, as_json: bool) -> ExitCode:
    """The answer on stdout, what went wrong on stderr."""
    if as_json:
        print(response.model_dump_json(indent=2))
    elif response.answer:
        if (console := screen.console(stderr=True)).is_terminal:
            console.print()
        print(screen.escaped(response.answer) if sys.stdout.isatty() else response.answer)
    if response.status is not RunStatus.COMPLETED and response.error is not None:
        screen.note(response.error.message, response.error.user_guidance)
    return ExitCode.of(response.status)


# --- kept in a store


def run_durably(task: str, options: RunOptions) -> ExitCode:
    """Keep a run in the store, carry it out here, and print what came out or what it waits for."""
    store = open_at(options.store)
    agent, tools = load_agent(options.agent, options.library, store=store)
    agent = with_model(agent, options.model)

    async def whole() -> ExitCode:
        async with running_app(store, library=tools) as app:
            app.model_for(agent)  # a run that cannot be carried out here is not even kept
            handle = await app.start(agent, task, principal=options.principal, session_id=options.session)
            row = await row_of(app, handle.run_id)
            if (earlier := await blocking_run(app, row)) is not None:
                return note_blocked(row, earlier, options)
            return await see_through(app, handle, options)

    return asyncio.run(whole())


def with_model(agent: Agent, model: str | None) -> Agent:
    """The agent with another model, which is kept with its runs: whoever resumes one asks the same model."""
    return agent if model is None else agent.model_copy(update={"model": model})


async def see_through(
    app: Journeyman, handle: Handle, options: RunOptions, *, seen: int = 0, allow: Allow | None = None
) -> ExitCode:
    """One run, to its end or to a person, with everything a person is told about it. ``seen`` facts are not shown."""
    trace = Trace(screen.console(stderr=True), live=options.live)
    try:
        with redirect_stdout(sys.stderr), trace:
            await follow(app, handle, trace, ask=asker(trace, yes=options.yes, allow=allow), seen=seen)
            response = await handle.result()
            if response.status.ended:
                trace.sum_up(response)
    except asyncio.CancelledError:
        screen.note(
            "left; the step under way is finished first, Ctrl-C again ends at once. The run is kept:",
            resume_with(options, handle.run_id),
            command(options.store, f"runs cancel {handle.run_id}"),
        )
        raise
    code = print_response(response, as_json=options.as_json)
    if response.status.waiting:
        await note_needs(app, handle.run_id, options)
    return code


async def note_needs(app: Journeyman, run_id: str, options: RunOptions) -> None:
    found = await needs(app, run_id, url=options.store)
    screen.note(f"run {run_id} waits for a person", *next_steps(found), f"then: {resume_with(options, run_id)}")


def note_blocked(row: RunRow, earlier: RunRow, options: RunOptions) -> ExitCode:
    screen.note(
        f"run {row.id} waits for an earlier one of its session, {earlier.id}, which is {earlier.status.value}",
        f"see to that one first: {command(options.store, f'runs show {earlier.id}')}",
        f"then: {resume_with(options, row.id)}",
    )
    return ExitCode.WAITING


def resume_with(options: RunOptions, run_id: str) -> str:
    """What to type to resume a run, with the library that it needs."""
    library = library_to_resume(options.agent, options.library)
    return resume_command(options.store, run_id, library=library)

"""``journeyman run``: one task, followed on stderr, answered on stdout; in this process alone, or kept in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

import typer

from journeyman.app import Agent, AuditedJournal, Handle, Journeyman, SqlStore, ToolLibrary, checked_arguments, stream
from journeyman.core.approvals import Approval
from journeyman.core.events import RunFailed, RunFinished, RunSuspended
from journeyman.core.protocols import Journal
from journeyman.core.protocols import Model as ModelProtocol
from journeyman.core.runs import AgentResponse, Limits, RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import configuration
from journeyman.doors.cli.loading import command, is_document, load_agent, open_at, opened, running_app
from journeyman.doors.cli.markdown import print_answer
from journeyman.doors.cli.options import ExitCode, RunOptions
from journeyman.doors.cli.origins import load_for_run
from journeyman.doors.cli.outcome import blocking_run, follow, needs, next_steps, resume_command, row_of
from journeyman.doors.cli.trace import Allow, Trace, approver, asker


def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do, in words.")],
    agent: options.AgentName = None,
    library: options.Library = None,
    model: options.Model = None,
    permission: options.Permissions = None,
    yes: options.Yes = False,
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
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
    log_level: options.Log = None,
) -> None:
    """Carry out a task: its trace on stderr, its answer on stdout.

    Exit codes: 0 done, 1 failed or nothing done, 2 wrong usage, 3 waiting for a person.
    """
    given = RunOptions(
        store=store or options.default_store(),
        agent=agent,
        library=library,
        model=model,
        principal=options.user_with(permission),
        session=session,
        yes=yes,
        as_json=as_json,
        log_level=log_level,
        debug=debug,
        verbose=verbose,
    )
    carry_out = run_durably if durable or store or session else run_directly
    raise typer.Exit(carry_out(options.task_text(task), given))


# --- in this process alone


def run_directly(task: str, given: RunOptions) -> ExitCode:
    store = open_at(given.store)
    agent, tools = load_agent(given.agent, given.library, store=store, model=given.model)
    # The run is not kept in the store, but its tools may work on the tasks there.
    on_tasks = given.library is None and (given.agent is None or is_document(given.agent))
    if (configured := configuration(store)) is not None:
        on_tasks = on_tasks and (configured.uses_store or given.agent is not None)
    trace = Trace(screen.console(stderr=True), live=given.live, verbose=given.verbose)

    async def whole() -> AgentResponse | None:
        async with opened(store) if on_tasks else nullcontext():
            journal = audited(store, given) if on_tasks else None
            return await stream_run(agent, task, given, tools=tools, model=given.model, trace=trace, journal=journal)

    response = asyncio.run(whole())
    if response is None:
        screen.note("the run waits for a person")
        return ExitCode.WAITING
    return print_response(response, as_json=given.as_json)


def audited(store: SqlStore, given: RunOptions) -> Journal:
    """The journal of a run that the store does not keep, although its tools work there."""
    return AuditedJournal(store.audit, actor=None if given.principal is None else given.principal.id)


async def stream_run(
    agent: Agent,
    task: str,
    given: RunOptions,
    *,
    tools: ToolLibrary,
    model: ModelProtocol | str | None,
    trace: Trace,
    journal: Journal | None = None,
) -> AgentResponse | None:
    """Run an agent and show its trace; None when the run waits for a person.

    Tools may print; stdout is for the answer alone, so that goes to stderr.
    """
    response = None

    async def check(approval: Approval, arguments: dict[str, Any]) -> None:
        if (found := tools.lookup(approval.tool_name)) is not None:
            await checked_arguments(found, arguments)

    asks = approver(trace, yes=given.yes, check=check)
    rules = None if (found := configuration()) is None else found.rules
    limits = None
    if rules is not None:
        limits = rules.limits if agent.max_iterations is None else without_iterations(rules.limits)
        if model is None and agent.model == "auto" and rules.model is not None:
            model = rules.model()
    with screen.printing_to_stderr(), trace:
        async for event in stream(
            agent,
            task,
            library=tools,
            model=model,
            approver=asks,
            principal=given.principal,
            policy=None if rules is None else rules.policy,
            limits=limits,
            journal=journal,
        ):
            trace.show(event)
            match event:
                case RunFinished() | RunFailed():
                    response = event.response
                case RunSuspended():
                    return None
                case _:
                    pass
    return response


def without_iterations(limits: Limits) -> Limits:
    """Limits of the configuration for an agent that has its own number of iterations."""
    return Limits(**limits.model_dump(exclude={"iterations"}))


def print_response(response: AgentResponse, *, as_json: bool, talking: bool = False) -> ExitCode:
    """The answer on stdout, what went wrong on stderr; to whoever is ``talking`` the answer says enough."""
    if as_json:
        screen.print_json(response)
    elif response.answer:
        if (console := screen.console(stderr=True)).is_terminal:
            console.print()
        print_answer(response.answer)
    if response.status is not RunStatus.COMPLETED and response.error is not None:
        screen.note(response.error.message, response.error.user_guidance)
    elif ExitCode.of(response) is ExitCode.FAILED and not talking:
        screen.note("nothing of what was asked was done")
    if response.gap is not None and not talking:
        screen.note(screen.escaped(response.gap.plain))
    return ExitCode.of(response)


# --- kept in a store


def run_durably(task: str, given: RunOptions) -> ExitCode:
    """Keep a run in the store, carry it out here, and print what came out or what it waits for."""
    store = open_at(given.store)
    agent, tools, given = load_for_run(given, store=store)

    async def whole() -> ExitCode:
        async with running_app(store, library=tools, origin=given.origin) as app:
            app.model_for(agent)  # a run that cannot be carried out here is not even kept
            handle = await app.start(agent, task, principal=given.principal, session_id=given.session)
            with leaving_noted(given, handle.run_id):
                row = await row_of(app, handle.run_id, url=given.store)
                if (earlier := await blocking_run(app, row)) is not None:
                    return note_blocked(row, earlier, given)
            return await see_through(app, handle, given)

    return asyncio.run(whole())


async def see_through(
    app: Journeyman,
    handle: Handle,
    given: RunOptions,
    *,
    seen: int = 0,
    allow: Allow | None = None,
    talking: bool = False,
) -> ExitCode:
    """One run, to its end or to a person, with everything a person is told about it. ``seen`` facts are not shown."""
    trace = Trace(screen.console(stderr=True), live=given.live, verbose=given.verbose)
    with leaving_noted(given, handle.run_id), screen.printing_to_stderr(), trace:
        ask = asker(trace, yes=given.yes, allow=allow, check=app.approvals.checked)
        await follow(app, handle, trace, ask=ask, seen=seen)
        response = await handle.result()
        if response.status.ended:
            trace.sum_up(response)
    code = print_response(response, as_json=given.as_json, talking=talking)
    if response.status.waiting:
        await note_needs(app, handle.run_id, given)
    return code


@contextmanager
def leaving_noted(given: RunOptions, run_id: str) -> Iterator[None]:
    """Whoever leaves a run that is kept is told how to go on with it."""
    try:
        yield
    except asyncio.CancelledError:
        screen.note(
            "left; the step under way is finished first, Ctrl-C again ends at once. The run is kept:",
            resume_with(given, run_id),
            command(given.store, "runs cancel", run_id),
        )
        raise


async def note_needs(app: Journeyman, run_id: str, given: RunOptions) -> None:
    found = await needs(app, run_id, url=given.store)
    steps = next_steps(found, url=given.store)
    screen.note(f"run {run_id} waits for a person", *steps, f"then: {resume_with(given, run_id)}")


def note_blocked(row: RunRow, earlier: RunRow, given: RunOptions) -> ExitCode:
    screen.note(
        f"run {row.id} waits for an earlier one of its session, {earlier.id}, which is {earlier.status.value}",
        f"see to that one first: {command(given.store, 'runs show', earlier.id)}",
        f"then: {resume_with(given, row.id)}",
    )
    return ExitCode.WAITING


def resume_with(given: RunOptions, run_id: str) -> str:
    """What to type to resume a run."""
    return resume_command(given.store, run_id, *given.repeated)

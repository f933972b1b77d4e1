"""``journeyman run``: one task, followed on stderr, answered on stdout; in this process alone, or kept in a store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from journeyman.app import Agent, SqlStore, ToolLibrary
from journeyman.app.approvals import checked_arguments
from journeyman.app.assembly import AuditedJournal
from journeyman.app.chains import OneCall
from journeyman.app.desk import LOCAL, Desk
from journeyman.app.direct import stream
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import is_document, open_at
from journeyman.core.approvals import Approval, Approve, Deny
from journeyman.core.data import canonical_json
from journeyman.core.errors import ApprovalError
from journeyman.core.events import RunFailed, RunFinished
from journeyman.core.model_settings import ModelSettings
from journeyman.core.protocols import beside
from journeyman.core.runs import AgentResponse, Limits, RunStatus, Wanted
from journeyman.core.storing import RunRow
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import configuration
from journeyman.doors.cli.loading import (
    command,
    decisions,
    in_running_app,
    load_agent,
    load_for_run,
    opened,
    resolutions,
)
from journeyman.doors.cli.options import ExitCode, RunOptions
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.screen import print_answer
from journeyman.doors.cli.trace import Allow, Asker, Trace, asker, nobody
from journeyman.doors.cli.trust import Gate

KeptIn = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Where to keep it; implies --durable.", callback=options.note_store),
]
GoneOnWith = Annotated[
    str | None, typer.Option(metavar="NAME", help="Go on with a stored conversation; implies --durable.")
]


@options.taking(
    "task attach agent library model permission yes durable store session as_json verbose debug log_level",
    store=KeptIn,
    session=GoneOnWith,
)
def run(
    given: RunOptions,
    *,
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do, in words.")],
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", metavar="FILE", help="A picture or file that belongs to the task. May be repeated."),
    ] = None,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable",
            help="Keep the run in the store: it survives this process, and a risky call waits until somebody decides.",
        ),
    ] = False,
) -> None:
    """Carry out a task: its trace on stderr, its answer on stdout.

    Exit codes: 0 done, 1 failed or nothing done, 2 wrong usage, 3 waiting for a person.
    """
    carry_out = run_durably if durable or given.store or given.session else run_directly
    given = replace(given, store=given.store or options.default_store())
    raise typer.Exit(carry_out([options.task_text(task), *map(options.attached, attach or ())], given))


# --- in this process alone


def run_directly(task: Wanted, given: RunOptions) -> ExitCode:
    store = open_at(given.store)
    agent, tools = load_agent(given.agent, given.library, store=store, model=given.model)
    # The run is not kept in the store, but its tools may work on the tasks there.
    on_tasks = given.library is None and (given.agent is None or is_document(given.agent))
    if (configured := configuration(store)) is not None:
        on_tasks = on_tasks and (configured.uses_store or given.agent is not None)
    trace = Trace(screen.console(stderr=True), live=given.live, verbose=given.verbose)
    response = run_here(agent, task, given, store=store if on_tasks else None, tools=tools, trace=trace)
    if response is None:
        screen.note("the run waits for a person")
        return ExitCode.WAITING
    return print_response(response, as_json=given.as_json)


def run_here(
    agent: Agent,
    task: Wanted,
    given: RunOptions,
    *,
    store: SqlStore | None,
    tools: ToolLibrary,
    trace: Trace,
    planner: OneCall | None = None,
) -> AgentResponse | None:
    """Run an agent in this process and show its trace; None when the run waits for a person.

    A ``store`` is one that its tools work on: its audit has their effects, although it does not keep the run. Tools may
    print; stdout is for the answer alone, so that goes to stderr.
    """

    async def check(approval: Approval, arguments: dict[str, Any]) -> None:
        if (tool := tools.lookup(approval.tool_name)) is not None:
            await checked_arguments(tool, arguments)

    asks = asker(trace, yes=given.yes, check=check) or nobody
    rules = None if (followed := configuration()) is None else followed.rules
    limits = None
    model: str | ModelSettings | None = given.model
    if rules is not None:
        limits = rules.limits
        if agent.max_iterations is not None:
            limits = Limits(**limits.model_dump(exclude={"iterations"}))
        if model is None and agent.model_settings.name == "auto" and rules.model is not None:
            model = agent.model_settings.over(rules.model())

    actor = None if given.principal is None else given.principal.id
    journal = None if store is None else AuditedJournal(store.audit, actor=actor)

    async def whole() -> AgentResponse | None:
        response = None
        async with nullcontext() if store is None else opened(store):
            with printing_to_stderr(), trace:
                async for event in stream(
                    agent,
                    task,
                    library=tools,
                    model=model,
                    planner=planner,
                    approver=asks,
                    principal=given.principal,
                    policy=None if rules is None else rules.policy,
                    limits=limits,
                    journal=journal,
                ):
                    trace.show(event)
                    if isinstance(event, RunFinished | RunFailed):
                        response = event.response
        return response

    return asyncio.run(whole())


def print_response(response: AgentResponse, *, as_json: bool, talking: bool = False) -> ExitCode:
    """The answer on stdout, what went wrong on stderr; to whoever is ``talking`` the answer says enough."""
    if as_json:
        screen.print_json(response)
    elif response.answer:
        if (console := screen.console(stderr=True)).is_terminal:
            console.print()
        print_answer(response.answer)
    if response.status is not RunStatus.COMPLETED and response.error is not None:
        took = f" (after {screen.duration(response.seconds * 1000)})" if response.status is RunStatus.FAILED else ""
        screen.note(f"{response.error.message}{took}", response.error.user_guidance)
    elif ExitCode.of(response) is ExitCode.FAILED and not talking:
        screen.note("nothing of what was asked was done")
    if response.gap is not None and not talking:
        screen.note(screen.escaped(response.gap.plain))
    return ExitCode.of(response)


# --- kept in a store


def run_durably(task: Wanted, given: RunOptions) -> ExitCode:
    """Keep a run in the store, carry it out here, and print what came out or what it waits for."""
    store = open_at(given.store)
    agent, tools, given = load_for_run(given, store=store)

    async def work(app: Journeyman) -> ExitCode:
        app.model_for(agent)  # a run that cannot be carried out here is not even kept
        handle = await app.start(agent, task, principal=given.principal, session_id=given.session)
        with leaving_noted(given, handle.run_id):
            row = await Desk(app, LOCAL).run(handle.run_id)
            if (earlier := await Desk(app, LOCAL).blocking(row)) is not None:
                return note_blocked(row, earlier, given)
        return await see_through(app, handle, given)

    return in_running_app(store, work, library=tools, origin=given.origin, gate=Gate(ask=True))


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
    with leaving_noted(given, handle.run_id), trace:
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
    steps = next_steps(await needs(app, run_id, url=given.store), url=given.store)
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
    return command(given.store, "runs resume", run_id, *given.repeated)


# --- where a durable run stands


MOST_NAMED = 10
CALL_WIDTH = 100
POLL_SECONDS = 0.5
"""How often it is looked whether somebody else has answered the question a person is being asked here."""


async def needs(app: Journeyman, run_id: str, *, url: str) -> list[tuple[str, list[str]]]:
    """Everything a person must do, in the order it was asked, each with what to type: of several commands, one."""
    needed = []
    for asked in await app.approvals.pending(run_id=run_id):
        about = f"{screen.escaped(asked.about)} · " if asked.about else ""
        what = f"{about}{screen.call_text(asked.tool_name, asked.arguments, width=CALL_WIDTH)}"
        what, answer = f"{what} needs approval ({asked.risk.value})", list[str]()
        if asked.question is not None:
            what = f"{asked.tool_name} asks: {screen.escaped(asked.question.message)}"
            answer = ["--args", canonical_json(asked.arguments)]
        needed.append((what, decisions(url, asked.id, *answer)))
    for call in await (await app.handle(run_id)).unknown():
        what = screen.call_text(call.tool_name, call.arguments, width=CALL_WIDTH)
        what += " was under way when its process died; nobody knows whether it happened"
        needed.append((what, resolutions(url, run_id, call.call_id)))
    row = await Desk(app, LOCAL).run(run_id)
    if row.status is RunStatus.STUCK:
        needed.append((row.trouble or "processes die on it", [command(url, "runs resume", run_id)]))
    return needed


def next_steps(needed: list[tuple[str, list[str]]], *, url: str) -> list[str]:
    """As lines for a person."""
    lines: list[str] = []
    for what, (first, *others) in needed[:MOST_NAMED]:
        lines += [f"{what}:", f"  {first}", *(f"  or: {other}" for other in others)]
    if len(needed) > MOST_NAMED:
        lines.append(f"… and {len(needed) - MOST_NAMED} more: {command(url, 'approvals list')}")
    return lines


# --- following


async def follow(app: Journeyman, handle: Handle, trace: Trace, *, ask: Asker | None, seen: int = 0) -> RunStatus:
    """Show a run from fact ``seen`` on, until it has ended or waits for somebody who cannot be asked here.

    Raises what keeps it from going on here.
    """
    desk = Desk(app, LOCAL)
    for fact in await desk.facts(handle.run_id, limit=seen) if seen else ():
        trace.recall(fact)

    async def show() -> None:
        nonlocal seen
        async for event in handle.events(after=seen):
            trace.show(event)
            seen = event.seq or seen

    while True:
        before = seen
        async with beside(show()) as (showing,):
            status = await handle.wait()
        if not showing.cancelled():
            showing.result()
        for fact in await desk.facts(handle.run_id, after=seen):
            trace.show(fact)
            seen = fact.seq or seen
        if status is not RunStatus.AWAITING_APPROVAL or ask is None:
            return status
        pending = await app.approvals.pending(run_id=handle.run_id)
        if not pending and seen == before:
            return status
        for approval in pending:
            await _decide(app, approval, ask)


async def _decide(app: Journeyman, approval: Approval, ask: Asker) -> None:
    """Ask the person here, unless somebody elsewhere is quicker or the time runs out."""
    async with beside(ask(approval), _decided(app, approval.id)) as both:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not both[0].done():
            return
        try:
            match both[0].result():
                case Approve(arguments=arguments, by=by):
                    await app.approvals.approve(approval.id, by=by or "unnamed", arguments=arguments)
                case Deny(reason=reason, by=by):
                    await app.approvals.deny(approval.id, by=by or "unnamed", reason=reason)
        except ApprovalError as error:
            screen.note(str(error))  # what is still pending is asked again


async def _decided(app: Journeyman, approval_id: str) -> None:
    while True:
        approval = await app.approvals.get(approval_id)
        if approval is None or approval.status.final:
            return
        await asyncio.sleep(POLL_SECONDS)

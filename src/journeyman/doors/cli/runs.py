"""``journeyman runs``: what runs there are, how one stands, and what a person does about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.text import Text

from journeyman.app import Journeyman
from journeyman.core.errors import BindingError, ConfigurationError, JourneymanError
from journeyman.core.events import Fact
from journeyman.core.runs import UNFINISHED, AgentResponse, RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.cli import options, outcome, screen
from journeyman.doors.cli.loading import command, in_store, load_agent, must_exist, open_at, running_app
from journeyman.doors.cli.markdown import show_markdown
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, RunOptions, WrongUsageError
from journeyman.doors.cli.origins import RememberedTools, words
from journeyman.doors.cli.people import must_be_a_person
from journeyman.doors.cli.run import note_blocked, note_needs, see_through
from journeyman.doors.cli.trace import Trace, asker

FACT_WIDTH = 300
OTHER_TOOLS = "the run stays as it is; name the tools it was begun with: --library MODULE[:NAME]"
RUN_STYLES = {
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "red",
    RunStatus.LIMIT_REACHED: "yellow",
    RunStatus.CANCELLED: "dim",
    RunStatus.AWAITING_APPROVAL: "magenta",
    RunStatus.AWAITING_RESOLUTION: "bold red",
    RunStatus.STUCK: "bold red",
}

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id.", show_default=False)]

runs = typer.Typer(no_args_is_help=True)


@runs.command("list")
def list_runs(
    status: Annotated[
        list[str] | None, typer.Option(metavar="STATUS", help="Only these, e.g. awaiting_approval. May be repeated.")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of one session.")] = None,
    principal: options.PrincipalName = None,
    limit: options.Limit = 50,
    store: options.Store = DEFAULT_STORE,
    as_json: options.Json = False,
) -> None:
    """All runs, newest first."""
    wanted = [_status(name) for name in status or ()] or None

    async def found(app: Journeyman) -> list[tuple[RunRow, str]]:
        whose = options.whose(principal)
        await app.approvals.expire()
        rows = await app.store.runs.list(statuses=wanted, session_id=session, principal_id=whose, limit=limit)
        return [(row, await _task(app, row.id)) for row in rows]

    rows = in_store(store, found)
    if as_json:
        screen.print_json([{**row.model_dump(mode="json"), "task": task} for row, task in rows])
    elif not rows:
        screen.note("no such runs" if wanted or session or principal else "no runs")
    else:
        table, now = screen.listing("run", "status", "begun", "task"), time.time()
        for row, task in rows:
            begun = f"{screen.rough_duration(now - row.created_at)} ago"
            why = "" if row.trouble is None or row.status.ended else f" – {row.trouble}"
            table.add_row(row.id, _status_text(row), begun, screen.shortened(f"{task}{why}", 200))
        screen.console().print(table)


def _status(name: str) -> RunStatus:
    try:
        return RunStatus(name)
    except ValueError:
        known = ", ".join(status.value for status in RunStatus)
        raise WrongUsageError(f"--status {name!r} is no status of a run; there are {known}") from None


def _status_text(row: RunRow) -> Text:
    return Text(row.status.value, style=RUN_STYLES.get(row.status, ""))


async def _task(app: Journeyman, run_id: str) -> str:
    order = await app.store.runs.order(run_id)
    return "" if order is None else order.task.description


# --- one run


@runs.command("show")
def show_run(
    run_id: RunId,
    events: Annotated[bool, typer.Option("--events", help="The facts of its journal instead.")] = False,
    verbose: options.Verbose = False,
    store: options.Store = DEFAULT_STORE,
    as_json: options.Json = False,
) -> None:
    """How one run stands, what it did, what it waits for, and what to type about that."""

    async def found(
        app: Journeyman,
    ) -> tuple[RunRow, str, list[outcome.Need], list[Fact], AgentResponse | None, str | None]:
        row = await outcome.row_of(app, run_id, url=store)
        needed = [] if row.status.ended else await outcome.needs(app, run_id, url=store)
        facts = list(await app.store.runs.facts(run_id))
        response = await (await app.handle(run_id)).so_far()
        return row, await _task(app, run_id), needed, facts, response, outcome.holder_of(app, row)

    row, task, needed, facts, response, holder = in_store(store, found)
    resume = None if row.status.ended or holder else outcome.resume_command(store, row.id)
    if as_json and events:
        screen.print_json(screen.dumped(facts))
    elif as_json:
        screen.print_json(
            {
                "run": row.model_dump(mode="json"),
                "task": task,
                "needs": [{"what": need.what, "commands": need.commands} for need in needed],
                "resume": resume,
                "response": None if response is None else response.model_dump(mode="json"),
            }
        )
    elif events:
        _print_facts(facts)
    else:
        _print_run(row, task, facts, response, holder=holder, verbose=verbose)
        if resume is not None:
            stuck = row.status is RunStatus.STUCK  # its one need is to be resumed
            then = () if stuck else (f"{'then' if needed else 'next'}: {resume}",)
            for line in ("", *outcome.next_steps(needed, url=store), *then):
                screen.say(line)


def _print_run(
    row: RunRow, task: str, facts: list[Fact], response: AgentResponse | None, *, holder: str | None, verbose: bool
) -> None:
    console = screen.console()
    table = screen.fields()
    table.add_row("run", row.id)
    table.add_row("status", _status_text(row))
    table.add_row("task", screen.escaped(task))
    table.add_row("agent", screen.escaped(row.agent_name))
    if row.principal_id is not None:
        table.add_row("for", screen.escaped(row.principal_id))
    if row.session_id is not None:
        table.add_row("session", screen.escaped(row.session_id))
    table.add_row("begun", screen.local_time(row.created_at))
    table.add_row("last seen", screen.local_time(row.updated_at))
    if not row.status.ended:
        table.add_row("at work", holder or "nobody")
        if row.trouble is not None:
            table.add_row("trouble", screen.escaped(row.trouble))
    console.print(table)
    console.print()
    trace = Trace(console, live=False, plans=False, verbose=verbose)
    for fact in facts:
        trace.show(fact)
    if response is None or not row.status.ended:
        return
    trace.sum_up(response)
    console.print()
    if response.answer:
        show_markdown(console, response.answer)
    elif response.error is not None:
        screen.show(console, screen.escaped(response.error.message))
    for label in response.labels:
        by = f" by {screen.escaped(label.by)}" if label.by else ""
        note = f": {screen.escaped(label.note)}" if label.note else ""
        screen.show(console, Text(f"{label.value} · {label.decision or label.source.value}{by}{note}", style="dim"))


def _print_facts(facts: list[Fact]) -> None:
    for fact in facts:
        content = fact.model_dump(mode="json", exclude={"run_id", "seq", "time", "type"}, exclude_defaults=True)
        head = f"{fact.seq:>4}  {screen.local_time(fact.time)}  {fact.type:<18}  "
        screen.say(Text.assemble((head, "bold"), screen.shortened(content, FACT_WIDTH)))


@runs.command("export")
def export_run(
    run_id: RunId,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Without it, to stdout.")] = None,
    store: options.Store = DEFAULT_STORE,
) -> None:
    """The whole run as JSON: what was asked, every fact, what came out."""

    async def found(app: Journeyman) -> dict[str, Any]:
        row = await outcome.row_of(app, run_id, url=store)
        order = await app.store.runs.order(run_id)
        response = await (await app.handle(run_id)).so_far()
        return {
            "run": row.model_dump(mode="json"),
            "order": None if order is None else order.model_dump(mode="json"),
            "facts": screen.dumped(await app.store.runs.facts(run_id)),
            "response": None if response is None else response.model_dump(mode="json"),
        }

    whole = in_store(store, found)
    if output is None:
        screen.print_json(whole)
    else:
        _write(output, screen.json_text(whole))


@runs.command("result")
def show_result(
    run_id: RunId,
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="The call's id, from 'runs show --events'.")],
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Without it, to stdout.")] = None,
    store: options.Store = DEFAULT_STORE,
) -> None:
    """The whole result of one call, also of one that is too large for its record."""

    async def found(app: Journeyman) -> Any:
        await outcome.row_of(app, run_id, url=store)
        handle = await app.handle(run_id)
        response = await handle.so_far()
        for record in () if response is None else response.tool_calls:
            if record.call_id == call_id:
                return await handle.whole(record)
        raise ConfigurationError(f"run {run_id!r} has no finished call {call_id!r}")

    value = in_store(store, found)
    text = value if isinstance(value, str) else screen.json_text(value)
    if output is None:
        print(text)
    else:
        _write(output, text)


def _write(output: Path, text: str) -> None:
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise WrongUsageError(f"--output {str(output)!r} cannot be written: {error.strerror}") from None


# --- resuming


@runs.command("resume")
def resume_runs(
    run_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One run.", show_default=False)] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME|FILE.gram[:NAME]",
            help="An Agent with whose tools to go on. The run's own agent stays what it was.",
            show_default="what the run was begun with",
        ),
    ] = None,
    library: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE[:NAME]",
            help="A ToolLibrary, or a module or Python file, to go on with; or 'local', 'research' or 'slack'.",
            show_default="what the run was begun with",
        ),
    ] = None,
    model: options.Model = None,
    yes: options.Yes = False,
    store: options.Store = DEFAULT_STORE,
    as_json: options.Json = False,
    debug: options.Debug = False,
    log_level: options.Log = None,
) -> None:
    """Take up one run, or all that are unfinished and that nobody works on, and follow to the end or to a person.

    Agent, tools and model are those that each run was begun with, unless others are named.
    """
    must_exist(store)
    given = RunOptions(
        store=store,
        agent=agent,
        library=library,
        model=model,
        yes=yes,
        as_json=as_json,
        log_level=log_level,
        debug=debug,
    )
    given = replace(given, repeated=words(given))
    database = open_at(store)
    others = agent is not None or library is not None
    tools = load_agent(agent, library, store=database, model=model)[1]
    find = None if others else RememberedTools(database, ask=True)

    async def whole() -> ExitCode:
        async with running_app(database, library=tools, model=model, find_tools=find) as app:
            return await (_resume_all(app, given) if run_id is None else _resume_one(app, run_id, given))

    try:
        raise typer.Exit(asyncio.run(whole()))
    except BindingError as error:
        screen.note(str(error), OTHER_TOOLS)
        raise typer.Exit(ExitCode.FAILED) from None


async def _resume_one(app: Journeyman, run_id: str, given: RunOptions) -> ExitCode:
    row = await outcome.row_of(app, run_id, url=given.store)
    if (earlier := await outcome.blocking_run(app, row)) is not None:
        return note_blocked(row, earlier, given)
    if (holder := outcome.holder_of(app, row)) is not None:
        screen.show(screen.console(stderr=True), f"{holder} works on it; followed from here", indent=2)
    if not row.status.ended:
        await app.must_bind(run_id)
    [handle] = await app.resume(run_id)
    return await see_through(app, handle, given, seen=row.last_seq)


async def _resume_all(app: Journeyman, given: RunOptions) -> ExitCode:
    console = screen.console(stderr=True)
    rows = await _unfinished(app)
    free: list[RunRow] = []
    for row in rows:
        if (holder := outcome.holder_of(app, row)) is None:
            free.append(row)
        else:
            screen.show(console, f"{row.id}: {holder} works on it; left alone", indent=2)
    # Runs of one session go one after another, whatever else goes on beside them.
    chains: dict[str, list[RunRow]] = {}
    for row in sorted(free, key=lambda row: (row.turn or 0, row.created_at, row.id)):
        chains.setdefault(row.session_id or row.id, []).append(row)
    with screen.printing_to_stderr():
        ends = await asyncio.gather(*(_resume_chain(app, chain, console, yes=given.yes) for chain in chains.values()))
    found = [end for chain in ends for end in chain]
    if given.as_json:
        screen.print_json(screen.dumped(response for _, response in found if response is not None))
    for row, response in found:
        status = row.status if response is None else response.status
        if not given.as_json:
            answer = screen.shortened("left as it is" if response is None else response.answer, 100)
            screen.write(f"{row.id}  {status.value}  {answer}")
        if response is not None and status.waiting:
            await note_needs(app, row.id, given)
    if not found:
        screen.note("no run to take up", f"all there are: {command(given.store, 'runs list')}")
    codes = {ExitCode.FAILED if response is None else ExitCode.of(response) for _, response in found}
    return next((code for code in (ExitCode.FAILED, ExitCode.WAITING) if code in codes), ExitCode.DONE)


async def _unfinished(app: Journeyman) -> list[RunRow]:
    found: list[RunRow] = []
    while batch := await app.store.runs.list(statuses=UNFINISHED, limit=500, offset=len(found)):
        found += batch
    return found


async def _resume_chain(
    app: Journeyman, rows: Sequence[RunRow], console: Console, *, yes: bool
) -> list[tuple[RunRow, AgentResponse | None]]:
    """The runs of one session, as far as they get; None for one that cannot go on here."""
    ends: list[tuple[RunRow, AgentResponse | None]] = []
    for row in rows:
        trace = Trace(console, live=False, name=row.id)
        # Nobody can answer questions of several runs at once.
        ask = asker(trace, yes=True) if yes else None
        handle = await app.handle(row.id)
        try:
            await app.must_bind(row.id)
            await app.resume(row.id)
            await outcome.follow(app, handle, trace, ask=ask, seen=row.last_seq)
            response = await handle.result()
        except JourneymanError as error:
            screen.note(f"{row.id}: {error}", OTHER_TOOLS if isinstance(error, BindingError) else None)
            ends.append((row, None))
            break
        ends.append((row, response))
        if not response.status.ended:
            break
    return ends


# --- what a person does about a run


@runs.command("resolve")
def resolve_call(
    run_id: RunId,
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="The call's id, from 'runs show'.")],
    action: Annotated[
        str,
        typer.Argument(
            metavar="rerun|done|skip", help="Run it again, take it as done, or leave it out.", show_default=False
        ),
    ],
    result: Annotated[str | None, typer.Option(metavar="JSON", help="What a call that is done has returned.")] = None,
    by: options.By = None,
    store: options.Store = DEFAULT_STORE,
) -> None:
    """Settle a call that was under way when its process died, so that nobody knows whether it happened."""
    must_be_a_person()
    if action not in ("rerun", "done", "skip"):
        raise WrongUsageError(f"a call is settled by rerun, done or skip, not by {action!r}")
    if result is not None and action != "done":
        raise WrongUsageError(f"--result says what a call has done; it does not go with {action!r}")
    value = None if result is None else options.json_value(result, option="--result")
    must_exist(store)

    async def whole() -> None:
        async with running_app(open_at(store)) as app:
            await outcome.row_of(app, run_id, url=store)
            handle = await app.handle(run_id)
            await handle.resolve(call_id, cast("Any", action), result=value, by=by or options.user_name())

    asyncio.run(whole())
    screen.say(f"call {call_id} is settled: {action}; next: {outcome.resume_command(store, run_id)}")


@runs.command("rate")
def rate_run(
    run_id: RunId,
    rating: Annotated[str, typer.Argument(metavar="good|bad", show_default=False)],
    note: Annotated[str, typer.Option(metavar="TEXT", help="What was right or wrong with it.")] = "",
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who says so. Without it, your user name.", show_default=False)
    ] = None,
    store: options.Store = DEFAULT_STORE,
) -> None:
    """Say whether an ended run did what was asked. Runs are learned from by what people say of them."""
    if rating not in ("good", "bad"):
        raise WrongUsageError(f"a run is rated good or bad, not {rating!r}")

    async def rated(app: Journeyman) -> None:
        await outcome.row_of(app, run_id, url=store)
        handle = await app.handle(run_id)
        await handle.rate(cast("Any", rating), by=by or options.user_name(), note=note)

    in_store(store, rated)
    screen.say(f"run {run_id} is rated {rating}")


@runs.command("cancel")
def cancel_run(run_id: RunId, store: options.Store = DEFAULT_STORE) -> None:
    """End a run, wherever it is worked on. Exit code 1 when it has ended already."""
    must_exist(store)

    async def whole() -> tuple[RunRow, bool, str | None]:
        async with running_app(open_at(store)) as app:
            if (row := await outcome.row_of(app, run_id, url=store)).status.ended:
                return row, True, None
            await app.cancel(run_id, by=options.user_name())
            row = await outcome.row_of(app, run_id, url=store)
            return row, False, outcome.holder_of(app, row)

    row, late, holder = asyncio.run(whole())
    if late or (row.status.ended and row.status is not RunStatus.CANCELLED):
        screen.note(f"run {run_id!r} has ended already: {row.status.value}; nothing was changed")
        raise typer.Exit(ExitCode.FAILED)
    if row.status.ended:
        screen.say(f"run {run_id} is cancelled")
    else:
        screen.say(f"run {run_id} is to be cancelled: {holder or 'whoever takes it up'} does so in a moment")


@runs.command("purge")
def purge_runs(
    older_than: Annotated[str, typer.Option(metavar="SPAN", help="How long ago a run must have ended: 7d, 12h…")],
    store: options.Store = DEFAULT_STORE,
) -> None:
    """Forget runs that ended long ago, their facts and their approvals."""
    age = options.seconds(older_than, option="--older-than")

    async def forget(app: Journeyman) -> int:
        now = app.clock.time()
        purged = await app.store.runs.purge(ended_before=now - age)
        if purged:
            details = {"before": now - age, "runs": purged}
            await app.store.audit.append(
                "runs_purged", actor=options.user_name(), run_id=None, subject="runs", details=details, now=now
            )
        return purged

    gone = in_store(store, forget)
    done = f"{screen.counted(gone, 'run')} forgotten; unfinished ones, conversations and the audit log stay"
    screen.say(done if gone else f"no run ended more than {older_than} ago")

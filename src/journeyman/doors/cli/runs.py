"""``journeyman runs``: what runs there are, how one stands, and what a person does about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from journeyman.app.desk import LOCAL, Desk
from journeyman.app.journeyman import Journeyman
from journeyman.app.loading import open_at
from journeyman.app.operations import runs as operations
from journeyman.core.approvals import Label
from journeyman.core.calls import DataLabel
from journeyman.core.data import moment
from journeyman.core.errors import BindingError, JourneymanError
from journeyman.core.events import Fact
from journeyman.core.runs import UNFINISHED, AgentResponse, RunStatus, Wait
from journeyman.core.storing import RunRow
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import RememberedTools, at_desk, command, in_running_app, load_agent, must_exist
from journeyman.doors.cli.operated import Call, Listing, Typed, operated
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, RunOptions, WrongUsageError
from journeyman.doors.cli.program import must_be_a_person
from journeyman.doors.cli.replays import RunId, runs
from journeyman.doors.cli.run import follow, needs, next_steps, note_blocked, note_needs, see_through
from journeyman.doors.cli.screen import show_markdown
from journeyman.doors.cli.trace import Trace, asker
from journeyman.doors.cli.trust import Gate, words

FACT_WIDTH = 300
UNDONE = {"not": "not done", "partly": "partly done"}
OTHER_TOOLS = "the run stays as it is; name the tools it was begun with: --library MODULE[:NAME]"
CANCELLED = "wanted; whoever has it, or takes it up next, ends it"
RUN_STYLES = {
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "red",
    RunStatus.LIMIT_REACHED: "yellow",
    RunStatus.CANCELLED: "dim",
    RunStatus.AWAITING_APPROVAL: "magenta",
    RunStatus.AWAITING_RESOLUTION: "bold red",
    RunStatus.STUCK: "bold red",
}

Rater = Annotated[str | None, typer.Option(metavar="NAME", help="Who says so. Without it, your user name.")]
RESOLVED = {
    "call_id": Typed(metavar="CALL", help="The call's id, from 'runs show'."),
    "action": Typed(metavar="rerun|done|skip", help="Run it again, take it as done, or leave it out."),
    "result": Typed(metavar="JSON", read=options.json_value),
}
RATING = {"rating": Typed(metavar="good|bad", argument=True), "note": Typed(metavar="TEXT")}
RUN = {"run_id": Typed(help="The run's id.")}
CALL = Typed(metavar="CALL", help="The call's id, from 'runs show --events'.")


def _asked(row: operations.RunView) -> str:
    why = "" if row.trouble is None or row.status.ended else f" – {row.trouble}"
    return screen.shortened(f"{row.request}{why}", 200)


def _moment(span: str, *, option: str) -> datetime:
    return moment(time.time() - options.seconds(span, option=option))


LISTED = {
    "status": Typed(metavar="STATUS"),
    "agent": Typed(metavar="NAME"),
    "tool": Typed(metavar="NAME"),
    "q": Typed("--search", metavar="WORDS"),
    "since": Typed(metavar="SPAN", help="Only those begun since then: 90s, 12h, 7d…", read=_moment),
    "until": Typed(metavar="SPAN", help="Only those begun before then.", read=_moment),
}
operated(runs, "runs list", operations.list_runs, typed=LISTED)(
    Listing(
        "runs",
        {
            "run": "id",
            "status": lambda row: _status_text(row.status, UNDONE.get(row.outcome or "", "")),
            "begun": lambda row: f"{screen.rough_duration(time.time() - row.created_at)} ago",
            "task": _asked,
        },
        empty="no runs",
    )
)


def _status_text(status: RunStatus, undone: str = "") -> Text:
    """Where a run stands; one that completed without doing what was asked is no success."""
    undone = undone if status is RunStatus.COMPLETED else ""
    return Text(undone or status.value, style="yellow" if undone else RUN_STYLES.get(status, ""))


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

    async def show(desk: Desk) -> None:
        row, facts = await desk.run(run_id), list(await desk.facts(run_id))
        if events:
            return screen.print_json(screen.dumped(facts)) if as_json else _print_facts(facts)
        task, response = await operations.task_of(desk, run_id), await desk.response(run_id)
        needed = [] if row.status.ended else await needs(desk.app, run_id, url=store)
        waits, holder = await (await desk.app.handle(run_id)).waits(), desk.holder(row)
        forks = await operations.fork_tree(desk, row)
        resume = None if row.status.ended or holder else command(store, "runs resume", row.id)
        if as_json:
            standing = {
                "run": row.model_dump(mode="json"),
                "task": task,
                "needs": [{"what": what, "commands": commands} for what, commands in needed],
                "waits": screen.dumped(waits),
                "forks": [{"depth": depth, "run": item.id, "status": item.status.value} for depth, item in forks],
                "resume": resume,
                "response": None if response is None else response.model_dump(mode="json"),
            }
            return screen.print_json(standing)
        screen.console().print(_standing(row, task, holder, waits, forks))
        _print_course(facts, response if row.status.ended else None, verbose=verbose)
        if resume is not None:
            stuck = row.status is RunStatus.STUCK  # its one need is to be resumed
            then = () if stuck else (f"{'then' if needed else 'next'}: {resume}",)
            for line in ("", *next_steps(needed, url=store), *then):
                screen.say(line)
        return None

    at_desk(store, show)


def _standing(
    row: RunRow, task: str, holder: str | None, waits: Sequence[Wait], forks: Sequence[tuple[int, RunRow]]
) -> Table:
    unfinished = not row.status.ended
    return screen.fields(
        ("run", row.id),
        ("status", _status_text(row.status)),
        ("task", task),
        ("agent", row.agent_name),
        ("for", row.principal_id),
        ("session", row.session_id),
        ("begun", screen.local_time(row.created_at)),
        ("last seen", screen.local_time(row.updated_at)),
        *(
            ("forks" if not depth else "", f"{'  ' * depth}{item.id} {item.status.value}{' ←' * (item.id == row.id)}")
            for depth, item in forks
        ),
        ("at work", (holder or "nobody") if unfinished else None),
        ("trouble", row.trouble if unfinished else None),
        *(("waits for", _wait_text(wait)) for wait in waits if unfinished),
        ("cancel", CANCELLED if unfinished and row.cancel_wanted else None),
    )


def _wait_text(wait: Wait) -> str:
    return f"{wait.whom}: {wait.text}{f' (until {screen.local_time(wait.until)})' if wait.until else ''}"


def _print_course(facts: list[Fact], response: AgentResponse | None, *, verbose: bool) -> None:
    """What a run did and, where it has ended, what came out."""
    console = screen.console()
    console.print()
    trace = Trace(console, live=False, plans=False, verbose=verbose)
    for fact in facts:
        trace.show(fact)
    if response is None:
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


@operated(runs, "runs export", operations.export_run, typed=RUN)
def write_run(whole: operations.RunExport, _: Call, output: options.Output = None) -> None:
    """As JSON."""
    screen.put_out(screen.json_text(whole.model_dump(mode="json")), output)


@operated(runs, "runs result", operations.call_result, typed=RUN | {"call_id": CALL})
def write_result(value: Any, _: Call, output: options.Output = None) -> None:
    screen.put_out(value if isinstance(value, str) else screen.json_text(value), output)


def flow(run_id: RunId, store: options.Store = DEFAULT_STORE, as_json: options.Json = False) -> None:
    """Who said what in a run, and what went where: whose words each call read, and what was decided about them."""
    flowed = at_desk(store, lambda desk: operations.run_flow(desk, run_id=run_id))
    if as_json:
        return screen.print_json(flowed)
    screen.say(Text(f"you: {screen.shortened(flowed.request, FACT_WIDTH)}", style="bold"))
    for number, call in enumerate(flowed.calls, start=1):
        line = f"{number:>3} {'read' if call.reads else 'change':6} {screen.escaped(call.tool_name)}"
        screen.say(f"{line} – {screen.escaped(label_text(call.label))}" if call.label is not None else line)
        for argument, source in call.arguments.items():
            screen.say(Text(f"      {screen.escaped(argument)} ← {screen.escaped(source)}", style="dim"))
        if call.flow is not None:
            why = f": {screen.escaped(call.flow.reason)}" if call.flow.reason else ""
            style = "dim" if call.flow.decision == "allowed" else "yellow"
            screen.say(Text(f"      {call.flow.decision}{why} ({call.status})", style=style))
    return None


def label_text(label: DataLabel) -> str:
    """Whose words something is, and for whom."""
    who = f"{label.writer} words" if label.untrusted else "private"
    readers = f", only for {', '.join(label.readers)}" if label.private else ""
    return f"{who}, from {label.source}{readers}"


# --- resuming


OtherAgent = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:NAME|FILE.gram[:NAME]",
        help="An Agent with whose tools to go on. The run's own agent stays what it was.",
        show_default="what the run was begun with",
    ),
]
OtherLibrary = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE[:NAME]",
        help="A ToolLibrary, or a module or Python file, to go on with; or 'local', 'research' or 'slack'.",
        show_default="what the run was begun with",
    ),
]


@runs.command("resume")
@options.taking("run_id agent library model yes store as_json debug log_level", agent=OtherAgent, library=OtherLibrary)
def resume_runs(
    given: RunOptions, *, run_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One run.")] = None
) -> None:
    """Take up one run, or all that are unfinished and that nobody works on, and follow to the end or to a person.

    Agent, tools and model are those that each run was begun with, unless others are named.
    """
    if given.yes:  # questions that were asked before are a person's to decide
        must_be_a_person()

    async def work(app: Journeyman, given: RunOptions) -> ExitCode:
        return await (_resume_all(app, given) if run_id is None else _resume_one(app, run_id, given))

    _carry_out(given, work)


@runs.command("fork")
@options.taking(
    "run_id at say arguments result call agent library model yes store as_json debug log_level",
    agent=OtherAgent,
    library=OtherLibrary,
)
def fork_run(
    given: RunOptions,
    *,
    run_id: RunId,
    at: Annotated[int, typer.Option(metavar="STEP", help="The step from which on it goes otherwise, from 1.")],
    say: Annotated[str | None, typer.Option(metavar="TEXT", help="Say this to the model before it goes on.")] = None,
    arguments: Annotated[str | None, typer.Option(metavar="JSON", help="Other arguments for the step's call.")] = None,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="Another result of the step's call, which is not made.")
    ] = None,
    call: Annotated[str | None, typer.Option(metavar="CALL", help="Which call, where the step has several.")] = None,
) -> None:
    """Begin a run that shares the past of another one, and goes on otherwise from a step on.

    Nothing of the past is done again; what follows is governed afresh, and nothing that was allowed before is allowed
    now. --model names another model to go on with.
    """
    edit: dict[str, Any] = {"say": say, "call_id": call, "model": given.model}
    if arguments is not None:
        edit["arguments"] = options.json_object(arguments, option="--arguments")
    if result is not None:
        edit["result"] = options.json_value(result, option="--result")

    async def work(app: Journeyman, given: RunOptions) -> ExitCode:
        parent = (await Desk(app, LOCAL).run(run_id)).id
        handle = await app.fork(parent, at=at, **edit)
        screen.note(f"run {handle.run_id} goes on from step {at} of {parent}")
        row = await Desk(app, LOCAL).run(handle.run_id)
        return await see_through(app, handle, given, seen=row.parent_seq or 0)

    _carry_out(given, work)


def _carry_out(given: RunOptions, wanted: Callable[[Journeyman, RunOptions], Awaitable[ExitCode]]) -> None:
    """Do something with runs of the store, with the tools they were begun with unless others are named."""
    must_exist(given.store)
    given = replace(given, repeated=words(given))
    database, model = open_at(given.store), given.model
    others = given.agent is not None or given.library is not None
    tools = load_agent(given.agent, given.library, store=database, model=model)[1]
    find = None if others else RememberedTools(database)
    parts = {"library": tools, "model": model, "find_tools": find, "gate": Gate(ask=True)}
    try:
        raise typer.Exit(in_running_app(database, lambda app: wanted(app, given), **parts))
    except BindingError as error:
        screen.note(str(error), OTHER_TOOLS)
        raise typer.Exit(ExitCode.FAILED) from None


async def _resume_one(app: Journeyman, run_id: str, given: RunOptions) -> ExitCode:
    desk = Desk(app, LOCAL)
    row = await desk.run(run_id)
    if (earlier := await desk.blocking(row)) is not None:
        return note_blocked(row, earlier, given)
    if (holder := desk.holder(row)) is not None:
        screen.show(screen.console(stderr=True), f"{holder} works on it; followed from here", indent=2)
    if not row.status.ended:
        await app.must_bind(run_id)
    [handle] = await app.resume(run_id)
    return await see_through(app, handle, given, seen=row.last_seq)


async def _resume_all(app: Journeyman, given: RunOptions) -> ExitCode:
    console, desk = screen.console(stderr=True), Desk(app, LOCAL)
    rows: list[RunRow] = []
    while batch := await desk.runs(statuses=UNFINISHED, limit=500, offset=len(rows)):
        rows += batch
    # Runs of one session go one after another, whatever else goes on beside them.
    chains: dict[str, list[RunRow]] = {}
    for row in sorted(rows, key=lambda row: (row.turn or 0, row.created_at, row.id)):
        if (holder := desk.holder(row)) is None:
            chains.setdefault(row.session_id or row.id, []).append(row)
        else:
            screen.show(console, f"{row.id}: {holder} works on it; left alone", indent=2)
    ends = await asyncio.gather(*(_resume_chain(app, chain, console, yes=given.yes) for chain in chains.values()))
    ended = [end for chain in ends for end in chain]
    if given.as_json:
        screen.print_json(screen.dumped(response for _, response in ended if response is not None))
    for row, response in ended:
        status = row.status if response is None else response.status
        if not given.as_json:
            answer = screen.shortened("left as it is" if response is None else response.answer, 100)
            screen.write(f"{row.id}  {status.value}  {answer}")
        if response is not None and status.waiting:
            await note_needs(app, row.id, given)
    if not ended:
        screen.note("no run to take up", f"all there are: {command(given.store, 'runs list')}")
    codes = {ExitCode.FAILED if response is None else ExitCode.of(response) for _, response in ended}
    return next((code for code in (ExitCode.FAILED, ExitCode.WAITING) if code in codes), ExitCode.DONE)


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
            await follow(app, handle, trace, ask=ask, seen=row.last_seq)
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


def _check_result(given: Mapping[str, Any]) -> None:
    if given["result"] is not None and given["action"] != "done":
        raise WrongUsageError(f"--result says what a call has done; it does not go with {given['action']!r}")


@operated(
    runs, "runs resolve", operations.resolve_call, typed=RESOLVED, by=options.By, person=True, check=_check_result
)
def say_resolved(_: operations.RunView, call: Call) -> None:
    """For a call that was under way when its process died, so that nobody knows whether it happened."""
    then = call.command("runs resume", call.given["run_id"])
    screen.say(f"call {call.given['call_id']} is settled: {call.given['action']}; next: {then}")


@operated(runs, "runs rate", operations.rate_run, typed=RATING, by=Rater)
def say_rated(_: Label, call: Call) -> None:
    """Runs are learned from by what people say of them."""
    screen.say(f"run {call.given['run_id']} is rated {call.given['rating']}")


@runs.command("cancel")
def cancel_run(run_id: RunId, store: options.Store = DEFAULT_STORE) -> None:
    """End a run, wherever it is worked on. Exit code 1 when it has ended already."""
    must_exist(store)

    async def work(app: Journeyman) -> tuple[RunRow, bool, str | None]:
        desk = Desk(app, LOCAL)
        if (row := await desk.run(run_id)).status.ended:
            return row, True, None
        await app.cancel(run_id, by=options.user_name())
        row = await desk.run(run_id)
        return row, False, desk.holder(row)

    row, late, holder = in_running_app(open_at(store), work)
    if late or (row.status.ended and row.status is not RunStatus.CANCELLED):
        screen.note(f"run {run_id!r} has ended already: {row.status.value}; nothing was changed")
        raise typer.Exit(ExitCode.FAILED)
    if row.status.ended:
        screen.say(f"run {run_id} is cancelled")
    else:
        screen.say(f"run {run_id} is to be cancelled: {holder or 'whoever takes it up'} does so in a moment")


@operated(runs, "runs purge", operations.purge_runs)
def say_purged(gone: int, call: Call) -> None:
    done = f"{screen.counted(gone, 'run')} forgotten; unfinished ones, conversations and the audit log stay"
    screen.say(done if gone else f"no run ended more than {call.given['older_than']} ago")

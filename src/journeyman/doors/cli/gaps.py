"""``journeyman gaps``: what no tool can do, looked up now or noticed before, by demand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from journeyman.app.gap_export import as_gram, as_python
from journeyman.app.journeyman import Journeyman
from journeyman.core.gaps import NEAREST, Gap
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import command, in_store, load_library
from journeyman.doors.cli.options import (
    DEFAULT_STORE,
    By,
    Json,
    Library,
    Limit,
    PrincipalName,
    Store,
    WrongUsageError,
    task_text,
    whose,
)

TASK_WIDTH = 120

gaps = typer.Typer(no_args_is_help=True)

Key = Annotated[str, typer.Argument(metavar="ID", help="Of the gap, as 'gaps list' shows it.")]


@gaps.command("list")
def list_gaps(
    principal: PrincipalName = None,
    limit: Limit = 50,
    all_gaps: Annotated[bool, typer.Option("--all", help="Dismissed ones as well.")] = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """What was missing so far, those that most people asked for first."""
    found = in_store(store, lambda app: app.gaps.demand(principal_id=whose(principal), dismissed=all_gaps, limit=limit))
    if as_json:
        screen.print_json(screen.dumped(found))
    elif not found:
        screen.note("nothing was missing so far")
    else:
        table = screen.listing("gap", "asked", "last", "missing", "for example")
        for gap in found:
            asked = screen.counted(gap.times, "time") + (f" by {gap.people}" if gap.people > 1 else "")
            missing = screen.escaped(gap.missing) + (" (dismissed)" if gap.dismissed_at is not None else "")
            task = screen.shortened(gap.report.attempted_task, TASK_WIDTH)
            table.add_row(gap.key, asked, screen.local_time(gap.last_at), missing, task)
        screen.console().print(table)


@gaps.command("show")
def show_gap(key: Key, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """One gap: how often it was asked for, in which words, and which tools come nearest."""
    gap = in_store(store, lambda app: _found(app, key))
    if as_json:
        return screen.print_json(gap.model_dump(mode="json"))
    screen.say(Text(f"missing: {screen.escaped(gap.missing)}", style="bold"))
    people = "1 person" if gap.people == 1 else f"{gap.people:,} people"
    screen.say(f"asked for {screen.counted(gap.times, 'time')} by {people}, last {screen.local_time(gap.last_at)}")
    screen.say(f"for example: {screen.escaped(gap.report.attempted_task)}")
    nearest = ", ".join(gap.report.existing_tools_checked[:NEAREST])
    screen.say(f"nearest tools: {screen.escaped(nearest) or 'there were none'}")
    if gap.run_id is not None:
        screen.say(f"last run: {gap.run_id}")
    if gap.dismissed_at is not None:
        screen.say(f"dismissed {screen.local_time(gap.dismissed_at)} by {screen.escaped(gap.dismissed_by or 'nobody')}")
    return screen.note(f"begin with it: {command(store, f'gaps export {gap.key}')}")


@gaps.command("export")
def export_gap(
    key: Key,
    form: Annotated[
        Literal["gram", "python"], typer.Option("--as", help="A gram document, or a Python module with a test.")
    ] = "gram",
    to: Annotated[
        Path | None, typer.Option("--to", help="A folder for the files. Without one they are printed.")
    ] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """A gap as something to begin with: a tool in gram notation, or in Python with a test that runs."""
    gap = in_store(store, lambda app: _found(app, key))
    if form == "gram":
        files = {f"{gap.key}.gram": as_gram(gap)}
    else:
        stub = as_python(gap)
        files = {stub.module_name: stub.module, stub.test_name: stub.test}
    if to is None:
        for number, (name, text) in enumerate(files.items()):
            if len(files) > 1:
                screen.write(f"{'' if not number else chr(10)}# --- {name}")
            screen.write(text, end="")
        return
    to.mkdir(parents=True, exist_ok=True)
    if taken := [name for name in files if (to / name).exists()]:
        raise WrongUsageError(f"{taken[0]!r} is in {str(to)!r} already; choose another folder with --to")
    for name, text in files.items():
        (to / name).write_text(text, encoding="utf-8")
        screen.say(f"written: {to / name}")


@gaps.command("dismiss")
def dismiss_gap(key: Key, by: By = None, store: Store = DEFAULT_STORE) -> None:
    """Leave a gap out of the list: nobody is going to build it."""

    async def work(app: Journeyman) -> Gap:
        gap = await _found(app, key)
        await app.gaps.dismiss(key, by=by or options.user_name())
        return gap

    gap = in_store(store, work)
    screen.say(f"dismissed: {screen.escaped(gap.missing)}")


async def _found(app: Journeyman, key: str) -> Gap:
    gap = await app.gaps.get(key)
    if gap is None:
        raise WrongUsageError(f"there is no gap {key!r}; 'journeyman gaps list --all' shows their ids")
    return gap


@gaps.command("detect")
def detect_gap(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What somebody might ask for, in words.")],
    library: Library = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Say what is missing for a task, and keep that. No model is asked, and nothing is carried out."""
    text, tools = task_text(task), load_library(library)
    report = in_store(store, lambda app: app.gaps.detect(text), library=tools, create=True)
    if as_json:
        return screen.print_json(None if report is None else report.model_dump(mode="json"))
    if report is None:
        return screen.say(f"nothing seems to be missing among {screen.counted(len(tools), 'tool')}")
    for missing in report.missing_tools:
        screen.say(Text(f"missing: {screen.escaped(missing)}", style="bold"))
    checked = report.existing_tools_checked
    if checked:
        rest = f" and {len(checked) - NEAREST} more" if len(checked) > NEAREST else ""
        screen.say(f"looked at, nearest first: {', '.join(checked[:NEAREST])}{rest}")
    return screen.note(f"kept: {command(store, 'gaps list')}")

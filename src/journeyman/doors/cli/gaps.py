"""``journeyman gaps``: what no tool can do, looked up now or noticed before."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import command, in_store, load_library
from journeyman.doors.cli.options import DEFAULT_STORE, Json, Library, Limit, PrincipalName, Store, task_text, whose

NEAREST = 5
"""How many of the tools that were looked at a person is told."""
TASK_WIDTH = 120

gaps = typer.Typer(no_args_is_help=True)


@gaps.command("list")
def list_gaps(
    principal: PrincipalName = None, limit: Limit = 50, store: Store = DEFAULT_STORE, as_json: Json = False
) -> None:
    """What was missing so far, newest first."""
    rows = in_store(store, lambda app: app.gaps.list(principal_id=whose(principal), limit=limit))
    if as_json:
        screen.print_json(screen.dumped(rows))
    elif not rows:
        screen.note("nothing was missing so far")
    else:
        table = screen.listing("noticed", "missing", "asked for")
        for row in rows:
            missing = screen.escaped("\n".join(row.report.missing_tools))
            task = screen.shortened(row.report.attempted_task, TASK_WIDTH)
            table.add_row(screen.local_time(row.created_at), missing, task)
        screen.console().print(table)


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

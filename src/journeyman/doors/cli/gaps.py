"""``journeyman gaps`` and ``journeyman intent``: what no tool can do, by demand; and what a request asks for."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from journeyman.app.assembly import model_named
from journeyman.app.finding import add_configured, understand
from journeyman.app.operations import gaps as operations
from journeyman.core.gaps import NEAREST, Gap, ToolGapReport
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.configured import file_settings
from journeyman.doors.cli.loading import listed_library
from journeyman.doors.cli.operated import Call, Listing, Typed, operated
from journeyman.doors.cli.options import By, Json, Library, WrongUsageError, task_text

TASK_WIDTH = 120

gaps = typer.Typer(no_args_is_help=True)


operated(gaps, "gaps list", operations.list_gaps, typed={"dismissed": Typed("--all")})(
    Listing(
        "gaps",
        {
            "gap": "key",
            "asked": lambda gap: screen.counted(gap.times, "time") + (f" by {gap.people}" if gap.people > 1 else ""),
            "last": lambda gap: screen.local_time(gap.last_at),
            "missing": lambda gap: gap.missing + (" (dismissed)" if gap.dismissed_at is not None else ""),
            "for example": lambda gap: screen.shortened(gap.report.attempted_task, TASK_WIDTH),
        },
        empty="nothing was missing so far",
    )
)


@operated(gaps, "gaps show", operations.show_gap)
def show_gap(gap: Gap, call: Call) -> None:
    """How often it was asked for, in which words, and which tools come nearest."""
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
    screen.note(f"begin with it: {call.command('gaps export', gap.key)}")


@operated(gaps, "gaps export", operations.export_gap, typed={"form": Typed("--as")})
def write_files(
    exported: operations.GapExport,
    _: Call,
    to: Annotated[
        Path | None, typer.Option("--to", help="A folder for the files. Without one they are printed.")
    ] = None,
) -> None:
    """A tool in gram notation, or in Python with a test that runs."""
    files = {file.name: file.text for file in exported.files}
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


@operated(gaps, "gaps dismiss", operations.dismiss_gap, by=By)
def say_dismissed(gap: Gap, _: Call) -> None:
    """Nobody is going to build it."""
    screen.say(f"dismissed: {screen.escaped(gap.missing)}")


TASK = Typed(metavar="TASK", help="What somebody might ask for, in words.", read=task_text)


@operated(gaps, "gaps detect", operations.detect_gap, typed={"text": TASK}, library=Library, create=True)
def say_missing(report: ToolGapReport | None, call: Call) -> None:
    if report is None:
        return screen.say(f"nothing seems to be missing among {screen.counted(len(call.tools or ()), 'tool')}")
    for missing in report.missing_tools:
        screen.say(Text(f"missing: {screen.escaped(missing)}", style="bold"))
    checked = report.existing_tools_checked
    if checked:
        rest = f" and {len(checked) - NEAREST} more" if len(checked) > NEAREST else ""
        screen.say(f"looked at, nearest first: {', '.join(checked[:NEAREST])}{rest}")
    return screen.note(f"kept: {call.command('gaps list')}")


def intent(
    request: Annotated[str, typer.Argument(metavar="REQUEST", help="What somebody might ask for, in words.")],
    library: Library = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="A model that is asked as well. Without it, none is.")
    ] = None,
    permission: options.Permissions = None,
    as_json: Json = False,
) -> None:
    """Say what a request asks for: its type, the tools that serve it, and the values it gives them. Runs nothing."""
    text, tools = task_text(request), listed_library(library)
    if (loaded := file_settings()) is not None:
        add_configured(loaded.settings)
    asked = None if model is None else model_named(model)
    meant = asyncio.run(understand(text, tools, principal=options.user_with(permission), model=asked))
    if as_json:
        return screen.print_json(None if meant is None else meant.model_dump(mode="json"))
    if meant is None:
        return screen.say("nothing is asked for here that is of a known type")
    screen.say(Text(f"{meant.intent_type} ({meant.confidence:.0%} sure)", style="bold"))
    screen.say(f"tools: {', '.join(meant.suggested_tools) or 'none'}")
    if meant.fallback_options:
        screen.say(f"else: {', '.join(meant.fallback_options)}")
    for name, value in meant.parameters.items():
        screen.say(f"{name}: {screen.escaped(json.dumps(value, ensure_ascii=False))}")
    if meant.context_requirements:
        screen.say(f"not said: {', '.join(meant.context_requirements)}")
    return None

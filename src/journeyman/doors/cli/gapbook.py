"""``journeyman gaps``: what no tool can do, looked up now or noticed before."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rich.text import Text

from journeyman.core.gaps import GapRow, ToolGapReport
from journeyman.doors.cli import screen
from journeyman.doors.cli.faults import complain
from journeyman.doors.cli.loading import load_library
from journeyman.doors.cli.storage import command, desk

NEAREST = 5
"""How many of the tools that were looked at a person is told."""
TASK_WIDTH = 120


def list_gaps(*, url: str, limit: int, as_json: bool) -> None:
    async def found() -> Sequence[GapRow]:
        async with desk(url) as app:
            return await app.gaps.list(limit=limit)

    rows = asyncio.run(found())
    if as_json:
        return screen.print_json([row.model_dump(mode="json") for row in rows])
    if not rows:
        complain("nothing was missing so far")
        return None
    table = screen.listing("noticed", "missing", "asked for")
    for row in rows:
        missing = screen.visible("\n".join(row.report.missing_tools))
        table.add_row(screen.moment(row.created_at), missing, screen.shortened(row.report.attempted_task, TASK_WIDTH))
    screen.console().print(table)
    return None


def detect_gap(task: str, *, url: str, library: str | None, as_json: bool) -> None:
    tools = load_library(library)

    async def found() -> ToolGapReport | None:
        async with desk(url, library=tools, make=True) as app:
            return await app.gaps.detect(task)

    report = asyncio.run(found())
    if as_json:
        return screen.print_json(None if report is None else report.model_dump(mode="json"))
    console = screen.console()
    if report is None:
        screen.show(console, f"nothing seems to be missing among {screen.counted(len(tools), 'tool')}")
        return None
    for missing in report.missing_tools:
        screen.show(console, Text(f"missing: {screen.visible(missing)}", style="bold"))
    checked = report.existing_tools_checked
    if checked:
        rest = f" and {len(checked) - NEAREST} more" if len(checked) > NEAREST else ""
        screen.show(console, f"looked at, nearest first: {', '.join(checked[:NEAREST])}{rest}")
    complain(f"kept: {command(url, 'gaps list')}")
    return None

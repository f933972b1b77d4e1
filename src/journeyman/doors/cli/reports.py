"""How commands print and write the reports of experiments and replays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from journeyman.core.data import safe_json
from journeyman.doors.cli import screen
from journeyman.doors.cli.options import ExitCode, WrongUsageError

if TYPE_CHECKING:
    from journeyman.app import Report
    from journeyman.replay.report import ReplayReport

Html = Annotated[Path | None, typer.Option(metavar="PATH", help="Also write the report with plots, as one page.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the report as Markdown on stdout, and nothing else.")]


def check_output(html: Path | None, *, markdown: bool, as_json: bool) -> None:
    if markdown and as_json:
        raise WrongUsageError("--markdown and --json both want stdout for themselves; give one of them")
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise WrongUsageError(f"--html {str(html)!r} cannot be written: give a file in a folder that is there")


R = TypeVar("R", "Report", "ReplayReport")


def present(report: R, printed: Callable[[R], None], *, html: Path | None, markdown: bool, as_json: bool) -> ExitCode:
    """Print a report as it is wanted, and write its page."""
    check_output(html, markdown=markdown, as_json=as_json)
    if as_json:
        screen.write(safe_json(report.to_json()))
    elif markdown:
        screen.write(report.to_markdown(), end="")
    else:
        printed(report)
    if html is None:
        return ExitCode.DONE
    try:
        report.to_html(html)
    except OSError as error:
        screen.note(f"the page could not be written: {error}")
        return ExitCode.FAILED
    screen.note(f"wrote {html}")
    return ExitCode.DONE

"""``journeyman experiment``: runs the experiment of a file, and shows what experiments found."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from rich import progress as bars
from rich.text import Text

from journeyman.app.experiments import Progress, Report, keep, kept
from journeyman.core.errors import ConfigurationError, StoreError
from journeyman.core.experiments import ExperimentRow
from journeyman.doors.cli import screen
from journeyman.doors.cli.experiment_files import load_experiment
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.storage import command, desk

MOST_LINES = 20
"""How many lines of progress a log gets."""
LEAST_P = 0.0001
"""What is less likely is shown as less than this."""


def run_experiment(file: Path, *, url: str, html: Path | None, markdown: bool, as_json: bool) -> ExitCode:
    _can_be_written(html)
    experiment = load_experiment(file)

    async def whole() -> tuple[Report, StoreError | None]:
        # Opened before anything runs: a store that cannot be had is better known at once.
        async with desk(url, make=True) as app:
            with _told() as tell:
                report = await experiment.run(tell)
            try:
                await keep(app.store.experiments, report, now=app.clock.time())
            except StoreError as error:
                return report, error
        return report, None

    # What the file's own code prints is not part of our answer.
    with redirect_stdout(sys.stderr):
        report, lost = asyncio.run(whole())
    code = _present(report, html=html, markdown=markdown, as_json=as_json)
    if lost is not None:
        complain(f"the report could not be kept: {lost}")
        return ExitCode.FAILED
    complain(f"kept: {command(url, f'experiment show {report.experiment_id}')}")
    return code


def list_experiments(*, url: str, limit: int, as_json: bool) -> None:
    async def found() -> Sequence[ExperimentRow]:
        async with desk(url) as app:
            return await app.store.experiments.list(limit=limit)

    rows = asyncio.run(found())
    if as_json:
        return screen.print_json([row.model_dump(mode="json") for row in rows])
    if not rows:
        complain("no experiments were run")
        return None
    table = screen.listing("experiment", "run", "winner", "name")
    for row in rows:
        table.add_row(
            row.id, screen.moment(row.created_at), screen.visible(row.winner or "–"), screen.visible(row.name)
        )
    screen.console().print(table)
    return None


def show_experiment(experiment_id: str, *, url: str, html: Path | None, markdown: bool, as_json: bool) -> ExitCode:
    _can_be_written(html)

    async def found() -> Report | None:
        async with desk(url) as app:
            return await kept(app.store.experiments, experiment_id)

    report = asyncio.run(found())
    if report is None:
        raise ConfigurationError(
            f"there is no experiment {experiment_id!r}; 'journeyman experiment list' shows what there is"
        )
    return _present(report, html=html, markdown=markdown, as_json=as_json)


def _can_be_written(html: Path | None) -> None:
    if html is not None and (html.is_dir() or not html.parent.is_dir()):
        raise WrongUsageError(f"--html {str(html)!r} cannot be written: give a file in a folder that is there")


# --- progress


@contextmanager
def _told() -> Iterator[Callable[[Progress], None]]:
    """A bar for a person, some lines for a log; on stderr."""
    console = screen.console(stderr=True)
    failed = 0

    def so_far(item: Progress) -> str:
        nonlocal failed
        failed += item.observation.status != "completed"
        return f"{item.done} of {screen.counted(item.total, 'run')}" + (f", {failed} failed" if failed else "")

    def line(item: Progress) -> None:
        text, step = so_far(item), -(-item.total // MOST_LINES)
        if item.done % step == 0 or item.done == item.total:
            complain(text)

    if not console.is_terminal:
        yield line
        return
    columns = (
        bars.SpinnerColumn(),
        bars.BarColumn(),
        bars.TextColumn("{task.description}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as bar:
        shown = bar.add_task("starting", total=None)
        yield lambda item: bar.update(shown, completed=item.done, total=item.total, description=so_far(item))


# --- reports


def _present(report: Report, *, html: Path | None, markdown: bool, as_json: bool) -> ExitCode:
    if as_json:
        print(report.to_json())
    elif markdown:
        print(report.to_markdown(), end="")
    else:
        _print(report)
    if html is None:
        return ExitCode.DONE
    try:
        report.to_html(html)
    except OSError as error:
        complain(f"the page could not be written: {error}")
        return ExitCode.FAILED
    complain(f"wrote {html}")
    return ExitCode.DONE


def _print(report: Report) -> None:
    """Arms side by side: a terminal is narrower than their figures in a row."""
    console = screen.console()
    screen.show(console, screen.visible(report.name))
    screen.show(console, Text(screen.visible(report.verdict), style="bold"))
    table = screen.listing("", *(screen.visible(arm.arm) for arm in report.arms))
    table.add_row("runs", *(str(arm.observations) for arm in report.arms))
    table.add_row("failed", *(str(arm.failures) for arm in report.arms))
    for metric in report.arms[0].figures:
        figures = [arm.figures[metric] for arm in report.arms]
        table.add_row(metric, *(f"{item.mean:.3g} ({item.low:.3g}–{item.high:.3g})" for item in figures))
    console.print(table)
    for item in report.comparisons:
        pair = screen.visible(f"{item.b} against {item.a}")
        interval = f"{item.difference:+.3f} ({item.low:+.3f} … {item.high:+.3f})"
        p = f"p = {item.p_corrected:.4f}" if item.p_corrected >= LEAST_P else f"p < {LEAST_P}"
        screen.show(console, f"{pair}: score {interval}, {p}")
    looks = f"; look {report.look} of {report.looks}" if report.looks > 1 else ""
    kind = "paired by input" if report.paired else "each unit in one arm"
    screen.show(console, f"intervals are 95 %; {kind}; a difference counts below p = {report.alpha:.4f}{looks}")
    broken = next((item for item in report.observations if item.error is not None), None)
    if broken is not None:
        first = screen.shortened(f"{broken.arm}, {broken.unit}: {broken.error}", screen.LOG_WIDTH)
        screen.show(console, f"the first of the failed runs: {first}")

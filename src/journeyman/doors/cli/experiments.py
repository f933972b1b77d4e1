"""``journeyman experiment``: runs the experiment of a file, and shows what experiments found."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.text import Text

from journeyman.app import Experiment, Progress, Report
from journeyman.app.desk import Desk
from journeyman.app.operations import experiments as operations
from journeyman.core.errors import StoreError
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import at_desk, command, imported
from journeyman.doors.cli.operated import Call, Html, Listing, Markdown, check_output, operated, present
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, Json, Store, WrongUsageError
from journeyman.doors.cli.printed import printing_to_stderr
from journeyman.doors.cli.screen import progress_shown

NAME = "experiment"
EXAMPLE = f"{NAME} = Experiment(agent, arms, inputs, score=..., runner=run)"
LEAST_P = 0.0001
"""What is less likely is shown as less than this."""

experiment = typer.Typer(no_args_is_help=True)


@experiment.command("run")
def run_experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A Python file that says experiment = Experiment(...).")],
    html: Html = None,
    markdown: Markdown = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Run the experiment of a file and keep its report. Exit code 0 with or without a winner."""
    check_output(html, markdown=markdown, as_json=as_json)
    loaded = _load(file)

    async def whole(desk: Desk) -> tuple[Report, StoreError | None]:
        # The store was opened before anything runs: one that cannot be had is better known at once.
        failed = 0
        with progress_shown() as show:

            def one(item: Progress) -> None:
                nonlocal failed
                failed += item.observation.status != "completed"
                ill = f", {failed} failed" if failed else ""
                show(item.done, item.total, f"{item.done} of {screen.counted(item.total, 'run')}{ill}")

            report = await loaded.run(one)
        try:
            await operations.keep_report(desk, report)
        except StoreError as error:
            return report, error
        return report, None

    # What the file's own code prints is not part of our answer.
    with printing_to_stderr():
        report, lost = at_desk(store, whole, create=True)
    code = present(report, _print, html=html, markdown=markdown, as_json=as_json)
    if lost is not None:
        screen.note(f"the report could not be kept: {lost}")
        raise typer.Exit(ExitCode.FAILED)
    screen.note(f"kept: {command(store, 'experiment show', report.experiment_id)}")
    raise typer.Exit(code)


operated(experiment, "experiment list", operations.list_experiments)(
    Listing(
        "experiments",
        {
            "experiment": "id",
            "run": lambda row: screen.local_time(row.created_at),
            "winner": lambda row: row.winner or "–",
            "name": "name",
        },
        empty="no experiments were run",
    )
)


@operated(experiment, "experiment show", operations.show_experiment)
def show_report(
    held: operations.ExperimentDetails, _: Call, html: Html = None, markdown: Markdown = False, as_json: Json = False
) -> None:
    report = Report.model_validate(held.report)
    raise typer.Exit(present(report, _print, html=html, markdown=markdown, as_json=as_json))


def _load(file: Path) -> Experiment:
    """The ``experiment`` of a Python file."""
    if file.suffix != ".py" or not file.is_file():
        what = "is no Python file" if file.exists() else "is not there"
        raise WrongUsageError(f"FILE {str(file)!r} {what}; give a Python file with a line: {EXAMPLE}")
    module = imported(str(file), ModuleType, option="FILE")
    named = vars(module).get(NAME)
    if isinstance(named, Experiment):
        return named
    if named is not None:
        raise WrongUsageError(f"{NAME!r} in {str(file)!r} is a {type(named).__name__}; write: {EXAMPLE}")
    others = [name for name, value in vars(module).items() if isinstance(value, Experiment)]
    hint = f"; rename {others[0]!r}" if others else f"; write: {EXAMPLE}"
    raise WrongUsageError(f"{str(file)!r} defines no {NAME!r}{hint}")


# --- reports


def _print(report: Report) -> None:
    """Arms side by side: a terminal is narrower than their figures in a row."""
    screen.say(screen.escaped(report.name))
    screen.say(Text(screen.escaped(report.verdict), style="bold"))
    table = screen.listing("", *(screen.escaped(arm.arm) for arm in report.arms))
    table.add_row("runs", *(str(arm.observations) for arm in report.arms))
    table.add_row("failed", *(str(arm.failures) for arm in report.arms))
    for metric in report.metrics:
        figures = [arm.figures[metric] for arm in report.arms]
        table.add_row(metric, *(f"{item.mean:.3g} ({item.low:.3g}–{item.high:.3g})" for item in figures))
    screen.console().print(table)
    for item in report.comparisons:
        pair = screen.escaped(f"{item.b} against {item.a}")
        interval = f"{item.difference:+.3f} ({item.low:+.3f} … {item.high:+.3f})"
        p = f"p = {item.p_corrected:.4f}" if item.p_corrected >= LEAST_P else f"p < {LEAST_P}"
        screen.say(f"{pair}: score {interval}, {p}")
    looks = f"; look {report.look} of {report.looks}" if report.looks > 1 else ""
    kind = "paired by input" if report.paired else "each unit in one arm"
    screen.say(f"intervals are 95 %; {kind}; a difference counts below p = {report.alpha:.4f}{looks}")
    for note in report.notes:
        screen.say(screen.escaped(note))

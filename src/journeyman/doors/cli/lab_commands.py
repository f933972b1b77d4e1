"""The options of ``journeyman experiment`` and ``journeyman gaps``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from journeyman.doors.cli.options import DEFAULT_STORE, Json, Library, Limit, Store, WrongUsageError

experiment = typer.Typer(help="Which tools, model or playbook serve an agent better.", no_args_is_help=True)
gaps = typer.Typer(help="What people asked for and no tool could do.", no_args_is_help=True)

Html = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Also write the report with plots, as one page.", show_default=False),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the report as Markdown on stdout, and nothing else.")]


@experiment.command("run")
def experiment_run(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A Python file that says experiment = Experiment(...).", show_default=False
        ),
    ],
    html: Html = None,
    markdown: Markdown = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Run the experiment of a file and keep its report. Exit code 0 with or without a winner."""
    _one_form(markdown=markdown, as_json=as_json)
    from journeyman.doors.cli.experimenting import run_experiment

    raise typer.Exit(run_experiment(file, url=store, html=html, markdown=markdown, as_json=as_json))


@experiment.command("list")
def experiment_list(limit: Limit = 50, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Experiments that were run, newest first."""
    from journeyman.doors.cli.experimenting import list_experiments

    list_experiments(url=store, limit=limit, as_json=as_json)


@experiment.command("show")
def experiment_show(
    experiment_id: Annotated[str, typer.Argument(metavar="ID", help="The experiment's id.", show_default=False)],
    html: Html = None,
    markdown: Markdown = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """The report of one experiment."""
    _one_form(markdown=markdown, as_json=as_json)
    from journeyman.doors.cli.experimenting import show_experiment

    raise typer.Exit(show_experiment(experiment_id, url=store, html=html, markdown=markdown, as_json=as_json))


def _one_form(*, markdown: bool, as_json: bool) -> None:
    if markdown and as_json:
        raise WrongUsageError("--markdown and --json both want stdout for themselves; give one of them")


@gaps.command("list")
def gaps_list(limit: Limit = 50, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """What was missing so far, newest first."""
    from journeyman.doors.cli.gapbook import list_gaps

    list_gaps(url=store, limit=limit, as_json=as_json)


@gaps.command("detect")
def gaps_detect(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What somebody might ask for, in words.")],
    library: Library = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Say what is missing for a task, and keep that. No model is asked, and nothing is carried out."""
    if not task.strip():
        raise WrongUsageError(f"a task must say what to do, {task!r} is blank")
    from journeyman.doors.cli.gapbook import detect_gap

    detect_gap(task, url=store, library=library, as_json=as_json)

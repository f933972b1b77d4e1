"""The options of ``journeyman runs`` and ``journeyman worker``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from journeyman.doors.cli.options import DEFAULT_STORE, By, Json, Library, Limit, Log, Model, Store, Yes, start_logs

runs = typer.Typer(help="Runs kept in a store: how they stand, what a person does about them.", no_args_is_help=True)

RunId = Annotated[str, typer.Argument(metavar="ID", help="The run's id.", show_default=False)]


@runs.command("list")
def runs_list(
    status: Annotated[
        list[str] | None, typer.Option(metavar="STATUS", help="Only these, e.g. awaiting_approval. May be repeated.")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of one session.")] = None,
    limit: Limit = 50,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """All runs, newest first."""
    from journeyman.doors.cli.runbook import list_runs

    list_runs(url=store, statuses=status or [], session=session, limit=limit, as_json=as_json)


@runs.command("show")
def runs_show(
    run_id: RunId,
    events: Annotated[bool, typer.Option("--events", help="The facts of its journal instead.")] = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """How one run stands, what it did, what it waits for, and what to type about that."""
    from journeyman.doors.cli.runbook import show_run

    show_run(run_id, url=store, events=events, as_json=as_json)


@runs.command("resume")
def runs_resume(
    run_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One run.", show_default=False)] = None,
    library: Library = None,
    model: Model = None,
    yes: Yes = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
    log_level: Log = None,
) -> None:
    """Take up one run, or all that are unfinished and that nobody works on, and follow to the end or to a person."""
    from journeyman.doors.cli.lasting import resume

    start_logs(log_level)
    code = resume(run_id, url=store, library=library, model=model, yes=yes, as_json=as_json, live=log_level is None)
    raise typer.Exit(code)


@runs.command("resolve")
def runs_resolve(
    run_id: RunId,
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="The call's id, from 'runs show'.")],
    action: Annotated[
        str,
        typer.Argument(
            metavar="rerun|done|skip", help="Run it again, take it as done, or leave it out.", show_default=False
        ),
    ],
    result: Annotated[str | None, typer.Option(metavar="JSON", help="What a call that is done has returned.")] = None,
    by: By = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Settle a call that was under way when its process died, so that nobody knows whether it happened."""
    from journeyman.doors.cli.runbook import resolve_call

    resolve_call(run_id, call_id, action, url=store, result=result, by=by)


@runs.command("cancel")
def runs_cancel(run_id: RunId, store: Store = DEFAULT_STORE) -> None:
    """End a run, wherever it is worked on. Exit code 1 when it has ended already."""
    from journeyman.doors.cli.runbook import cancel_run

    raise typer.Exit(cancel_run(run_id, url=store))


@runs.command("export")
def runs_export(
    run_id: RunId,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Without it, to stdout.")] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """The whole run as JSON: what was asked, every fact, what came out."""
    from journeyman.doors.cli.runbook import export_run

    export_run(run_id, url=store, output=output)


@runs.command("purge")
def runs_purge(
    older_than: Annotated[str, typer.Option(metavar="SPAN", help="How long ago a run must have ended: 7d, 12h…")],
    store: Store = DEFAULT_STORE,
) -> None:
    """Forget runs that ended long ago, their facts and their approvals."""
    from journeyman.doors.cli.runbook import purge_runs

    purge_runs(older_than, url=store)


def worker(
    library: Library = None,
    model: Model = None,
    concurrency: Annotated[int, typer.Option(min=1, help="How many runs to work on at once.")] = 16,
    lease: Annotated[
        float,
        typer.Option(min=1, metavar="SECONDS", help="After how long a silent worker is replaced."),
    ] = 30.0,
    store: Store = DEFAULT_STORE,
    log_level: Log = None,
) -> None:
    """Work on the runs of a PostgreSQL store, beside other workers, until stopped; what is under way is handed over."""
    from journeyman.doors.cli.upkeep import run_worker

    start_logs(log_level)
    run_worker(url=store, library=library, model=model, concurrency=concurrency, lease=lease)

"""The commands and their options. What a command does is in its own module, imported when the command is called."""

from __future__ import annotations

from typing import Annotated

import typer

from journeyman.doors.cli.options import (
    DEFAULT_STORE,
    Json,
    Library,
    Log,
    Model,
    Permissions,
    RunOptions,
    Store,
    WrongUsageError,
    Yes,
    default_store,
    json_object,
    start_logs,
)
from journeyman.doors.cli.run_commands import runs, worker
from journeyman.doors.cli.store_commands import approvals, audit, db

commands = typer.Typer(
    name="journeyman",
    help="Tool-calling agents that people can trust. Start with: journeyman demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
tools = typer.Typer(help="What tools there are, what they take, and one call of one of them.", no_args_is_help=True)
commands.add_typer(tools, name="tools")
commands.add_typer(runs, name="runs")
commands.add_typer(approvals, name="approvals")
commands.add_typer(audit, name="audit")
commands.add_typer(db, name="db")
commands.command()(worker)

ToolName = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"journeyman {version('journeyman')}")
        raise typer.Exit


@commands.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Only here for --version."""


@commands.command()
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do, in words.")],
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="An Agent. Without --library it finds its tools in its own module. Without --agent, an assistant "
            "with the library's tools.",
            show_default=False,
        ),
    ] = None,
    library: Library = None,
    model: Model = None,
    permission: Permissions = None,
    yes: Yes = False,
    durable: Annotated[
        bool,
        typer.Option(
            "--durable",
            help="Keep the run in the store: it survives this process, and a risky call waits until somebody decides.",
        ),
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where to keep it; implies --durable.", show_default=False),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Go on with a stored conversation; implies --durable.", show_default=False),
    ] = None,
    as_json: Json = False,
    log_level: Log = None,
) -> None:
    """Carry out a task: its trace on stderr, its answer on stdout.

    Exit codes: 0 done, 1 failed, 2 wrong usage, 3 waiting for a person.
    """
    if not task.strip():
        raise WrongUsageError(f"a task must say what to do, {task!r} is blank")
    start_logs(log_level)
    url = store or (default_store() if durable or session else None)
    given: RunOptions = {
        "agent": agent,
        "library": library,
        "model": model,
        "permissions": permission or [],
        "yes": yes,
        "as_json": as_json,
        "live": log_level is None,
    }
    if url is None:
        from journeyman.doors.cli.running import run_task

        raise typer.Exit(run_task(task, **given))
    from journeyman.doors.cli.lasting import run_durably

    raise typer.Exit(run_durably(task, url=url, session=session, **given))


@commands.command()
def demo(yes: Yes = False, log_level: Log = None) -> None:
    """A guided tour: real tools, real governance, a scripted model. No key, no network, a few seconds."""
    from journeyman.doors.cli.demo import play

    start_logs(log_level)
    raise typer.Exit(play(yes=yes, live=log_level is None))


@commands.command()
def doctor(store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Say what was found here, and what to do about what is missing."""
    from journeyman.doors.cli.doctor import doctor as examine

    examine(url=store, as_json=as_json)


@tools.command("list")
def tools_list(library: Library = None, as_json: Json = False) -> None:
    """All tools, with their risk."""
    from journeyman.doors.cli.loading import load_library
    from journeyman.doors.cli.toolbox import list_tools

    list_tools(load_library(library), as_json=as_json)


@tools.command("show")
def tools_show(name: ToolName, library: Library = None, as_json: Json = False) -> None:
    """Everything about one tool."""
    from journeyman.doors.cli.loading import load_library
    from journeyman.doors.cli.toolbox import show_tool

    show_tool(load_library(library), name, as_json=as_json)


@tools.command("search")
def tools_search(
    text: Annotated[str, typer.Argument(help="Words that tell what the tool should do.")],
    library: Library = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to show at most.")] = 5,
    as_json: Json = False,
) -> None:
    """Tools whose name, description or parameters share words with a text, best first."""
    from journeyman.doors.cli.loading import load_library
    from journeyman.doors.cli.toolbox import search_tools

    search_tools(load_library(library), text, limit=limit, as_json=as_json)


@tools.command("lint")
def tools_lint(library: Library = None, as_json: Json = False) -> None:
    """What a model may stumble over in the tools' descriptions. Advice: the exit code is 0."""
    from journeyman.doors.cli.loading import load_library
    from journeyman.doors.cli.toolbox import lint_library

    lint_library(load_library(library), as_json=as_json)


@tools.command("call")
def tools_call(
    name: ToolName,
    args: Annotated[str, typer.Option(metavar="JSON", help="The arguments, as a JSON object.")] = "{}",
    library: Library = None,
    permission: Permissions = None,
    yes: Yes = False,
    as_json: Json = False,
    log_level: Log = None,
) -> None:
    """One call, governed like any other, and its record. Exit code 1 when it did not succeed."""
    from journeyman.doors.cli.loading import load_library
    from journeyman.doors.cli.toolbox import call_tool

    start_logs(log_level)
    code = call_tool(
        load_library(library),
        name,
        json_object(args, option="--args"),
        permissions=permission or [],
        yes=yes,
        as_json=as_json,
        live=log_level is None,
    )
    raise typer.Exit(code)

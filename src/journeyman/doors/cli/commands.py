"""The commands and their options. What a command does is in its own module, imported when the command is called."""

from __future__ import annotations

from typing import Annotated

import typer

from journeyman.doors.cli.lab_commands import experiment, gaps
from journeyman.doors.cli.options import (
    DEFAULT_STORE,
    AgentName,
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
from journeyman.doors.cli.serve_commands import serve
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
commands.add_typer(experiment, name="experiment")
commands.add_typer(gaps, name="gaps")
commands.command()(worker)
commands.command()(serve)

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
    agent: AgentName = None,
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

        raise typer.Exit(run_task(task, url=default_store(), **given))
    from journeyman.doors.cli.lasting import run_durably

    raise typer.Exit(run_durably(task, url=url, session=session, **given))


@commands.command()
def chat(
    agent: AgentName = None,
    library: Library = None,
    model: Model = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Go on with a stored conversation. Without it, a new one.", show_default=False
        ),
    ] = None,
    permission: Permissions = None,
    yes: Yes = False,
    store: Store = DEFAULT_STORE,
    log_level: Log = None,
) -> None:
    """Talk in the terminal; risky calls are asked about there, Ctrl-C cancels. Through a pipe, a line is a message."""
    from journeyman.doors.cli.chatting import chat as hold

    start_logs(log_level)
    code = hold(
        url=store,
        session=session,
        agent=agent,
        library=library,
        model=model,
        permissions=permission or [],
        yes=yes,
        live=log_level is None,
    )
    raise typer.Exit(code)


@commands.command()
def demo(yes: Yes = False, log_level: Log = None) -> None:
    """A guided tour on the embedded model, over real tasks, in a store of its own. No key, no network, a minute."""
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


@tools.command("export")
def tools_export(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which tools. Without a name, all of them.")
    ] = None,
    library: Library = None,
    gram: Annotated[bool, typer.Option("--gram", help="As a gram document, which is the default.")] = False,
    as_json: Json = False,
) -> None:
    """Tools as a document that agents in gram files can be written with."""
    from journeyman.doors.cli.loading import load_library
    from journeyman.doors.cli.options import WrongUsageError
    from journeyman.doors.cli.toolbox import export_tools

    if gram and as_json:
        raise WrongUsageError("--gram and --json exclude each other; choose one")
    export_tools(load_library(library), names or [], as_json=as_json)


@tools.command("call")
def tools_call(
    name: ToolName,
    args: Annotated[str, typer.Option(metavar="JSON", help="The arguments, as a JSON object.")] = "{}",
    library: Library = None,
    permission: Permissions = None,
    yes: Yes = False,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
    log_level: Log = None,
) -> None:
    """One call, governed like any other, and its record. Exit code 1 when it did not succeed."""
    from journeyman.doors.cli.toolbox import call_tool

    start_logs(log_level)
    code = call_tool(
        name,
        json_object(args, option="--args"),
        library=library,
        url=store,
        permissions=permission or [],
        yes=yes,
        as_json=as_json,
        live=log_level is None,
    )
    raise typer.Exit(code)

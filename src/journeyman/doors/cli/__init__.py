"""The command line. ``main`` is the program; a command's declaration and its work are in the module of its name.

To add a command: write ``doors/cli/NAME.py`` with a function of that name (one command, its docstring is its help) or a
``typer.Typer`` of that name (a group of commands), add one line to ``COMMANDS`` below and its usage to
``docs/command-line.md``. Modules are imported when their command is called, so ``--help`` loads none of them.

What they share: ``options`` (options, exit codes), ``loading`` (agents, libraries and stores by name), ``screen``
(terminal output and input), ``trace`` (a run as it goes on, its approvals), ``outcome`` (what a run waits for).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from journeyman.doors.cli.people import children_marked
from journeyman.doors.cli.printed import children_escaped
from journeyman.doors.cli.secret import TOKEN_VARIABLE, take_from_environment

INTERRUPTED = 130
"""The exit code of a program that was ended by Ctrl-C."""

COMMANDS = {  # name: (module, help)
    "run": ("run", "Carry out a task: its trace on stderr, its answer on stdout."),
    "chat": ("chat", "Talk in the terminal, or through a pipe, where a line is a message."),
    "demo": ("demo", "A guided tour on the embedded model. No key, no network; it says how long it took."),
    "trust": ("trust", "Confirm agent files beforehand, for programs that cannot be asked."),
    "init": ("init", "Write a configuration file to begin with, a first tool and a test of it."),
    "config": ("config", "The configuration file: is it right, what holds, where it comes from."),
    "doctor": ("doctor", "Say what was found here, and what to do about what is missing."),
    "serve": ("serve", "The service over HTTP: chat, tasks, tools, approvals, and an OpenAI-compatible API under /v1."),
    "worker": ("serve", "Work on the runs of a PostgreSQL store, beside other workers, until stopped."),
    "slack": ("slack", "An assistant in Slack: mentions and direct messages, answered and decided in their threads."),
    "mcp": ("mcp", "Our tools as an MCP server, and MCP servers as tools."),
    "tools": ("tools", "What tools there are, what they take, and one call of one of them."),
    "runs": ("runs", "Runs kept in a store: how they stand, what a person does about them."),
    "approvals": ("approvals", "What waits for a person's decision, and the decisions."),
    "audit": ("store", "Who decided, allowed or was refused what: a log that shows tampering."),
    "db": ("store", "The store's schema. Commands that work on runs bring it up to date."),
    "experiment": ("experiments", "Which tools, model or playbook serve an agent better."),
    "memory": ("memory", "Documents that agents and you remember: kept, imported, found, forgotten."),
    "playbook": ("playbook", "What was learned from runs: list, show, learn, roll back."),
    "intent": ("intent", "What a request asks for, and which tools would serve it. Runs nothing."),
    "gaps": ("gaps", "What people asked for and no tool could do."),
}


class _LazyGroup(TyperGroup):
    """Shows commands from ``COMMANDS``, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        if name not in ("serve", "mcp"):  # which take it themselves
            take_from_environment(TOKEN_VARIABLE)
        return name, load_command(str(name)), rest


def load_command(name: str) -> Any:
    """One command, or group of commands, as the program has it."""
    module, text = COMMANDS[name]
    found = getattr(import_module(f"{__name__}.{module}"), name)
    holder = typer.Typer()
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name, help=text)
    else:
        holder.command(name)(found)
    loaded = get_group(holder).commands[name]
    from journeyman.doors.cli.configured import add_option, forget  # it loads what --help can do without

    forget()
    add_option(loaded, name)
    return loaded


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"journeyman {version('journeyman')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Only here for --version."""


def _program() -> typer.Typer:
    program = typer.Typer(
        name="journeyman",
        help="Tool-calling agents that people can trust. Start with: journeyman demo",
        cls=_LazyGroup,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    program.callback()(_root)
    for name, (_, text) in COMMANDS.items():
        program.command(name, help=text)(lambda: None)
    return program


def main() -> None:
    """The ``journeyman`` program: every error becomes a line or two that say what to do, and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # somebody's own stream
            # A terminal that cannot show a character must not end a run.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # TextIO has no such method, TextIOWrapper has
    if any(name.startswith("OTEL_EXPORTER_OTLP_") for name in os.environ):
        from journeyman.app.observing import configure

        configure()
    try:
        with children_marked(), children_escaped():
            _program()()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("\njourneyman: cancelled", file=sys.stderr)
        raise
    except Exception as error:
        from journeyman.doors.cli.screen import report

        sys.exit(report(error))

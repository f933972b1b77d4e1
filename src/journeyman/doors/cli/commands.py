"""What commands there are, and the program that typer makes of them; the module of the command called is imported."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from journeyman.doors.cli.program import TOKEN_VARIABLE, take_from_environment

PLAIN: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None}
"""Help and wrong usage as plain text, which is the same in a terminal, a pipe and the file of helps."""

COMMANDS = {  # name: (module, help)
    "run": ("run", "Carry out a task: its trace on stderr, its answer on stdout."),
    "chat": ("chat", "Talk in the terminal, or through a pipe, where a line is a message."),
    "demo": ("demo", "A guided tour on the embedded model. No key, no network; it says how long it took."),
    "trust": ("trust", "Confirm files and stores beforehand, for programs that cannot be asked."),
    "init": ("config", "Write a configuration file to begin with, a first tool and a test of it."),
    "config": ("config", "The configuration file: is it right, what holds, where it comes from."),
    "doctor": ("doctor", "Say what was found here, and what to do about what is missing."),
    "completion": ("completion", "What makes bash, zsh or fish complete commands and options."),
    "serve": ("serve", "The service over HTTP: chat, tasks, tools, approvals, and an OpenAI-compatible API under /v1."),
    "worker": ("serve", "Work on the runs of a PostgreSQL store, beside other workers, until stopped."),
    "slack": ("slack", "An assistant in Slack: mentions and direct messages, answered and decided in their threads."),
    "mcp": ("mcp", "Our tools as an MCP server, and MCP servers as tools."),
    "openapi": ("mcp", "APIs as tools, by their OpenAPI documents."),
    "tools": ("tools", "What tools there are, what they take, and one call of one of them."),
    "runs": ("runs", "Runs kept in a store: how they stand, what a person does about them."),
    "flow": ("runs", "Who said what in a run, and what went where."),
    "approvals": ("approvals", "What waits for a person's decision, and the decisions."),
    "audit": ("store", "Who decided, allowed or was refused what: a log that shows tampering."),
    "db": ("store", "The store's schema. Commands that work on runs bring it up to date."),
    "experiment": ("experiments", "Which tools, model or playbook serve an agent better."),
    "memory": ("memory", "Documents that agents and you remember: kept, imported, found, forgotten."),
    "playbook": ("playbook", "What was learned from runs: list, show, learn, roll back."),
    "intent": ("gaps", "What a request asks for, and which tools would serve it. Runs nothing."),
    "gaps": ("gaps", "What people asked for and no tool could do."),
}


class _LazyGroup(TyperGroup):
    """Shows commands from ``COMMANDS``, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, _, rest = super().resolve_command(ctx, args)
        if name not in ("serve", "mcp"):  # which take it themselves
            take_from_environment(TOKEN_VARIABLE)
        from journeyman.doors.cli.configured import refuse_moved

        refuse_moved(str(name), rest)
        return name, load_command(str(name)), rest


def load_command(name: str) -> Any:
    """One command, or group of commands, as the program has it."""
    module, text = COMMANDS[name]
    declared = getattr(import_module(f"{__package__}.{module}"), name)
    holder = typer.Typer(**PLAIN)
    if isinstance(declared, typer.Typer):
        holder.add_typer(declared, name=name, help=text)
    else:
        holder.command(name)(declared)
    loaded = get_group(holder).commands[name]
    for inner in getattr(loaded, "commands", {}).values():
        inner.short_help = (inner.help or "").partition("\n\n")[0]  # else it is cut off at the end of the line
    from journeyman.doors.cli.configured import add_option, forget  # it loads what --version can do without

    forget()
    add_option(loaded)
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


def program() -> typer.Typer:
    """The whole, of which nothing is loaded yet."""
    whole = typer.Typer(
        name="journeyman",
        help="Tool-calling agents that people can trust. Start with: journeyman demo",
        cls=_LazyGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **PLAIN,
    )
    whole.callback()(_root)
    for name, (_, text) in COMMANDS.items():
        whole.command(name, help=text, short_help=text)(lambda: None)
    return whole

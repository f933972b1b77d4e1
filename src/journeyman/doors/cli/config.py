"""``journeyman config``: is the file right, what holds and where it comes from, and its schema for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from journeyman.app import Configuration, SettingsError, found_file, json_schema, read_settings, setting_values
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli import configured, options, screen
from journeyman.doors.cli.options import WrongUsageError

config = typer.Typer(no_args_is_help=True)

Environment = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="As if it were development, staging or production.", show_default=False),
]
StoreUrl = Annotated[str | None, typer.Option(metavar="URL", help="As if the store were this.", show_default=False)]
ModelName = Annotated[str | None, typer.Option(metavar="NAME", help="As if the model were this.", show_default=False)]


@config.command("check")
def check(
    environment: Environment = None,
    store: StoreUrl = None,
    model: ModelName = None,
    as_json: options.Json = False,
) -> None:
    """Whether the file can be used; if not, everything that is wrong, with line and column, and exit code 2.

    Tools are imported; no server is started, no store opened.
    """
    path = _file()
    problems: list[Any] = []
    try:
        if not configured.may_import(path):
            configured.confirm_found(read_settings(path, options=_given(environment, store, model)))
        found = _configuration(path, environment, store, model)
    except SettingsError as error:
        problems = list(error.problems)
    if as_json:
        screen.print_json([{"place": item.place, "key": item.key, "message": item.message} for item in problems])
    elif problems:
        for item in problems:
            screen.write(str(item), stderr=True)
        screen.note(screen.counted(len(problems), "problem"))
    else:
        library, servers = found.library, len(found.settings.mcp)
        told = [screen.counted(len(library), "tool")] + ([screen.counted(servers, "MCP server")] if servers else [])
        screen.say(f"{path}: right; {', '.join(told)}, environment {found.settings.environment}")
    raise typer.Exit(2 if problems else 0)


@config.command("show")
def show(
    environment: Environment = None,
    store: StoreUrl = None,
    model: ModelName = None,
    changed: Annotated[bool, typer.Option("--changed", help="Without what is left at its default.")] = False,
    as_json: options.Json = False,
) -> None:
    """What holds, value by value, and where each comes from: default, file and line, environment or option.

    Secrets are shown as they are written in the file, never as what they stand for.
    """
    try:
        loaded = read_settings(_file(), options=_given(environment, store, model))
    except SettingsError as error:
        raise configured.unusable(error) from None
    found = [item for item in setting_values(loaded) if not changed or item.origin != "default"]
    if as_json:
        screen.print_json([{"key": item.key, "value": item.value, "origin": item.origin} for item in found])
        return
    for item in found:
        value = json.dumps(item.value, ensure_ascii=False)
        style = "dim" if item.origin == "default" else ""
        screen.say(Text.assemble((f"{item.key}: {value}", style), (f"  # {item.origin}", "dim")))


@config.command("schema")
def schema() -> None:
    """The file's JSON Schema, for editors: '# yaml-language-server: $schema=FILE' in the first line uses it."""
    screen.write(json.dumps(json_schema(), indent=2, ensure_ascii=False))


def _file() -> Path:
    try:
        return found_file(configured.chosen_file())
    except ConfigurationError as error:
        raise WrongUsageError(str(error)) from None


def _configuration(path: Path, environment: str | None, store: str | None, model: str | None) -> Configuration:
    with screen.printing_to_stderr():
        return Configuration(path, options=_given(environment, store, model))


def _given(environment: str | None, store: str | None, model: str | None) -> dict[str, str]:
    given = {"environment": environment, "store": store, "model": model}
    return {name: value for name, value in given.items() if value is not None}

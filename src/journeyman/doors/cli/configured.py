"""The configuration file for commands: every command takes --config, and options it was not given come from the file.

What is typed wins over environment variables, these over the file, the file over defaults: the order in which options
are looked up anyway.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli.options import WrongUsageError

if TYPE_CHECKING:
    from journeyman.app import Configuration, Loaded, SqlStore

CONFIG_VARIABLE = "JOURNEYMAN_CONFIG"
WITHOUT = frozenset({"config", "demo", "doctor", "init", "trust"})
"""Commands that no file changes, or that look at it themselves."""


class _Chosen:
    """Which file the command goes by. One command runs in a process."""

    path: Path | None = None
    loaded: Loaded | None = None
    configuration: Configuration | None = None


def forget() -> None:
    """Before a command: whatever an earlier one in this process went by."""
    _Chosen.path = _Chosen.loaded = _Chosen.configuration = None


def add_option(command: Any, name: str) -> None:
    """Give a command, or each of a group, the option --config."""
    for leaf in _leaves(command):
        if not any(parameter.name == "config" for parameter in leaf.params):
            leaf.params.append(_option(uses_file=name not in WITHOUT))


def _leaves(command: Any) -> Iterator[Any]:
    if not hasattr(command, "commands"):
        yield command
        return
    for inner in command.commands.values():
        yield from _leaves(inner)


def _note_file(value: Path | None) -> None:
    _Chosen.path = value


def _take_file(context: typer.Context, value: Path | None) -> None:
    _Chosen.path = value
    if not context.resilient_parsing and (loaded := file_settings()) is not None:
        confirm_found(loaded)
        found = _defaults(loaded, _words(context))
        context.default_map = {**(context.default_map or {}), **found}


def _words(context: typer.Context) -> str:
    """The command without the program's name, which depends on how it was started."""
    names, step = [], context
    while step.parent is not None:
        names.append(str(step.info_name))
        step = step.parent  # type: ignore[assignment]  # a context of click's own
    return " ".join(reversed(names))


_DECLARED: dict[str, Any] = {
    "metavar": "FILE",
    "help": "The configuration file; without it JOURNEYMAN_CONFIG, or journeyman.yaml in this folder.",
    "is_eager": True,  # before options that may come from it
    "expose_value": False,
    "show_default": False,
}
_Noted = Annotated[Path | None, typer.Option("--config", callback=_note_file, **_DECLARED)]
_Taken = Annotated[Path | None, typer.Option("--config", callback=_take_file, **_DECLARED)]


def _noted(config: _Noted = None) -> None: ...


def _taken(config: _Taken = None) -> None: ...


def _option(*, uses_file: bool) -> Any:
    """The option as typer makes it: newer versions bring a click of their own, older ones use click."""
    holder = typer.Typer(add_completion=False)
    holder.command()(_taken if uses_file else _noted)
    return next(parameter for parameter in get_command(holder).params if parameter.name == "config")


def chosen_file() -> Path | None:
    """The file that --config, JOURNEYMAN_CONFIG or the current folder gives."""
    from journeyman.app import find_file

    return find_file(_Chosen.path)


def is_found() -> bool:
    """Whether nobody has named the file: it is there because the current folder has one."""
    return not _Chosen.path and not os.environ.get(CONFIG_VARIABLE)


def confirm_found(loaded: Loaded) -> None:
    """Ask about a file that nobody has named, before anything of it is used; remember one that somebody has.

    Raises WrongUsageError where nobody agrees.
    """
    from journeyman.doors.cli.found_file import confirm_file, remember_named

    if is_found():
        confirm_file(loaded)
    else:
        remember_named(loaded)


def may_import(path: Path) -> bool:
    """Whether what a file names may be imported although the file may be wrong."""
    from journeyman.doors.cli.found_file import is_confirmed

    return not is_found() or is_confirmed(path)


def file_settings() -> Loaded | None:
    """What the file says, where there is one. Raises WrongUsageError with every problem."""
    if _Chosen.loaded is None and (path := chosen_file()) is not None:
        from journeyman.app import SettingsError, read_settings

        try:
            _Chosen.loaded = read_settings(path)
        except SettingsError as error:
            raise unusable(error) from None
    return _Chosen.loaded


def configuration(database: SqlStore | None = None, options: Mapping[str, Any] | None = None) -> Configuration | None:
    """The file at work, with the tools it names; None where there is none. The first to ask says with which store."""
    path = chosen_file()
    if _Chosen.configuration is None and path is not None:
        from journeyman.app import Configuration, SettingsError
        from journeyman.doors.cli import screen

        try:
            with screen.printing_to_stderr():  # what a module prints when it is imported is not part of our answer
                _Chosen.configuration = Configuration(path, database=database, options=options)
        except SettingsError as error:
            raise unusable(error) from None
    return _Chosen.configuration


def unusable(error: ConfigurationError) -> WrongUsageError:
    return WrongUsageError(f"the configuration cannot be used:\n{error}")


def _defaults(loaded: Loaded, command: str) -> dict[str, Any]:
    """What options are where they are not given; those that the file leaves out stay as they are."""
    settings = loaded.settings
    runs, http = settings.runs, settings.doors.http
    found: dict[str, Any] = {"agent": settings.agent, "concurrency": runs.concurrency, "traces": runs.traces}
    found["principal_concurrency"] = runs.principal_concurrency
    if runs.retention is not None:
        found["retention"] = "forever" if runs.retention == float("inf") else f"{runs.retention:.0f}s"
    if command != "run":  # there, naming a store keeps the run in it
        found["store"] = stored(loaded)
    if command == "worker":
        found |= {"lease": runs.lease, "tokens": http.tokens}
    if command == "serve":
        found |= {name: getattr(http, name) for name in type(http).model_fields if name != "origins"}
        found |= {"origin": http.origins or None, "forwarded_allow_ips": ",".join(http.forwarded_allow_ips)}
    if command == "slack":
        slack = settings.doors.slack
        found |= {"http": slack.mode == "http", "host": slack.host, "port": slack.port}
    return {name: value for name, value in found.items() if value is not None}


def stored(loaded: Loaded) -> str | None:
    """The store that the file names, with its secrets; None where it names none."""
    if ("store",) not in loaded.document.positions:
        return None
    return loaded.secret(loaded.settings.store)

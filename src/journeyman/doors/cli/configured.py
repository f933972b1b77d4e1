"""The configuration file for commands: every command takes --config, and options it was not given come from the file.

What is typed wins over environment variables, these over the file, the file over defaults: the order in which options
are looked up anyway.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.printed import printing_to_stderr

if TYPE_CHECKING:
    from journeyman.app import SqlStore
    from journeyman.app.configuration import Configuration
    from journeyman.settings.reading import Loaded
    from journeyman.settings.schema import Settings

SOURCES = logging.getLogger("journeyman.tools")
CONFIG_VARIABLE = "JOURNEYMAN_CONFIG"
WITHOUT = frozenset({"config", "demo", "doctor", "init", "trust"})
"""Commands that no file changes, or that look at it themselves."""


def _under(section: str, names: str) -> dict[str, str]:
    """Options of these names, each with its key in a section of the file."""
    return {f"--{name}": f"{section}.{name.replace('-', '_')}" for name in names.split()}


_HTTP = "tls-cert tls-key root-path forwarded-allow-ips requests-per-minute body-bytes connections"
_RUNS = _under("runs", "principal-concurrency retention traces split") | {"--approval-time": "approvals.expire_after"}
MOVED: dict[str, dict[str, str]] = {
    "serve": {
        **_under("doors.http", f"{_HTTP} connections-per-address"),
        "--origin": "doors.http.origins",
        "--concurrency": "runs.concurrency",
        **_RUNS,
    },
    "worker": {"--lease": "runs.lease", **_RUNS},
    "slack": {
        **_under("doors.slack", "host port people"),
        "--approver": "doors.slack.workspaces.TEAM.approvers",
        "--permission": "doors.slack.permissions",
        "--concurrency": "runs.concurrency",
        "--approval-time": "approvals.expire_after",
        "--api-url": "SLACK_API_URL",
    },
}
"""Options that commands had once, and the key of the configuration file, or the variable, that says the same."""


def refuse_moved(command: str, typed: Sequence[str]) -> None:
    """Say where an option stands that is one no longer. Raises WrongUsageError."""
    moved = MOVED.get(command, {})
    for word in typed:
        option = word.partition("=")[0]
        if (key := moved.get(option)) is not None:
            steps = key.split(".")
            written = ": {".join(steps) + ": …" + "}" * (len(steps) - 1)
            where = f"write {written!r} into journeyman.yaml, or into the file that --config names"
            if key.isupper():
                where = f"set the environment variable {key}"
            raise WrongUsageError(f"{option} is no option of 'journeyman {command}' any more: {where}")


class _Chosen:
    """Which file the command goes by. One command runs in a process."""

    path: Path | None = None
    loaded: Loaded | None = None
    configuration: Configuration | None = None


def forget() -> None:
    """Before a command: whatever an earlier one in this process went by."""
    _Chosen.path = _Chosen.loaded = _Chosen.configuration = None


def add_option(command: Any) -> None:
    """Give a command, or each of a group, the option --config."""
    for leaf in getattr(command, "commands", {"": command}).values():
        if not any(parameter.name == "config" for parameter in leaf.params):
            # As typer makes it: newer versions bring a click of their own, older ones use click.
            holder = typer.Typer(add_completion=False)
            holder.command()(_taken)
            leaf.params += (item for item in get_command(holder).params if item.name == "config")


def _take_file(context: typer.Context, value: Path | None) -> None:
    _Chosen.path = value
    # Without the program's name, which depends on how it was started.
    words = context.command_path.removeprefix(context.find_root().info_name or "").strip()
    if context.resilient_parsing or words.partition(" ")[0] in WITHOUT:
        return
    if (loaded := file_settings()) is not None:
        from journeyman.doors.cli.trust import confirm_file

        confirm_file(loaded, named=not is_found())
        defaults = _defaults(loaded, words)
        context.default_map = {**(context.default_map or {}), **defaults}


_Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The configuration file; without it JOURNEYMAN_CONFIG, or journeyman.yaml in this folder.",
        callback=_take_file,
        is_eager=True,  # before options that may come from it
        expose_value=False,
    ),
]


def _taken(config: _Config = None) -> None: ...


def chosen_file() -> Path | None:
    """The file that --config, JOURNEYMAN_CONFIG or the current folder gives."""
    from journeyman.settings.reading import find_file

    return find_file(_Chosen.path)


def is_found() -> bool:
    """Whether nobody has named the file: it is there because the current folder has one."""
    return not _Chosen.path and not os.environ.get(CONFIG_VARIABLE)


def named_file() -> Path | None:
    """The file that --config names, which commands that are printed must name, too."""
    return _Chosen.path


def file_settings() -> Loaded | None:
    """What the file says, where there is one. Raises SettingsError with every problem."""
    if _Chosen.loaded is None and (path := chosen_file()) is not None:
        from journeyman.settings.reading import read_settings

        _Chosen.loaded = read_settings(path)
    return _Chosen.loaded


def settings() -> Settings:
    """What the file says, or what holds without one."""
    from journeyman.settings.schema import Settings

    loaded = file_settings()
    return Settings(version=1) if loaded is None else loaded.settings


@contextmanager
def naming(words: str = "{}", *key: str) -> Iterator[None]:
    """Around what cannot work where something was given wrongly: in these words, or by the place of a key in the file.

    Raises WrongUsageError.
    """
    try:
        yield
    except ConfigurationError as error:
        loaded = file_settings() if key else None
        raise WrongUsageError(words.format(error) if loaded is None else str(loaded.problem(key, str(error)))) from None


class _ToldOfSources(logging.Handler):
    """Whoever runs a command is told that tools are missing: for most the log is off. What a server said stays out."""

    def emit(self, record: logging.LogRecord) -> None:
        from journeyman.doors.cli import screen

        source = getattr(record, LOG_FIELDS, {}).get("source", "")
        screen.note(f"{record.getMessage()}: {source}", "the others serve; 'journeyman config check' says more")


def configuration(database: SqlStore | None = None) -> Configuration | None:
    """The file at work, with the tools it names; None where there is none. The first to ask says with which store."""
    path = chosen_file()
    if _Chosen.configuration is None and path is not None:
        from journeyman.app.configuration import Configuration
        from journeyman.doors.cli.trust import trust_command, unconfirmed

        loaded = file_settings()  # as it was asked about, whatever was written since
        data = None if loaded is None else loaded.document.source
        with printing_to_stderr():  # what a module prints when it is imported is not part of our answer
            _Chosen.configuration = Configuration(
                path, data=data, database=database, gate=unconfirmed, confirmed_by=trust_command(path)
            )
        if not any(isinstance(item, _ToldOfSources) for item in SOURCES.handlers):
            SOURCES.addHandler(_ToldOfSources())
    return _Chosen.configuration


def use(configuration: Configuration) -> None:
    """The file is at work already."""
    _Chosen.configuration = configuration


def _defaults(loaded: Loaded, command: str) -> dict[str, Any]:
    """What options are where they are not given; those that the file leaves out stay as they are."""
    settings = loaded.settings
    http = settings.doors.http
    defaults: dict[str, Any] = {"agent": None if command == "runs list" else settings.agent}  # there it is a filter
    if command != "run":  # there, naming a store keeps the run in it
        defaults["store"] = stored(loaded)
    if command == "worker":
        defaults |= {"concurrency": settings.runs.concurrency, "tokens": http.tokens}
    if command == "serve":
        defaults |= {"host": http.host, "port": http.port, "tokens": http.tokens, "workers": http.workers}
    if command == "slack":
        defaults["http"] = settings.doors.slack.mode == "http"
    return {name: value for name, value in defaults.items() if value is not None}


def stored(loaded: Loaded) -> str | None:
    """The store that the file names, with its secrets; None where it names none."""
    if ("store",) not in loaded.document.positions:
        return None
    return loaded.secret(loaded.settings.store)

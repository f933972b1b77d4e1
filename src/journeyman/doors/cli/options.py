"""Options that several commands share, and what is built from them."""

from __future__ import annotations

import getpass
import json
import os
import re
from enum import StrEnum
from typing import Annotated, Any, TypedDict, cast

import typer

LOG_VARIABLE = "JOURNEYMAN_LOG"
STORE_VARIABLE = "JOURNEYMAN_STORE"
DEFAULT_STORE = "sqlite:///journeyman.db"


class WrongUsageError(Exception):
    """What was typed cannot be meant; the message says what to type instead."""


class RunOptions(TypedDict):
    """What every kind of run is given on the command line."""

    agent: str | None
    library: str | None
    model: str | None
    permissions: list[str]
    yes: bool
    as_json: bool
    live: bool


class LogLevel(StrEnum):
    """From how serious a record is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="MODULE:NAME|FILE.gram[:NAME]",
        help="An Agent. Without --library it finds its tools in its own module, or, described in a gram file, among "
        "those that come with Journeyman. Without --agent, an assistant with the library's tools.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
Library = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE[:NAME]",
        help="A ToolLibrary, or a module: every tool in it; or 'local': the files of the current folder, and notes. "
        "Without it, the tools over the tasks in the store.",
        show_default=False,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="openai:NAME, ollama:NAME, http://HOST:PORT/v1#NAME, gguf:PATH or embedded. Without it, the agent's own, "
        "else what 'journeyman doctor' finds here.",
        show_default=False,
    ),
]
Store = Annotated[
    str,
    typer.Option(
        metavar="URL",
        envvar=STORE_VARIABLE,
        help="Where runs are kept: sqlite:///FILE or postgresql://USER@HOST/DATABASE.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who decides. Without it, your user name here.", show_default=False),
]
Limit = Annotated[int, typer.Option(min=1, help="How many to show at most.")]
Yes = Annotated[
    bool, typer.Option("--yes", help="Approve everything without asking. Dangerous: irreversible calls run, too.")
]
Permissions = Annotated[
    list[str] | None,
    typer.Option("--permission", metavar="NAME", help="A permission you have, e.g. orders:write. May be repeated."),
]
Log = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        envvar=LOG_VARIABLE,
        help="Write structured logs to stderr, from debug, info, warning or error on.",
        show_default=False,
    ),
]


def start_logs(level: LogLevel | None) -> None:
    """Send the package's log records to stderr, a JSON object a line."""
    if level is None:
        return
    import logging

    from journeyman.app import JsonFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("journeyman")
    logger.addHandler(handler)
    logger.setLevel(level.upper())


def default_store() -> str:
    """Where runs are kept when no --store says so."""
    return os.environ.get(STORE_VARIABLE) or DEFAULT_STORE


def seconds(text: str, *, option: str) -> float:
    """A span of time such as 90s, 30m, 12h, 7d or 2w."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise WrongUsageError(f"{option} {text!r} is no span of time; write e.g. 90s, 30m, 12h, 7d or 2w")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}[found[2]]


def json_value(text: str, *, option: str) -> Any:
    """Any JSON that an option gives."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongUsageError(f"{option} {text!r} is not JSON ({error}); a text needs its quotes: '\"sent\"'") from None


def json_object(text: str, *, option: str) -> dict[str, Any]:
    """What an option gives as JSON."""
    try:
        value = json.loads(text)
        problem = None if isinstance(value, dict) else "is not a JSON object"
    except (ValueError, RecursionError) as error:
        problem = f"is not JSON ({error})"
    if problem is not None:
        raise WrongUsageError(f'{option} {text!r} {problem}; write e.g. \'{{"path": "a.txt"}}\'')
    return cast("dict[str, Any]", value)


def user_name() -> str:
    """Who runs the program."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run under a number that has no name
        return "somebody"

"""Options that several commands share, and what is built from them."""

from __future__ import annotations

import getpass
import json
from enum import StrEnum
from typing import Annotated, Any, cast

import typer

LOG_VARIABLE = "JOURNEYMAN_LOG"


class WrongUsageError(Exception):
    """What was typed cannot be meant; the message says what to type instead."""


class LogLevel(StrEnum):
    """From how serious a record is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else.")]
Library = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE[:NAME]",
        help="A ToolLibrary, or a module: every tool in it. Without it, the tools that come with Journeyman, "
        "at work in the current folder.",
        show_default=False,
    ),
]
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

"""Exceptions as a line or two on stderr, and the exit codes of all commands."""

from __future__ import annotations

import os
import sys
import traceback
from enum import IntEnum

from journeyman.core.errors import JourneymanError, ModelError
from journeyman.core.runs import RunStatus
from journeyman.doors.cli.options import LOG_VARIABLE, WrongUsageError


class ExitCode(IntEnum):
    """How a command ended. Ctrl-C gives 130, as everywhere."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
    WAITING = 3


def exit_code(status: RunStatus) -> ExitCode:
    """What a run's status means for whoever called the program."""
    if status is RunStatus.COMPLETED:
        return ExitCode.DONE
    return ExitCode.WAITING if status.waiting else ExitCode.FAILED


def complain(message: str, *hints: str | None) -> None:
    """What is wrong and, on further lines, what to do."""
    print(f"journeyman: {message}", file=sys.stderr)
    for hint in hints:
        if hint:
            print(f"            {hint}", file=sys.stderr)


def report(error: Exception) -> ExitCode:
    """Complain about an exception that ended a command."""
    if isinstance(error, WrongUsageError):
        complain(str(error))
        return ExitCode.WRONG_USAGE
    if isinstance(error, ModelError):
        complain(error.info.message, error.info.user_guidance)
    elif isinstance(error, JourneymanError):
        complain(str(error))
    else:
        complain(
            f"unexpected {type(error).__name__}: {error}",
            f"This is a fault in Journeyman, please report it; {LOG_VARIABLE}=debug shows where it happened.",
        )
        if os.environ.get(LOG_VARIABLE) == "debug":
            traceback.print_exception(error)
    return ExitCode.FAILED

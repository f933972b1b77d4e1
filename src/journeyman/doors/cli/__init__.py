"""The command line. ``main`` is the program; each command has a module of its own, imported when it is used."""

from __future__ import annotations

import sys
from contextlib import suppress

INTERRUPTED = 130
"""The exit code of a program that was ended by Ctrl-C."""


def main() -> None:
    """The ``journeyman`` program: every error becomes a line or two that say what to do, and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # somebody's own stream
            # A terminal that cannot show a character must not end a run.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    from journeyman.doors.cli.commands import commands

    try:
        commands()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("\njourneyman: cancelled", file=sys.stderr)
        raise
    except Exception as error:
        from journeyman.doors.cli.faults import report

        sys.exit(report(error))

"""The command line. ``main`` is the program; a command's declaration and its work are in the module of its name.

To add a command: where it carries out an operation, show its result in a function that ``operated`` makes a command of;
else write ``doors/cli/NAME.py`` with a function of that name (its docstring is its help) or a ``typer.Typer`` of that
name (a group of commands) and add one line to ``COMMANDS`` in ``commands``. Then add its usage to
``docs/command-line.md`` and run ``python -m scripts.write_help``: what ``--help`` prints is kept in ``help.txt``,
since making it means importing the command with all it works with.

What they share: ``operated`` (commands of the table of operations), ``options`` (options, exit codes; ``taking`` gives
a command those of runs), ``loading`` (stores, and what is named there), ``screen`` (terminal output and input),
``trace`` (a run as it goes on, approvals).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

INTERRUPTED = 130
"""The exit code of a program that was ended by Ctrl-C."""
HELP_WIDTH = 80
HEADING = "### journeyman"
COMPLETES = "_JOURNEYMAN_COMPLETE"
"""Set by the scripts of ``journeyman completion``, which then want words back."""


def kept_helps() -> dict[str, str]:
    """What ``--help`` prints, by the words of the command, as ``help.txt`` has it."""
    from importlib.resources import files

    text = files(__name__).joinpath("help.txt").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in text.split(HEADING)[1:])
    return {words.strip(): shown.strip("\n") for words, _, shown in parts}


def _kept_help(typed: Sequence[str]) -> str | None:
    """The kept help that these words ask for; None where it must be made, or nothing like it is asked for."""
    if not typed or typed[-1] not in ("-h", "--help"):
        return None
    from shutil import get_terminal_size

    return None if get_terminal_size().columns < HELP_WIDTH else kept_helps().get(" ".join(typed[:-1]))


def main() -> None:
    """The ``journeyman`` program: every error becomes a line or two that say what to do, and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # somebody's own stream
            # A terminal that cannot show a character must not end a run.
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # TextIO has no such method, TextIOWrapper has
    if COMPLETES in os.environ:
        from journeyman.doors.cli.completion import complete

        complete(sys.argv[1:])
        sys.exit()
    if (text := _kept_help(sys.argv[1:])) is not None:
        try:
            print(text, flush=True)
        except BrokenPipeError:  # whoever has read enough ends it; what is left goes nowhere at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit()
    if any(name.startswith("OTEL_EXPORTER_OTLP_") for name in os.environ):
        from journeyman.app.observing import configure

        configure()
    from journeyman.doors.cli.commands import program
    from journeyman.doors.cli.printed import children_escaped
    from journeyman.doors.cli.program import children_marked

    try:
        with children_marked(), children_escaped():
            program()(prog_name="journeyman")  # as the kept helps call it, however it was started
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            print("\njourneyman: cancelled", file=sys.stderr)
        raise
    except Exception as error:
        from journeyman.doors.cli.screen import report

        sys.exit(report(error))

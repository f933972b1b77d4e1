"""The terminal: consoles, tables and texts that fit, notes on stderr, and lines read from stdin. Knows no command."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from journeyman.core.calls import CallStatus
from journeyman.core.errors import JourneymanError, ModelError
from journeyman.core.risk import RiskLevel
from journeyman.doors.cli.options import LOG_VARIABLE, ExitCode, WrongUsageError

LOG_WIDTH = 200
"""How much of a value a line shows where no terminal sets a limit."""

RISK_STYLES = {
    RiskLevel.REVERSIBLE: "green",
    RiskLevel.REVERSIBLE_WITH_DELAY: "yellow",
    RiskLevel.IRREVERSIBLE: "bold red",
}
STATUS_LOOKS = {
    CallStatus.SUCCESS: ("✓", "green"),
    CallStatus.ERROR: ("✗", "red"),
    CallStatus.TIMEOUT: ("◷", "yellow"),
    CallStatus.DENIED: ("⊘", "magenta"),
    CallStatus.CANCELLED: ("◌", "dim"),
    CallStatus.UNKNOWN: ("?", "bold red"),
}


# --- writing


def console(*, stderr: bool = False) -> Console:
    """A console on the stream as it is now; no colours where NO_COLOR is set or the stream is no terminal."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def interactive() -> bool:
    """Whether a person can be shown a question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def show(on: Console, text: str | Text, *, indent: int = 0) -> None:
    """Text with an indent: wrapped to a terminal, whole lines in a log."""
    shown = Text(text) if isinstance(text, str) else text
    if on.is_terminal:
        on.print(Padding(shown, (0, 0, 0, indent)))
        return
    for line in shown.split("\n", allow_blank=True):
        on.print(Text.assemble(" " * indent, line), soft_wrap=True)


def say(text: str | Text) -> None:
    """Text on stdout."""
    show(console(), text)


def note(message: str, *hints: str | None) -> None:
    """A line for the person on stderr and, on further lines, what to do."""
    print(f"journeyman: {message}", file=sys.stderr)
    for hint in hints:
        if hint:
            print(f"            {hint}", file=sys.stderr)


def report(error: Exception) -> ExitCode:
    """Note an exception that ended a command."""
    if isinstance(error, WrongUsageError):
        note(str(error))
        return ExitCode.WRONG_USAGE
    if isinstance(error, ModelError):
        note(error.info.message, error.info.user_guidance)
    elif isinstance(error, JourneymanError):
        note(str(error))
    else:
        note(
            f"unexpected {type(error).__name__}: {error}",
            f"This is a fault in Journeyman, please report it; {LOG_VARIABLE}=debug shows where it happened.",
        )
        if os.environ.get(LOG_VARIABLE) == "debug":
            traceback.print_exception(error)
    return ExitCode.FAILED


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def print_json(value: Any) -> None:
    """JSON on stdout, and nothing else."""
    print(json_text(value))


def dumped(items: Iterable[BaseModel]) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json") for item in items]


# --- tables


def listing(*headings: str) -> Table:
    """A table without lines; the last column takes what room there is."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    return table


def fields() -> Table:
    """A table of names and what belongs to them."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


# --- texts


def escaped(text: str) -> str:
    """The text with everything escaped that a terminal would obey or hide instead of showing."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def shortened(value: Any, width: int) -> str:
    """A value as JSON on one line, the end left out where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = escaped(" ".join(text[: width * 4].split()))
    return line if len(line) <= width else f"{line[: max(1, width - 1)]}…"


def pretty(value: Any) -> str:
    """A value in full, as a person reads it."""
    return escaped(value if isinstance(value, str) else json_text(value))


def call_text(name: str, arguments: dict[str, Any], *, width: int) -> str:
    """A call as one would write it."""
    given = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in arguments.items())
    return f"{shortened(name, 60)}({shortened(given, max(16, width - len(name)))})"


def risk_text(risk: RiskLevel | None) -> Text:
    return Text("undeclared", style="dim") if risk is None else Text(risk.value, style=RISK_STYLES[risk])


def status_text(status: CallStatus, text: str | None = None) -> Text:
    icon, style = STATUS_LOOKS.get(status, ("·", "dim"))
    return Text(f"{icon} {text or status.value}", style=style)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(milliseconds: float) -> str:
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:.1f} s"


def local_time(seconds: float) -> str:
    """A time in seconds since the epoch, in the local time zone."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def rough_duration(seconds: float) -> str:
    """About how long, e.g. until something expires."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


# --- reading


async def read_line() -> str | None:
    """A line from the terminal, which hands out whole lines; None at the end of input."""
    typed = await _read_input()
    return typed.decode(errors="replace").strip() if typed else None


async def piped_lines() -> AsyncIterator[str]:
    """The lines of a pipe or a file, as they come."""
    rest = b""
    while read := await _read_input():
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


async def _read_input() -> bytes:
    """What there is to read; nothing at the end of input. Waits on the event loop, so that it can be cancelled."""
    source = sys.stdin.fileno()
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(source, ready.set)
    except PermissionError:  # a file cannot be watched, and need not be: reading it never blocks
        return os.read(source, 65_536)
    except NotImplementedError:  # event loops on Windows cannot watch a terminal
        line: str = await asyncio.to_thread(sys.stdin.readline)
        return line.encode()
    try:
        await ready.wait()
    finally:
        loop.remove_reader(source)
    return os.read(source, 65_536)


def discard_typed_ahead() -> None:
    """What was typed before a question was shown is no answer to it."""
    with suppress(ImportError, OSError):
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

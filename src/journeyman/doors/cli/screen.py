"""The terminal: consoles, tables, Markdown and texts that fit, notes and progress on stderr, lines read from stdin.

Everything that a command writes passes through here, and whatever a terminal would obey is escaped on the way: texts
come from models, tools, servers and files.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from journeyman.core.approvals import GrantTerms
from journeyman.core.calls import ArgumentSource, CallStatus
from journeyman.core.data import one_line, safe_json, visible
from journeyman.core.errors import JourneymanError, ModelError
from journeyman.core.policy import RiskLevel
from journeyman.doors.cli.options import LOG_VARIABLE, ExitCode, WrongUsageError
from journeyman.doors.cli.printed import answer_stream
from journeyman.doors.cli.program import at_a_terminal

if TYPE_CHECKING:
    from rich.markdown import Markdown

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


class _Console(Console):
    """Escapes every text; only its own styles and movements reach the terminal as they are."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text == "\n" or segment.text.isprintable():
                yield segment
            else:
                yield Segment(escaped(segment.text), segment.style)


def console(*, stderr: bool = False) -> Console:
    """A console on the stream as it is now; no colours where NO_COLOR is set or the stream is no terminal."""
    file = None if stderr else answer_stream()  # stderr may be another while a line is edited
    return _Console(file=file, stderr=stderr, highlight=False, markup=False, emoji=False)


def interactive() -> bool:
    """Whether a person can be shown a question and can answer it."""
    return at_a_terminal() and os.environ.get("TERM") != "dumb"


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


def write(text: str, *, end: str = "\n", stderr: bool = False) -> None:
    """Text as it is: no style, no indent. A program that reads it gets every character a terminal would not obey."""
    stream = sys.stderr if stderr else answer_stream()
    shown = escaped(text) if stream.isatty() else _OBEYED.sub(lambda found: visible(found[0]), text)
    print(shown, end=end, file=stream, flush=stderr)


def note(message: str, *hints: str | None) -> None:
    """A line for the person on stderr and, on further lines, what to do."""
    print(f"journeyman: {escaped(message)}", file=sys.stderr)
    for hint in hints:
        if hint:
            print(f"            {escaped(hint)}", file=sys.stderr)


def report(error: Exception) -> ExitCode:
    """Note an exception that ended a command."""
    from journeyman.app.desk import InvalidInputError  # whoever made one of these has loaded it
    from journeyman.app.loading import WrongNameError
    from journeyman.settings.problems import SettingsError

    if isinstance(error, WrongUsageError | WrongNameError | InvalidInputError | SettingsError):
        note(f"the configuration cannot be used:\n{error}" if isinstance(error, SettingsError) else str(error))
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
            write("".join(traceback.format_exception(error)), end="", stderr=True)
    return ExitCode.FAILED


def json_text(value: Any) -> str:
    """JSON that says the same and holds no character that a terminal would obey."""
    return safe_json(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_json(value: Any) -> None:
    """JSON on stdout, and nothing else."""
    text = safe_json(value.model_dump_json(indent=2)) if isinstance(value, BaseModel) else json_text(value)
    print(text, file=answer_stream())


def put_out(text: str, file: Path | None) -> None:
    """A text on stdout, or in the file that --output names."""
    if file is None:
        return write(text)
    try:
        file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise WrongUsageError(f"--output {str(file)!r} cannot be written: {error.strerror}") from None


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


def fields(*rows: tuple[str, str | Text | None]) -> Table:
    """A table of names and what belongs to them; what is None is left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            table.add_row(name, escaped(value) if isinstance(value, str) else value)
    return table


# --- texts

escaped = visible
"""The text with everything escaped that a terminal would obey or hide instead of showing."""
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What terminals obey, among it what turns the direction of writing. Joiners and other marks in words are not."""


def shortened(value: Any, width: int) -> str:
    """A value as JSON on one line, the end left out where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return one_line(text, most=max(2, width))


def pretty(value: Any) -> str:
    """A value in full, as a person reads it."""
    return escaped(value if isinstance(value, str) else json_text(value))


def editable(value: Any, *, width: int) -> str:
    """A value as JSON to be changed, every character visible: on one line where that is short enough."""
    line = escaped(json.dumps(value, ensure_ascii=False))
    return line if len(line) <= width else pretty(value)


def call_text(name: str, arguments: dict[str, Any], *, width: int) -> str:
    """A call as one would write it, the end left out where it is long."""
    # Blanks stay as they are: two calls that differ in one must not look alike.
    given = escaped(
        ", ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in arguments.items())
    )
    room = max(16, width - len(name))
    return f"{shortened(name, 60)}({given if len(given) <= room else f'{given[: room - 1]}…'})"


def risk_text(risk: RiskLevel | None) -> Text:
    return Text("undeclared", style="dim") if risk is None else Text(risk.value, style=RISK_STYLES[risk])


def status_text(status: CallStatus, text: str | None = None) -> Text:
    icon, style = STATUS_LOOKS.get(status, ("·", "dim"))
    return Text(f"{icon} {text or status.value}", style=style)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def bytes_text(number: int) -> str:
    return f"{number / 1_000:,.0f} kB" if number < 10_000_000 else f"{number / 1_000_000:,.1f} MB"


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


def grant_terms(terms: GrantTerms | None) -> str:
    """How far a grant goes."""
    if terms is None:
        return "never"
    return f"up to {counted(terms.uses, 'time')} within {rough_duration(terms.seconds)}"


# --- reading


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


@contextmanager
def keys_hidden() -> Iterator[None]:
    """While a run is shown: what is typed is not drawn into it. It waits for the next line that is read."""
    if not interactive():
        yield
        return
    try:
        import termios
    except ImportError:  # on Windows
        yield
        return
    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)
    hidden = [*before]
    hidden[3] &= ~termios.ECHO
    termios.tcsetattr(source, termios.TCSANOW, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(source, termios.TCSANOW, before)


def source_lines(sources: Sequence[ArgumentSource] | None) -> list[tuple[str, str]]:
    """Where the arguments of a call came from, with the style of each line: what was found nowhere is to be seen."""
    return [
        (f"{escaped(item.argument)}: {escaped(item.text)}", "bold yellow" if item.origin == "nowhere" else "dim")
        for item in sources or ()
    ]


# --- Markdown


MOST_DRAWN = 50_000
"""Longer texts are printed as they are: drawing takes its time."""


def print_answer(text: str) -> None:
    """An answer on stdout."""
    on = console()
    if on.is_terminal:
        show_markdown(on, text)
    else:
        write(text)


def show_markdown(on: Console, text: str, *, indent: int = 0) -> None:
    """Markdown, laid out where there is a terminal."""
    if not on.is_terminal or len(text) > MOST_DRAWN:
        return show(on, escaped(text), indent=indent)
    return on.print(Padding(drawn(text), (0, 0, 0, indent)))


def drawn(text: str) -> Markdown:
    """Markdown in which nothing is hidden: HTML is shown as it is written, a link or an image with where it leads."""
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown  # only what lays something out pays for its parser

    shown = Markdown("", hyperlinks=False, code_theme="ansi_dark")
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    shown.parsed = parser.parse(escaped(text))
    for token in shown.parsed:
        for part in token.children or ():
            if part.type == "softbreak":  # lines stay lines, as on the page
                part.type = "hardbreak"
    return shown


# --- progress


MOST_LINES = 20
"""How many lines of progress a log gets."""


@contextmanager
def progress_shown() -> Iterator[Callable[[int, int, str], None]]:
    """Yields what is to be told of each step: how many are done, of how many, and that in words."""
    on = console(stderr=True)

    def line(done: int, total: int, text: str) -> None:
        if done % -(-total // MOST_LINES) == 0 or done == total:
            note(text)

    if not on.is_terminal:
        yield line
        return
    from rich import progress as bars

    columns = (
        bars.SpinnerColumn(),
        bars.BarColumn(),
        bars.TextColumn("{task.description}"),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=on, transient=True) as bar:
        shown = bar.add_task("starting", total=None)
        yield lambda done, total, text: bar.update(shown, completed=done, total=total, description=text)

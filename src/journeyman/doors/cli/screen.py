"""How things look: consoles, icons, colours, and texts shortened to fit. Knows no command."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from journeyman.core.calls import CallStatus
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import ToolSpecification

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


def console(*, stderr: bool = False) -> Console:
    """A console on the stream as it is now; no colours where NO_COLOR is set or nobody looks."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def someone_is_there() -> bool:
    """Whether a person can be shown a question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def visible(text: str) -> str:
    """The text with everything escaped that a terminal would obey or hide instead of showing."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def shortened(value: Any, width: int) -> str:
    """A value as JSON on one line, the end left out where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = visible(" ".join(text[: width * 4].split()))
    return line if len(line) <= width else f"{line[: max(1, width - 1)]}…"


def called(name: str, arguments: dict[str, Any], *, width: int) -> str:
    """A call as one would write it."""
    given = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in arguments.items())
    return f"{shortened(name, 60)}({shortened(given, max(16, width - len(name)))})"


def duration(milliseconds: float) -> str:
    if milliseconds < 10:
        return f"{milliseconds:.1f} ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:.1f} s"


def moment(seconds: float) -> str:
    """A time in seconds since the epoch as the clock on the wall shows it."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def span(seconds: float) -> str:
    """About how long, e.g. until something expires."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def listing(*headings: str) -> Table:
    """A table without lines; the last column takes what room there is."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings[:-1]:
        table.add_column(heading, no_wrap=True)
    table.add_column(headings[-1], overflow="fold")
    return table


def facts() -> Table:
    """A table of names and what belongs to them."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def risk_text(risk: RiskLevel | None) -> Text:
    return Text("undeclared", style="dim") if risk is None else Text(risk.value, style=RISK_STYLES[risk])


def declared_risk(specification: ToolSpecification) -> RiskLevel | None:
    """What a tool says of itself; None where it says nothing and the policy decides."""
    return specification.risk or (RiskLevel.REVERSIBLE if specification.read_only else None)


def status_text(status: CallStatus, told: str | None = None) -> Text:
    icon, style = STATUS_LOOKS.get(status, ("·", "dim"))
    return Text(f"{icon} {told or status.value}", style=style)


def first_sentence(text: str) -> str:
    line = " ".join(text.split())
    head, stop, _ = line.partition(". ")
    return head + "." if stop else line


def show(screen: Console, text: str | Text, *, indent: int = 0) -> None:
    """Text with an indent: wrapped to a terminal, whole lines in a log."""
    shown = Text(text) if isinstance(text, str) else text
    if screen.is_terminal:
        screen.print(Padding(shown, (0, 0, 0, indent)))
        return
    for line in shown.split("\n", allow_blank=True):
        screen.print(Text.assemble(" " * indent, line), soft_wrap=True)


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def print_json(value: Any) -> None:
    """JSON on stdout, and nothing else."""
    print(json_text(value))


def pretty(value: Any) -> str:
    """A value in full, as a person reads it."""
    return visible(value if isinstance(value, str) else json_text(value))

"""What the demo's requests cost, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from journeyman.core.calls import ToolCallRecord
from journeyman.core.events import CallFinished, Fact, MessageReceived
from journeyman.doors.cli import screen

SHORTEST_COLUMN = 16
OTHER_COLUMNS = 46


@dataclass(frozen=True, slots=True)
class _Row:
    request: str
    message: MessageReceived | None
    record: ToolCallRecord | None


class Costs:
    """What each step of some runs cost, from their facts: how sure, how long the model and the call took."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._requests = 0

    def add(self, request: str, facts: Sequence[Fact]) -> None:
        """The steps of one run: a row for each call, one for an answer."""
        self._requests += 1
        message: MessageReceived | None = None
        for fact in facts:
            if isinstance(fact, MessageReceived):
                message = fact
                if not fact.calls:
                    self._rows.append(_Row(request, fact, None))
            elif isinstance(fact, CallFinished):
                self._rows.append(_Row(request, message, fact.record))
                message = None  # what the model took is told once

    def table(self, *, width: int) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("request", no_wrap=True, max_width=max(SHORTEST_COLUMN, width - OTHER_COLUMNS))
        table.add_column("did", no_wrap=True)
        for heading in ("sure", "model", "call"):
            table.add_column(heading, justify="right", no_wrap=True)
        shown = ""
        for row in self._rows:
            message, record = row.message, row.record
            confidence = record.confidence if record else message.confidence if message else None
            table.add_row(
                row.request if row.request != shown else "",
                screen.status_text(record.status, record.tool_name) if record else Text("  answer", style="dim"),
                "–" if confidence is None else f"{confidence:.2f}",
                "" if message is None else screen.duration((message.time - message.started) * 1000),
                screen.duration(record.duration_ms) if record else "",
            )
            shown = row.request
        return table

    def told(self) -> str:
        """All of it in one line."""
        models = {row.message.model for row in self._rows if row.message is not None and row.message.model}
        asked = sum(row.message is not None for row in self._rows)
        calls = sum(row.record is not None for row in self._rows)
        return " · ".join(
            [
                f"answered by {', '.join(sorted(models)) or 'no model'}",
                screen.counted(self._requests, "request"),
                f"the model asked {screen.counted(asked, 'time')}",
                screen.counted(calls, "call"),
            ]
        )

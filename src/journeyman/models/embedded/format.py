"""Final answers, composed from what the tools returned. No prose is invented: every word is a result's or a label."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from journeyman.core.messages import Message
from journeyman.core.specification import ToolSpecification
from journeyman.models.embedded.tools import first_sentence

ROWS_SHOWN = 20
COLUMNS_SHOWN = 6
CELL_WIDTH = 60
TOOLS_SHOWN = 5


def answer_from(results: Sequence[Message]) -> str:
    """What the tools returned, in the order of the calls."""
    parts = [_result(message) for message in results]
    if len(parts) == 1:
        return parts[0]
    return "\n\n".join(f"{message.name}:\n{part}" for message, part in zip(results, parts, strict=True))


def cannot_help(tools: Sequence[ToolSpecification], *, more: int = 0) -> str:
    """Said instead of a guess: the nearest tools, each with the first sentence of its description."""
    if not tools:
        return "I can only call tools, and there are none."
    lines = [f"- {tool.name}: {first_sentence(tool.description)}" for tool in tools[:TOOLS_SHOWN]]
    rest = len(tools[TOOLS_SHOWN:]) + more
    if rest:
        lines.append(f"- and {rest} more")
    return "\n".join(["I am not sure that any of my tools does this. What I can do:", *lines])


def _result(message: Message) -> str:
    try:
        value = json.loads(message.content)
    except ValueError:
        return message.content or "Done: no result."
    if isinstance(value, dict) and "error" in value and "code" in value:
        return _error(message.name, value)
    return _value(value) or "Done: no result."


def _error(name: str | None, error: Mapping[str, Any]) -> str:
    status = error.get("status", "error")
    text = f"{name}: {status}: {error['error']} ({error['code']})"
    return f"{text}\nWhat to do: {error['recover_action']}" if error.get("recover_action") else text


def _value(value: Any) -> str:
    if isinstance(value, list):
        return _list(value)
    if isinstance(value, dict):
        return _record(value)
    return "" if value is None else _cell(value, width=None)


def _record(record: Mapping[str, Any]) -> str:
    """One field a line; fields that hold several things come after the short ones."""
    short = [f"{name}: {_cell(value, width=None)}" for name, value in record.items() if _is_short(value)]
    long = [f"{name}:\n{_value(value)}" for name, value in record.items() if not _is_short(value)]
    return "\n".join(short + long)


def _list(items: Sequence[Any]) -> str:
    if not items:
        return "Nothing found."
    shown = items[:ROWS_SHOWN]
    records = [item for item in shown if isinstance(item, dict)]
    lines = _table(records) if len(records) == len(shown) else [f"- {_cell(item)}" for item in shown]
    if len(items) > len(shown):
        lines.append(f"… and {len(items) - len(shown)} more")
    return "\n".join(lines)


def _table(records: Sequence[Mapping[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for record in records for name in record))
    filled = [name for name in names if any(record.get(name) not in (None, "", [], {}) for record in records)]
    columns = filled[:COLUMNS_SHOWN]
    rows = [columns, *([_cell(record.get(name)) for name in columns] for record in records)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]


def _is_short(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(item, str | int | float | bool) for item in value)
    return not isinstance(value, dict) or not value


def _cell(value: Any, width: int | None = CELL_WIDTH) -> str:
    if value is None or value == [] or value == {}:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and _is_short(value):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if width is None:
        return text
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"

"""What a call came to, as Markdown for a person: the tool's own words where it has some, else its result in a general
form. A model reads records; people read this.

Nothing is invented, and no more is looked at than is shown: a result may be large. What is left out here (identifiers
that only a program reads, empty fields, internal ones) is in the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from pydantic_core import from_json

from journeyman.core.calls import Artifact, CallStatus, ToolCallRecord
from journeyman.core.content import Medium
from journeyman.core.data import unchecked

MOST_ROWS = 20
MOST_COLUMNS = 6
MOST_FIELDS = 12
CELL_WIDTH = 80
MOST_TEXT = 4_000
"""Characters of a text that are shown."""
MOST_BITS = 250
"""Of a whole number that is written out."""
MOST_KEYS = 100
"""Fields of a record that are looked at."""

_EMPTY: tuple[Any, ...] = (None, "", [], {})
_TITLES = frozenset({"title", "name", "subject", "summary", "label", "headline"})
_TOTALS = frozenset({"total", "count", "total_count", "total_results"})
_INTERNAL = frozenset({"metadata", "meta", "etag", "digest", "hash", "checksum", "cursor", "next_cursor", "node_id"})
_identifier = re.compile(r"(?:^|_)(?:id|uuid|guid|key)s?$").search
_opaque = re.compile(
    r"(?:[a-zA-Z][a-zA-Z0-9]*[_-])?[0-9a-fA-F]{12,}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?=[^0-9]*[0-9])(?=[^a-zA-Z]*[a-zA-Z])[\w-]{20,}"
).fullmatch
_moment = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?").fullmatch
_MARKUP = re.compile(r"[`*~|]|\\(?=[!-/:-@\[-`{-~])|<(?=[a-zA-Z/!?])|(?<!\w)_|_(?!\w)|\](?=[(\[])")


# --- calls


def composed(records: Iterable[ToolCallRecord], own: Mapping[str, str]) -> str:
    """What calls came to, in their order: the answer of a model that writes none. Nothing where there are no calls.

    ``own`` are the tools' own words, by call. A failure that a later call of the same tool made good is left out, and
    so is what a later call with the same arguments tells anew.
    """
    kept = list({_what(item): item for item in records}.values())
    made_good = {item.tool_name: at for at, item in enumerate(kept) if item.success}
    records_kept = [item for at, item in enumerate(kept) if item.success or made_good.get(item.tool_name, -1) < at]
    if len(records_kept) == 1:
        return rendered(records_kept[0], own.get(records_kept[0].call_id, ""))
    return "\n\n".join(_one_of_several(item, own.get(item.call_id, "")) for item in records_kept)


def _what(record: ToolCallRecord) -> tuple[str, str]:
    """Tool and arguments, to tell calls apart."""
    try:
        return record.tool_name, json.dumps(record.arguments, sort_keys=True)
    except (TypeError, ValueError):  # e.g. a number with more digits than are ever written
        return record.tool_name, record.call_id


def _one_of_several(record: ToolCallRecord, own: str) -> str:
    text = rendered(record, own)
    return text if own or not record.success else f"**{_label(record.tool_name)}**{_values(record.arguments)}\n\n{text}"


def rendered(record: ToolCallRecord, own: str = "") -> str:
    """What one call came to. ``own`` are the tool's own words about it."""
    if record.status is CallStatus.SUCCESS:
        return own or (rendered_value(record.result) if record.artifact is None else _of_artifact(record.artifact))
    return failure(record)


def failure(record: ToolCallRecord) -> str:
    """Why a call was not done, and what a person can do about it; nothing of what only the model is told."""
    error = record.error
    if error is None:
        return f"{_label(record.tool_name)} has not ended."
    undone = record.status in (CallStatus.DENIED, CallStatus.CANCELLED)
    said = sentence(plain(error.message))
    guidance = f" {sentence(plain(error.user_guidance))}" if error.user_guidance else ""
    return f"{'Not done' if undone else 'That did not work'}: {said}{guidance}"


# --- values


def rendered_value(value: Any) -> str:
    """A result: a text as it is, a number as a sentence, records as a table, one record as a list of its fields."""
    if value is None:
        return "Done."
    if isinstance(value, str):
        return _text(value) or "Done."
    if isinstance(value, list):
        return _several(value) if value else "Nothing found."
    if isinstance(value, dict):
        return _medium(value) or _record(value) or "Done."
    return f"The result is {_cell(value)}."


def plain(text: str, *, width: int | None = None) -> str:
    """Text of somebody else on one line of Markdown, where it means nothing but itself."""
    line = " ".join((text if width is None else text[: width * 4]).split())
    if width is not None and len(line) > width:
        line = f"{line[: width - 1]}…"
    return _MARKUP.sub(lambda found: f"\\{found[0]}", line)


def sentence(text: str) -> str:
    """The text with a capital at its beginning and an end."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?', '…', ':')) else '.'}"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its columns aligned for those who read it as it is; cells are Markdown already."""
    cells = [columns, *rows]
    widths = [max(3, *(len(line[at]) for line in cells)) for at in range(len(columns))]
    lines = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in cells]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    left = len(text) - MOST_TEXT
    return text if left <= 0 else f"{text[:MOST_TEXT]}…\n\n({left:,} more characters)"


def _of_artifact(artifact: Artifact) -> str:
    """As much as is at hand of a result that is kept elsewhere."""
    note = f"The whole result has {artifact.chars:,} characters."
    if artifact.kind == "json":
        with suppress(ValueError):
            return f"{rendered_value(from_json(artifact.head, allow_partial=True))}\n\n{note}"
    return f"{artifact.head[:MOST_TEXT]}…\n\n{note}"


def _several(items: list[Any], total: int | None = None) -> str:
    rows = items[:MOST_ROWS]
    text = _table(rows) if _are_records(rows) else "\n".join(f"- {_cell(item)}" for item in rows)
    left = max(len(items), total or 0) - len(rows)
    return f"{text}\n\n… and {left:,} more." if left > 0 else text


def _table(records: list[dict[str, Any]]) -> str:
    names = dict.fromkeys(name for record in records for name in islice(record, MOST_KEYS))
    columns = _fields(list(names), lambda name: [record.get(name) for record in records])[:MOST_COLUMNS]
    rows = ([_cell(record.get(name)) or "–" for name in columns] for record in records)
    return table([_label(name) for name in columns], rows)


def _record(record: dict[str, Any]) -> str:
    names = _fields(list(islice(record, MOST_KEYS)), lambda name: [record[name]])
    lists = [name for name in record if isinstance(record[name], list) and _are_records(record[name])]
    if len(lists) == 1 or (not names and lists):
        return _listing(record, lists[0], names)
    if len(names) == 1 and isinstance(record[names[0]], dict):
        return f"{_label(names[0])}:\n\n{_record(record[names[0]]) or 'nothing'}"
    lines = [f"- **{_label(name)}:** {_cell(record[name])}" for name in names[:MOST_FIELDS]]
    if len(names) > MOST_FIELDS:
        lines.append(f"- … and {len(names) - MOST_FIELDS:,} more fields")
    return "\n".join(lines)


def _listing(record: dict[str, Any], name: str, names: list[str]) -> str:
    """A record whose point is one list: how many, the list, then what else it says."""
    items = record[name]
    totals = [value for key, value in record.items() if key in _TOTALS and type(value) is int]
    total = max([len(items), *totals])
    what = _words(name)
    if not items:
        heading = f"No {what}."
    else:
        what = re.sub(r"ies$", "y", what) if total == 1 and what.endswith("ies") else what
        heading = f"{total:,} {what.removesuffix('s') if total == 1 else what}:\n\n{_several(items, total)}"
    rest = [key for key in names if key != name and key not in _TOTALS][:MOST_FIELDS]
    lines = "\n".join(f"- **{_label(key)}:** {_cell(record[key])}" for key in rest)
    return f"{heading}\n\n{lines}" if rest else heading


def _are_records(items: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in items[:MOST_ROWS])


# --- fields


def _fields(names: list[str], values: Any) -> list[str]:
    """The fields that tell a person something, what names a thing first, identifiers last; all where none does."""
    telling = [name for name in names if _tells(name, values(name))]
    filled = [name for name in names if any(value not in _EMPTY for value in values(name))]
    return sorted(telling or filled, key=_rank)


def _tells(name: str, values: list[Any]) -> bool:
    filled = [value for value in values if value not in _EMPTY]
    if not filled or name.startswith("_") or name in _INTERNAL:
        return False
    return not (_identifier(_snake(name)) and all(isinstance(value, str) and _opaque(value) for value in filled))


def _rank(name: str) -> int:
    snake = _snake(name)
    if snake in _TITLES:
        return 0
    return 3 if _identifier(snake) else 2 if snake.endswith("_at") else 1


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:CELL_WIDTH]).lower()


def _words(name: str) -> str:
    return plain(_snake(name).replace("_", " ").replace("-", " "), width=CELL_WIDTH)


def _label(name: str) -> str:
    words = _words(name)
    return words[:1].upper() + words[1:]


def _values(arguments: Mapping[str, Any]) -> str:
    """The arguments that tell calls of one tool apart, in a few words."""
    cells = [_cell(value) for value in arguments.values() if isinstance(value, str | int | float) and value != ""]
    return f" ({', '.join(cells[:3])})" if cells else ""


def _medium(value: dict[str, Any]) -> str:
    """An image or a file in a result, by what it is; nothing for anything else."""
    kind, size = value.get("mime_type"), value.get("bytes")
    if not (isinstance(kind, str) and type(size) is int and size >= 0 and ("data" in value or "artifact" in value)):
        return ""
    return plain(
        unchecked(Medium, {"mime_type": kind, "bytes": size, "name": str(value.get("name", ""))}).words(),
        width=CELL_WIDTH,
    )


def _cell(value: Any) -> str:
    """A value in a few words of Markdown, on one line."""
    if value in _EMPTY:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        moment = _moment(value)
        return f"{moment[1]} {moment[2]}{_zone(moment[3])}" if moment else plain(value, width=CELL_WIDTH)
    if isinstance(value, list):
        if all(isinstance(item, str | int | float) for item in value[:MOST_ROWS]):
            left = len(value) - MOST_ROWS
            return ", ".join(map(_cell, value[:MOST_ROWS])) + (f" and {left:,} more" if left > 0 else "")
        return f"{len(value):,} item{'' if len(value) == 1 else 's'}"
    if isinstance(value, dict):
        if medium := _medium(value):
            return medium
        names = _fields(list(islice(value, MOST_KEYS)), lambda name: [value[name]])[:MOST_COLUMNS]
        inner = ((name, value[name]) for name in names)
        return ", ".join(
            f"{_words(name)}: {f'{len(item):,} fields' if isinstance(item, dict) else _cell(item)}"
            for name, item in inner
        )
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return "a number of very many digits"
    return str(value)


def _zone(offset: str | None) -> str:
    return "" if offset is None else " UTC" if offset in ("Z", "+00:00") else f" {offset}"

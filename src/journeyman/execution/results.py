"""A tool's answer as plain JSON, and as much of it as a model should read."""

from __future__ import annotations

import math
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.context import Secrets


class UnserialisableResultError(Exception):
    """What the tool returned has no JSON form."""


def json_value(value: Any, secrets: Secrets | None = None) -> Any:
    """The value as plain JSON, with every secret the tool has read masked."""
    kind = type(value)
    if secrets is not None and secrets.were_read:
        return from_json(secrets.mask(to_json(json_value(value)).decode()))
    if value is None or kind is bool or kind is int or kind is str:
        return value
    if kind is float and math.isfinite(value):
        return value
    try:
        return to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings")
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise UnserialisableResultError(f"{type(value).__qualname__}: {error}") from error


def result_text(value: Any) -> str:
    """A JSON value as a model reads it: texts as they are, the rest as JSON."""
    return value if isinstance(value, str) else to_json(value).decode()


def text_for_model(record: ToolCallRecord, *, limit: int) -> str:
    """What the model is told about a call: its result, cut to head and tail when long, or its error."""
    if record.status is not CallStatus.SUCCESS:
        told = {} if record.error is None else record.error.for_model()
        text = to_json({"status": record.status.value, **told}).decode()
        return text if len(text) <= limit else text[: limit - 1] + "…"
    text = result_text(record.result)
    return text if len(text) <= limit else shrink(text, handle=record.call_id, limit=limit)


def shrink(text: str, *, handle: str, limit: int) -> str:
    """Head and tail of a long text, with the way to the rest in between."""
    head = limit * 7 // 10
    tail = limit * 2 // 10
    note = (
        f"\n… [{len(text) - head - tail:,} of {len(text):,} characters left out; "
        f'read_result(handle="{handle}", offset={head}) reads on] …\n'
    )
    return text[:head] + note + text[-tail:]

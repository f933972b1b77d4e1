"""A tool's result as plain JSON, and as the text that a model reads."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.context import Secrets
from journeyman.core.data import storable_json


class UnserialisableResultError(Exception):
    """What the tool returned has no JSON form."""


def json_value(value: Any, secrets: Secrets | None = None) -> Any:
    """The value as plain JSON, with every secret the tool has read masked."""
    plain = _plain(value)
    return secrets.masked(plain) if secrets is not None and secrets.were_read else plain


def _plain(value: Any) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is int:
        return value
    if kind is str:
        return encodable(value)
    if kind is float and math.isfinite(value):
        return value
    try:
        plain = _jsonable(value)
        try:
            data = storable_json(plain)
        except PydanticSerializationError:
            plain = _with_encodable_texts(plain)
            data = storable_json(plain)
        # JSON has no such numbers: they become text.
        return from_json(to_json(plain, inf_nan_mode="strings")) if b"NaN" in data or b"Infinity" in data else plain
    except Exception as error:  # serialising may run the value's own code
        raise UnserialisableResultError(f"{kind.__qualname__}: {error}") from error


def _jsonable(value: Any) -> Any:
    try:
        return to_jsonable_python(value, bytes_mode="base64", fallback=_number_like)
    except UnicodeEncodeError:  # a key
        return to_jsonable_python(_with_encodable_texts(value), bytes_mode="base64", fallback=_number_like)


def _number_like(value: Any) -> Any:
    """Numbers and arrays of other packages, and the ellipsis; anything else has no JSON form."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if value is Ellipsis:
        return "..."
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__qualname__} has no JSON form")


def encodable(text: str) -> str:
    """The text with "?" for lone surrogates, which UTF-8 cannot encode; undecodable file names contain them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _with_encodable_texts(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list | tuple):
        return [_with_encodable_texts(item) for item in value]
    if isinstance(value, dict):
        return {_with_encodable_texts(key): _with_encodable_texts(item) for key, item in value.items()}
    return value


def result_text(value: Any) -> str:
    """A JSON value as a model reads it: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else to_json(value).decode()


def text_for_model(record: ToolCallRecord) -> str:
    """The tool message for a call: its result, or its error."""
    if record.status is CallStatus.SUCCESS:
        return result_text(record.result)
    error = {} if record.error is None else record.error.for_model()
    return to_json({"status": record.status.value, **error}).decode()


def shrink(text: str, *, handle: str, limit: int) -> str:
    """Head and tail of a long text; the note between them says how to read the rest."""
    head, tail = limit * 7 // 10, limit * 2 // 10
    return text[:head] + _note(len(text), handle, head, tail) + text[-tail:]


def _note(whole: int, handle: str, head: int, tail: int, *, lost: bool = False) -> str:
    way = "not available any more" if lost else f'read_result(handle="{handle}", offset={head}) reads on'
    return f"\n… [{whole - head - tail:,} of {whole:,} characters left out; {way}] …\n"


def without_the_rest(shrunk: str, *, handle: str) -> str:
    """What ``shrink`` returned, its note changed to say that the rest is gone; any other text as it is.

    A tool's own text may look like the note. Only the note itself stands where it says the text was cut, with the
    right numbers and the call's own handle.
    """
    pointer = f'read_result(handle="{handle}", offset='
    for found in re.finditer(re.escape(pointer) + r"(\d{1,12})\) reads on\] …\n", shrunk):
        head, tail = int(found[1]), len(shrunk) - found.end()
        start = re.match(r"\n… \[[\d,]+ of ([\d,]{1,20}) characters", shrunk[head : found.start()])
        whole = int(start[1].replace(",", "") or 0) if start else 0
        if shrunk[head : found.end()] == _note(whole, handle, head, tail):
            return shrunk[:head] + _note(whole, handle, head, tail, lost=True) + shrunk[found.end() :]
    return shrunk

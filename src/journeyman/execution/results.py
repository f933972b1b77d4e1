"""A tool's result as plain JSON, and as the text that a model reads."""

from __future__ import annotations

import asyncio
import math
import numbers
import re
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from journeyman.core.calls import Artifact, CallStatus, ToolCallRecord
from journeyman.core.context import Secrets
from journeyman.core.data import MOST_NESTED, nested_too_deeply, storable_json
from journeyman.execution.sizes import (
    SMALL,
    Budget,
    HoldsIteratorError,
    ResultTooLargeError,
    digits,
    in_pieces,
    text_pieces,
    weigh,
)


class UnserialisableResultError(Exception):
    """What the tool returned has no JSON form."""


def json_value(value: Any, secrets: Secrets | None = None, *, limit: int | None = None) -> Any:
    """The value as plain JSON, with every secret the tool has read masked.

    Raises ResultTooLargeError where its JSON would have more bytes than ``limit``, as a rule before any is made.
    """
    return measured(value, secrets, limit=limit)[0]


def measured(
    value: Any, secrets: Secrets | None = None, *, limit: int | None = None, small: bool = False
) -> tuple[Any, int]:
    """The same, and how many bytes it has as JSON; for texts and small things, about how many.

    ``small`` is said of a value that was weighed already.
    """
    plain, size = _plain(value, limit, small=small)
    return secrets.masked(plain) if secrets is not None and secrets.were_read else plain, size


async def measured_aside(value: Any, secrets: Secrets, *, limit: int) -> tuple[Any, int]:
    """The same, in a thread where it takes long: others go on meanwhile."""
    kind = type(value)
    try:
        if kind is str:
            small = len(value) <= SMALL or value.isascii()
        elif kind is int:
            small = -SMALL < value < SMALL
        else:
            small = value is None or kind is bool or weigh(value, SMALL) <= SMALL
    except Exception:  # too large, iterators, or whatever a value of somebody's own raises: told below
        small = False
    if small:
        return measured(value, secrets, limit=limit, small=True)
    return await asyncio.to_thread(measured, value, secrets, limit=limit)


def _plain(value: Any, limit: int | None, *, small: bool = False) -> tuple[Any, int]:
    kind = type(value)
    if value is None or kind is bool:
        return value, 0
    if kind is str:
        if limit is not None and len(value) > limit:
            raise ResultTooLargeError(limit)
        return encodable(value), len(value)
    if kind is float and math.isfinite(value):
        return value, 0
    try:
        if kind is int:
            return value, digits(value)
        if limit is not None and not small:
            try:
                size = weigh(value, limit)
            except HoldsIteratorError:
                value = Budget(limit).take(value)
                size = weigh(value, limit)
            if size > SMALL:
                return _plain_by_pieces(value, limit)
        plain = _jsonable(value)
        try:
            data = storable_json(plain)
        except PydanticSerializationError:
            plain = _with_encodable_texts(plain)
            data = storable_json(plain)
        # JSON has no such numbers: they become text.
        if b"NaN" in data or b"Infinity" in data:
            plain = from_json(to_json(plain, inf_nan_mode="strings"))
        if limit is not None and len(data) > limit:
            raise ResultTooLargeError(limit)
        return plain, len(data)
    except ResultTooLargeError:
        raise
    except Exception as error:  # serialising may run the value's own code
        raise UnserialisableResultError(f"{kind.__qualname__}: {error}") from error


def _plain_by_pieces(value: Any, limit: int) -> tuple[Any, int]:
    plain = in_pieces(value, _storable_piece)
    if isinstance(plain, dict | list) and nested_too_deeply(plain):
        raise ValueError(f"nested more than {MOST_NESTED} levels deep")
    size = 0
    for piece in text_pieces(plain, to_json):
        size += len(piece)
        if size > limit:
            raise ResultTooLargeError(limit)
    return plain, size


def _storable_piece(value: Any) -> Any:
    plain = _jsonable(value)
    try:
        data = to_json(plain)
    except PydanticSerializationError:
        plain = _with_encodable_texts(plain)
        data = to_json(plain)
    return from_json(to_json(plain, inf_nan_mode="strings")) if b"NaN" in data or b"Infinity" in data else plain


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
    """A JSON value as a model reads it: a string as it is, anything else as JSON, media by their kinds and sizes."""
    if isinstance(value, str):
        return value
    if type(value) is dict and "media" in value and has_media(value):
        told = [{key: held for key, held in item.items() if key != "data"} for item in value["media"]]
        value = {**value, "media": told}
    return to_json(value).decode()


def has_media(value: Any) -> bool:
    """Whether a result has images or other media, as a list of objects with ``mime_type`` and ``data``."""
    if not isinstance(value, dict) or not isinstance(items := value.get("media"), list):
        return False
    return bool(items) and all(
        isinstance(item, dict) and isinstance(item.get("mime_type"), str) and isinstance(item.get("data", ""), str)
        for item in items
    )


def text_for_model(record: ToolCallRecord) -> str:
    """The tool message for a call: its result, or its error."""
    if record.status is CallStatus.SUCCESS:
        return result_text(record.result) if record.artifact is None else record.artifact.text
    error = {} if record.error is None else record.error.for_model()
    return to_json({"status": record.status.value, **error}).decode()


def head_and_tail(limit: int) -> tuple[int, int]:
    """How many characters of a long text's beginning and of its end a model is shown."""
    return limit * 7 // 10, limit * 2 // 10


def shrink(text: str, *, handle: str, limit: int) -> str:
    """Head and tail of a long text; the note between them says how to read the rest."""
    head, tail = head_and_tail(limit)
    return text[:head] + _note(len(text), handle, head, tail) + text[-tail:]


def shrink_artifact(artifact: Artifact, *, handle: str, limit: int) -> str:
    """The same of a result that is kept apart."""
    head, tail = head_and_tail(limit)
    first, last = artifact.head[:head], artifact.tail[-tail:]
    return first + _note(artifact.chars, handle, len(first), len(last)) + last


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

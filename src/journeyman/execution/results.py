"""A tool's result as plain JSON, and as the text that a model reads."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import logging
import math
import numbers
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from journeyman.core.calls import Artifact, CallStatus, Secrets, ToolCallRecord
from journeyman.core.data import MOST_DIGITS, MOST_NESTED, TOO_LONG_NUMBER, nested_too_deeply, storable_json, with_texts

MOST_BYTES = 64_000_000
"""Of JSON in one result, unless a policy says otherwise."""
SMALL = 50_000
"""Up to this size a result is converted in one go."""
ITEMS_AT_ONCE = 1_000
_TOO_LONG = 10**MOST_DIGITS
"""Writing such numbers takes time that grows with the square of their length."""
_SEQUENCES = (list, tuple, set, frozenset, deque)
_ATOMS = frozenset({float, bool, type(None)})


class ResultTooLargeError(Exception):
    """A result is larger than results may be."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"larger than {limit:,} bytes")


class HoldsIteratorError(Exception):
    """A value holds something that gives its items one by one."""


def weigh(value: Any, limit: int) -> int:
    """About how many characters a value has as JSON, and rather less. Raises ResultTooLargeError above the limit.

    No more is looked at than needed. Raises HoldsIteratorError where the value holds an iterator, since what that will
    give cannot be known, and ValueError where it is nested too deeply, or holds itself.
    """
    level: list[Iterable[Any]] = [(value,)]
    size = 0
    for _ in range(MOST_NESTED + 2):
        inner: list[Iterable[Any]] = []
        for held in level:
            # The view is made here and not kept: thousands of them would have the garbage collector look at everything.
            for item in chain(held, held.values()) if type(held) is dict else held:
                kind = type(item)
                if kind is str:
                    size += len(item)
                elif kind is dict:
                    size += 2 * len(item)
                    inner.append(item)
                elif kind is list:
                    size += len(item)
                    inner.append(item)
                elif kind is int:
                    size += 1 if -SMALL < item < SMALL else digits(item)
                elif kind in _ATOMS:
                    size += 1
                else:
                    size += 1 + _weight(item, inner)
            if size > limit:  # before anything that was found is looked into
                raise ResultTooLargeError(limit)
        if not inner:
            return size
        level = inner
    raise ValueError(f"nested more than {MOST_NESTED} levels deep")


def digits(number: int) -> int:
    """About how many it has. Raises ValueError for more than Python itself would read."""
    if not -_TOO_LONG < number < _TOO_LONG:
        raise ValueError(TOO_LONG_NUMBER)
    return number.bit_length() * 3 // 10 or 1


def _weight(item: Any, inner: list[Iterable[Any]]) -> int:
    """The size of something rarer; what it holds is left to be looked at."""
    if isinstance(item, str | bytes | bytearray):
        return len(item)
    if isinstance(item, memoryview):
        return item.nbytes
    if isinstance(item, _SEQUENCES):
        inner.append(item)
        return len(item)
    if isinstance(item, dict):
        inner += (dict.keys(item), dict.values(item))
    elif isinstance(item, BaseModel):
        inner.append(item.__dict__.values())
    elif dataclasses.is_dataclass(item) and not isinstance(item, type):
        inner.append([getattr(item, field.name, None) for field in dataclasses.fields(item)])
    elif hasattr(item, "tolist") and isinstance(size := getattr(item, "size", None), int):
        return 2 * size
    elif is_iterator(item):
        raise HoldsIteratorError(f"it holds a {type(item).__qualname__}")
    return 0


def larger(value: Any, limit: int) -> bool:
    try:
        weigh(value, limit)
    except ResultTooLargeError:
        return True
    return False


# --- what gives its items one by one


def is_iterator(value: Any) -> bool:
    """Whether it gives its items one by one. A file does so too, and is no result."""
    return isinstance(value, Iterator) and not isinstance(value, io.IOBase)


def listed(items: Iterable[Any], limit: int) -> list[Any]:
    """All items, unless they are too large together."""
    budget = Budget(limit)
    return [budget.take(item) for item in items]


class Budget:
    """How much of a result may still come."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit

    def take(self, value: Any) -> Any:
        """The value, its iterators read into lists. Raises ResultTooLargeError where too much has come."""
        try:
            size = weigh(value, max(0, self._left))
        except ResultTooLargeError:
            raise ResultTooLargeError(self._limit) from None
        except HoldsIteratorError:
            return self._unrolled(value)
        self._left -= size + 1
        if self._left < 0:
            raise ResultTooLargeError(self._limit)
        return value

    def _unrolled(self, value: Any) -> Any:
        if is_iterator(value) or isinstance(value, _SEQUENCES):
            return [self.take(item) for item in value]
        if isinstance(value, dict):
            return {key: self.take(item) for key, item in value.items()}
        raise HoldsIteratorError(f"a {type(value).__qualname__} holds an iterator")


# --- piece by piece


def in_pieces(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A large value converted by parts: one conversion of the whole would hold up every other thread."""
    if isinstance(value, list | tuple) and larger(value, SMALL):
        converted: list[Any] = []
        items = iter(value)
        while some := list(islice(items, ITEMS_AT_ONCE)):
            converted += [in_pieces(item, convert) for item in some] if larger(some, SMALL) else convert(some)
        return converted
    if type(value) is dict and larger(value, SMALL):
        return {convert_key(key, convert): in_pieces(item, convert) for key, item in value.items()}
    return convert(value)


def convert_key(key: Any, convert: Callable[[Any], Any]) -> Any:
    """A key as the conversion of its dict would make it."""
    return key if type(key) is str and key.isascii() else next(iter(convert({key: None})))


def text_pieces(plain: Any, encode: Callable[[Any], bytes]) -> Iterator[bytes]:
    """The JSON text of a plain value, by parts."""
    if isinstance(plain, list) and larger(plain, SMALL):
        yield b"["
        for start in range(0, len(plain), ITEMS_AT_ONCE):
            some = plain[start : start + ITEMS_AT_ONCE]
            if start:
                yield b","
            if not larger(some, SMALL):
                yield encode(some)[1:-1]
                continue
            for number, item in enumerate(some):
                if number:
                    yield b","
                yield from text_pieces(item, encode)
        yield b"]"
    elif isinstance(plain, dict) and larger(plain, SMALL):
        yield b"{"
        for number, (key, item) in enumerate(plain.items()):
            yield (b"," if number else b"") + encode(key) + b":"
            yield from text_pieces(item, encode)
        yield b"}"
    else:
        yield encode(plain)


logger = logging.getLogger("journeyman.execution")


class UnserialisableResultError(Exception):
    """What the tool returned has no JSON form."""


def measured(
    value: Any, secrets: Secrets | None = None, *, limit: int | None = None, small: bool = False
) -> tuple[Any, int]:
    """The value as plain JSON, with every secret the tool has read masked, and how many bytes it has; for texts and
    small things, about how many.

    Raises ResultTooLargeError where its JSON would have more bytes than ``limit``, as a rule before any is made.
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
        plain, data = _storable(value, storable_json)
        if limit is not None and len(data) > limit:
            raise ResultTooLargeError(limit)
        return plain, len(data)
    except ResultTooLargeError:
        raise
    except Exception as error:  # serialising may run the value's own code
        raise UnserialisableResultError(f"{kind.__qualname__}: {error}") from error


def _plain_by_pieces(value: Any, limit: int) -> tuple[Any, int]:
    plain = in_pieces(value, lambda piece: _storable(piece, to_json)[0])
    if isinstance(plain, dict | list) and nested_too_deeply(plain):
        raise ValueError(f"nested more than {MOST_NESTED} levels deep")
    size = 0
    for piece in text_pieces(plain, to_json):
        size += len(piece)
        if size > limit:
            raise ResultTooLargeError(limit)
    return plain, size


def _storable(value: Any, encode: Callable[[Any], bytes]) -> tuple[Any, bytes]:
    plain = _jsonable(value)
    try:
        data = encode(plain)
    except PydanticSerializationError:
        plain = with_texts(plain, encodable, names=True)
        data = encode(plain)
    # JSON has no such numbers: they become text.
    if b"NaN" in data or b"Infinity" in data:
        plain = from_json(to_json(plain, inf_nan_mode="strings"))
    return plain, data


def _jsonable(value: Any) -> Any:
    try:
        return to_jsonable_python(value, bytes_mode="base64", fallback=_number_like)
    except UnicodeEncodeError:  # a key
        return to_jsonable_python(with_texts(value, encodable, names=True), bytes_mode="base64", fallback=_number_like)


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


def result_text(value: Any) -> str:
    """A JSON value as a model reads it: a string as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if type(value) is dict and value.keys() == {"text", "order"} and isinstance(value["order"], list):
        return str(value["text"])  # several texts; where each ends is for who passes them on
    return to_json(value).decode()


def media_items(value: Any, *, most: int = 20_000) -> list[dict[str, Any]]:
    """The objects in a plain result that are media: ``mime_type``, ``bytes``, and ``data`` or ``artifact``.

    In their order, as far as so many values are looked at.
    """
    media: list[dict[str, Any]] = []
    left: list[Any] = [value]
    while left:
        item = left.pop()
        if type(item) is dict:
            kept = item.get("data", item.get("artifact"))
            if type(item.get("mime_type")) is str and type(item.get("bytes")) is int and type(kept) is str:
                media.append(item)
                continue
        elif type(item) is not list:
            continue
        inner = list(islice(item.values() if type(item) is dict else item, max(0, most)))
        most -= 1 + len(inner)
        left += [each for each in inner if type(each) is dict or type(each) is list][::-1]
    return media


def with_items(value: Any, others: dict[int, Any]) -> Any:
    """A plain result in which some of its objects, by identity, are replaced."""
    if id(value) in others:
        return others[id(value)]
    if type(value) is dict:
        return {key: with_items(item, others) for key, item in value.items()}
    return [with_items(item, others) for item in value] if type(value) is list else value


def without_bytes(value: Any) -> Any:
    """A plain result whose images and files only say what they are."""
    told = {id(item): {key: item[key] for key in item if key not in _KEPT} for item in media_items(value)}
    return with_items(value, told) if told else value


_KEPT = frozenset({"data", "artifact", "run_id"})


def text_for_model(record: ToolCallRecord) -> str:
    """The tool message for a call: its result, or its error."""
    if record.status is CallStatus.SUCCESS:
        if record.artifact is not None:
            return record.artifact.text
        return result_text(without_bytes(record.result) if record.media else record.result)
    error = {} if record.error is None else record.error.for_model()
    return to_json({"status": record.status.value, **error}).decode()


def head_and_tail(limit: int) -> tuple[int, int]:
    """How many characters of a long text's beginning and of its end a model is shown."""
    return limit * 7 // 10, limit * 2 // 10


def shrink(text: str | Artifact, *, handle: str, limit: int) -> str:
    """Head and tail of a long text, or of one that is kept apart; the note between them says how to read the rest."""
    head, tail = head_and_tail(limit)
    begins, ends, whole = (text, text, len(text)) if isinstance(text, str) else (text.head, text.tail, text.chars)
    first, last = begins[:head], ends[-tail:]
    return first + _note(whole, handle, len(first), len(last)) + last


def _note(whole: int, handle: str, head: int, tail: int, *, lost: bool = False) -> str:
    way = "not available any more" if lost else f'read_result(handle="{handle}", offset={head}) reads on'
    return f"\n… [{whole - head - tail:,} of {whole:,} characters left out; {way}] …\n"


def without_the_rest(shrunk: str, *, handle: str) -> str:
    """What ``shrink`` returned, its note changed to say that the rest is gone; any other text as it is.

    A tool's own text may look like the note. Only the note itself stands where it says the text was cut, with the
    right numbers and the call's own handle.
    """
    pointer = f'read_result(handle="{handle}", offset='
    for note in re.finditer(re.escape(pointer) + r"(\d{1,12})\) reads on\] …\n", shrunk):
        head, tail = int(note[1]), len(shrunk) - note.end()
        start = re.match(r"\n… \[[\d,]+ of ([\d,]{1,20}) characters", shrunk[head : note.start()])
        whole = int(start[1].replace(",", "") or 0) if start else 0
        if shrunk[head : note.end()] == _note(whole, handle, head, tail):
            return shrunk[:head] + _note(whole, handle, head, tail, lost=True) + shrunk[note.end() :]
    return shrunk

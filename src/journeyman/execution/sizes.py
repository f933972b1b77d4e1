"""How large a result is, without copying it; and large ones turned into JSON piece by piece, so that others get a turn.

A tool may return anything: a gigabyte of bytes, a generator without end. Nothing is built of it before it is known to
be within bounds. Sizes are counted low, so that what fits is never refused; the JSON text itself is measured later.
"""

from __future__ import annotations

import dataclasses
import io
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from itertools import chain, islice
from typing import Any

from pydantic import BaseModel

from journeyman.core.data import MOST_DIGITS, MOST_NESTED, TOO_LONG_NUMBER

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


async def gathered(items: AsyncGenerator[Any, Any], limit: int) -> list[Any]:
    """The same for an asynchronous generator."""
    import asyncio

    found: list[Any] = []
    budget = Budget(limit)
    async with aclosing(items):
        async for item in items:
            found.append(budget.take(item))
            if len(found) % ITEMS_AT_ONCE == 0:
                await asyncio.sleep(0)  # one that never waits would stall everybody, and no timeout would hold
    return found


# --- piece by piece


def in_pieces(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A large value converted by parts: one conversion of the whole would hold up every other thread."""
    if isinstance(value, list | tuple) and larger(value, SMALL):
        found: list[Any] = []
        items = iter(value)
        while some := list(islice(items, ITEMS_AT_ONCE)):
            found += [in_pieces(item, convert) for item in some] if larger(some, SMALL) else convert(some)
        return found
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

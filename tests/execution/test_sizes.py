"""How large results may be: counted before anything is built of them, and told to the model."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from journeyman import Agent, Journeyman, Policy, ToolError, ToolLibrary, tool
from journeyman.core.data import MOST_DIGITS, storable_json
from journeyman.core.errors import ErrorInfo
from journeyman.execution.checks import ResultCache
from journeyman.execution.results import (
    SMALL,
    HoldsIteratorError,
    ResultTooLargeError,
    larger,
    measured,
    weigh,
)
from journeyman.testing import FakeClock, ScriptedModel, call, say
from tests.playing import play

LIMIT = 1_000_000


@dataclass
class Row:
    text: str


class Page(BaseModel):
    rows: list[str]


def without_end() -> Iterator[str]:
    while True:
        yield "x" * 100


HUGE: dict[str, Callable[[], Any]] = {
    "text": lambda: "x" * (LIMIT + 1),
    "wide text": lambda: "ü" * (LIMIT + 1),
    "bytes": lambda: b"x" * (LIMIT + 1),
    "bytearray": lambda: bytearray(LIMIT + 1),
    "list of numbers": lambda: list(range(LIMIT)),
    "one list in a list": lambda: [[0] * LIMIT],
    "tuple": lambda: ("y" * 1000,) * 1001,
    "dict": lambda: {str(number): number for number in range(300_000)},
    "ordered dict": lambda: OrderedDict((str(number), number) for number in range(300_000)),
    "deque": lambda: deque(["x" * 1000] * 1001),
    "set": lambda: {f"{number:06}" for number in range(200_000)},
    "dataclasses": lambda: [Row("x" * 1000)] * 1001,
    "model": lambda: Page(rows=["x" * 1000] * 1001),
    "generator": without_end,
    "iterator": itertools.count,
    "map": lambda: map(str, itertools.count()),
    "generator in a dict": lambda: {"rows": without_end()},
    "generator of generators": lambda: (without_end() for _ in range(2)),
}


@pytest.mark.parametrize("name", HUGE)
async def test_what_is_too_large_is_an_error_that_the_model_reads(name: str) -> None:
    @tool(read_only=True)
    def give() -> Any:
        """Give a lot."""
        return HUGE[name]()

    played = await play([give], [call("give"), say("over")], policy=Policy(max_result_bytes=LIMIT))
    [record] = played.response.tool_calls
    assert record.error is not None
    assert record.error.code == "RESULT_TOO_LARGE"
    assert "1,000,000 bytes" in record.error.message
    assert "less" in (record.error.recover_action or "")
    assert "max_result_bytes" in (record.error.user_guidance or "")


async def test_an_asynchronous_generator_without_end_is_too_large() -> None:
    @tool(read_only=True)
    async def give() -> AsyncIterator[str]:
        """Give and give."""
        while True:
            yield "x" * 100

    played = await play([give], [call("give"), say("over")], policy=Policy(max_result_bytes=LIMIT))
    error = played.response.tool_calls[0].error
    assert isinstance(error, ErrorInfo)
    assert error.code == "RESULT_TOO_LARGE"


def test_nothing_is_built_of_what_is_too_large() -> None:
    made = ["x" * 1_000_000] * 500  # half a gigabyte as JSON
    tracemalloc.start()
    try:
        with pytest.raises(ResultTooLargeError):
            measured(made, limit=50_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("value", [[1, "a", None, {"b": [2.5]}], {"k": b"bytes"}, "text", Page(rows=["a"]), (1, {2})])
def test_what_fits_is_as_it_would_be_without_a_limit(value: Any) -> None:
    assert measured(value, limit=LIMIT)[0] == measured(value)[0]


@pytest.mark.parametrize(
    "value",
    [
        [{"id": number, "name": f"n{number}", "deep": [[None, 1.5, True]]} for number in range(5_000)],
        {"rows": [[number] * 10 for number in range(5_000)], "ü": float("nan"), "n": [float("inf")]},
        dict.fromkeys(range(2000), "x" * 100),
        ["caf\udce9" * 1_000] * 20,
        [Row("x" * 100)] * 1_000,
    ],
    ids=["rows", "odd", "numbers as keys", "surrogates", "dataclasses"],
)
def test_what_is_converted_in_pieces_is_as_if_in_one(value: Any) -> None:
    assert larger(value, SMALL)
    plain, size = measured(value, limit=100 * LIMIT)
    assert plain == measured(value)[0]
    assert size > SMALL


def test_a_size_is_counted_low() -> None:
    values: list[Any] = ["text", [1, 2, 3], {"a": None}, [0.5] * 100, b"12345", [[], {}]]
    for value in values:
        assert weigh(value, LIMIT) <= len(to_json(measured(value)[0]))
    with pytest.raises(HoldsIteratorError):
        weigh([iter(())], LIMIT)


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_number_that_nobody_could_read_is_no_result(wrapped: bool) -> None:
    @tool(read_only=True)
    def give() -> Any:
        """Give a number."""
        return [1 << 100_000] if wrapped else 1 << 100_000

    played = await play([give], [call("give"), say("over")])
    error = played.response.tool_calls[0].error
    assert error is not None
    assert error.code == "UNSERIALISABLE_RESULT"


@pytest.mark.parametrize("digits", [4_298, 4_299, 4_300, 4_301, 6_000])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("durable", [False, True])
async def test_a_long_number_in_arguments_is_the_model_s_mistake(
    digits: int, wrapped: bool, durable: bool, tmp_path: Path
) -> None:
    @tool(read_only=True)
    def count(number: Any) -> str:
        """Count."""
        return "counted"

    number = 10**digits - 1
    turns: list[Any] = [call("count", number=[number] if wrapped else number), say("over")]
    if durable:
        library, agent = ToolLibrary([count]), Agent(name="tester", instruction="Be brief.", all_tools=True)
        store = f"sqlite:///{tmp_path / 'store.db'}"
        async with Journeyman(library=library, store=store, model=ScriptedModel(turns)) as app:
            response = await (await app.start(agent, "Do it.")).result()
    else:
        response = (await play([count], turns)).response
    assert response.answer == "over"
    error = response.tool_calls[0].error
    assert error is not None
    assert error.code in ("INVALID_ARGUMENTS", "MALFORMED_ARGUMENTS")


@given(st.integers(0, 9_000), st.integers(4_290, 4_310), st.booleans())
def test_what_can_be_stored_can_be_read_back(before: int, digits: int, text: bool) -> None:
    """A journal must not hold a number that no reader of JSON accepts; a text of digits is a text."""
    value = ["x" * before, "9" * digits if text else 10**digits - 1]
    try:
        data = storable_json(value)
    except ValueError:
        assert not text
        assert digits > MOST_DIGITS
    else:
        assert from_json(data) == value
        assert not larger(value, LIMIT)


async def test_the_message_of_an_error_has_its_bounds_too() -> None:
    @tool(read_only=True)
    def give() -> Any:
        """Fail at length."""
        raise ToolError("LONG", "x" * 1_000_000)

    played = await play([give], [call("give"), say("over")])
    error = played.response.tool_calls[0].error
    assert error is not None
    assert len(error.message) < 5_000


def test_a_cache_is_bounded_by_what_it_holds() -> None:
    cache = ResultCache(clock=FakeClock(), max_bytes=10_000)
    for number in range(100):
        cache.put(str(number), "x" * 500, seconds=60, size=500)
    kept = [number for number in range(100) if isinstance(cache.get(str(number)), str)]
    assert 10 <= len(kept) <= 20
    cache.put("large", "x" * 5_000, seconds=60, size=5_000)
    assert not isinstance(cache.get("large"), str)

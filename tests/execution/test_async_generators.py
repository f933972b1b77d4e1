"""Tools that are asynchronous generators: what they give is collected, within the call's time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from journeyman import tool
from journeyman.testing import call
from tests.execution.pathway import Path

closed: list[str] = []


@tool(read_only=True)
async def count(to: int) -> AsyncIterator[int]:
    """Count."""
    for number in range(to):
        await asyncio.sleep(0)
        yield number


@tool(read_only=True, isolation="process")
async def count_elsewhere(to: int) -> AsyncIterator[int]:
    """Count in another process."""
    for number in range(to):
        yield number


@tool(read_only=True, timeout_seconds=1)
async def count_for_ever(waiting: bool) -> AsyncIterator[int]:
    """Count and never end, with or without letting others run."""
    try:
        while True:
            if waiting:
                await asyncio.Event().wait()
            yield 1
    finally:
        closed.append(f"waiting={waiting}")


@tool(read_only=True)
async def count_and_fail() -> AsyncIterator[int]:
    """Count to one, then fail."""
    yield 1
    raise ValueError("two is too many")


class Counter:
    """Counts, too."""

    async def __call__(self, to: int) -> AsyncIterator[int]:
        """Count."""
        for number in range(to):
            yield number


@tool(read_only=True)
def hand_on(to: int) -> Any:
    """Return somebody else's generator."""
    return count.function(to)


async def test_what_it_gives_is_the_result() -> None:
    path = Path([count, hand_on, tool(Counter(), name="counter", read_only=True)])
    for name in ("count", "hand_on", "counter"):
        assert (await path.call(call(name, to=3))).result == [0, 1, 2]


async def test_it_can_run_in_another_process() -> None:
    assert (await Path([count_elsewhere]).call(call("count_elsewhere", to=3))).result == [0, 1, 2]


async def test_one_without_end_is_given_up_in_time_and_closed() -> None:
    closed.clear()
    path = Path([count_for_ever])
    for waiting in (True, False):
        record = await path.call(call("count_for_ever", waiting=waiting))
        assert record.status == "timeout"
    assert closed == ["waiting=True", "waiting=False"]


async def test_one_that_fails_half_way_has_failed() -> None:
    error = await Path([count_and_fail], capture_content=True).error(call("count_and_fail"))
    assert (error.code, "two is too many" in error.message) == ("TOOL_RAISED", True)

"""Large results of durable runs: kept apart, read in parts, whole for whoever asks, forgotten with their runs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Policy, ToolLibrary, tool
from journeyman.app.journeyman import Journeyman
from journeyman.core.events import CallFinished
from journeyman.testing import ScriptedModel, call, say

LINES = "".join(f"line {number}: grüße\n" for number in range(30_000))
ROWS = [{"id": number, "name": f"n{number}"} for number in range(20_000)]


@tool(read_only=True)
def read_lines() -> str:
    """Read a long text. Use when it is wanted."""
    return LINES


@tool(read_only=True)
async def list_rows() -> list[dict[str, Any]]:
    """List many rows. Use when they are wanted."""
    return ROWS


@tool(read_only=True)
def count(rows: list[Any]) -> int:
    """Count rows. Use when their number is wanted."""
    return len(rows)


LIBRARY = ToolLibrary([read_lines, list_rows, count])
AGENT = Agent(name="reader", instruction="Read.", tools=LIBRARY.specifications())


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres_url"))


def opened(url: str, model: ScriptedModel, **options: Any) -> Journeyman:
    return Journeyman(library=LIBRARY, store=url, model=model, poll_seconds=0.05, **options)


@pytest.mark.parametrize(("name", "kept"), [("read_lines", LINES), ("list_rows", ROWS)])
async def test_a_large_result_is_kept_apart_and_read_in_parts(store_url: str, name: str, kept: Any) -> None:
    def read_on(request: Any) -> Any:
        [told] = [message for message in request.messages if message.role == "function"]
        assert len(told.content) <= Policy().max_result_chars
        assert "left out; read_result(handle=" in told.content
        return call("read_result", handle=told.call_id, offset=300_000, length=50)

    model = ScriptedModel([call(name), read_on, say("Read.")])
    async with opened(store_url, model) as app:
        handle = await app.start(AGENT, "Read it")
        response = await handle.result()
        large, part = response.tool_calls
        assert large.result is None
        assert large.artifact is not None
        assert large.artifact.chars > 300_000
        assert await handle.whole(large) == kept
        text = await app.store.artifacts.read(handle.run_id, large.artifact.id)
        assert text is not None
        assert part.result.startswith(text[300_000:300_050])
        facts = [fact for fact in await app.store.runs.facts(handle.run_id) if isinstance(fact, CallFinished)]
        assert max(len(fact.model_dump_json()) for fact in facts) < 60_000
        # Whoever reads the run later sees the same.
        assert (await handle.so_far()) == response
        await app.store.runs.purge(ended_before=time.time() + 60)
        assert await app.store.artifacts.read(handle.run_id, large.artifact.id) is None


async def test_a_chain_takes_on_what_is_kept_apart(store_url: str) -> None:
    async with opened(store_url, ScriptedModel([])) as app:
        rows, counted = await app.chain([{"tool": "list_rows"}, {"tool": "count", "args": {"rows": "$0"}}])
    assert rows == ROWS
    assert counted == len(ROWS)


async def test_a_result_that_ends_between_two_chunks_is_whole(store_url: str) -> None:
    async with opened(store_url, ScriptedModel([])) as app:
        handle = await app.start(AGENT, "x")
        await handle.wait()
        for length in (0, 1, 65_535, 65_536, 65_537, 131_072):
            text = "ü" * length
            named = await app.store.artifacts.put(handle.run_id, text)
            assert await app.store.artifacts.put(handle.run_id, text) == named
            assert await app.store.artifacts.read(handle.run_id, named) == text
            assert await app.store.artifacts.read(handle.run_id, named, offset=65_530, length=10) == text[65_530:65_540]
        assert await app.store.artifacts.read(handle.run_id, "nothing") is None
        assert await app.store.artifacts.read("another", named) is None


async def test_large_results_do_not_hold_up_the_others(tmp_path: Path) -> None:
    stop, worst = asyncio.Event(), 0.0

    async def tick() -> None:
        nonlocal worst
        last = time.thread_time()  # what the loop itself works, however busy the machine is
        while not stop.is_set():
            await asyncio.sleep(0.005)
            worst, last = max(worst, time.thread_time() - last), time.thread_time()

    async with opened(f"sqlite:///{tmp_path / 'store.db'}", ScriptedModel([call("list_rows"), say("x")])) as app:
        ticking = asyncio.create_task(tick())
        for _ in range(3):
            await (await app.start(AGENT, "x")).result()
        stop.set()
        await ticking
    assert worst < 3  # milliseconds as a rule

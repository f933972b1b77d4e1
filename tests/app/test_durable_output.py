"""Runs over a store whose answer is data: the type in one process, the schema in every other."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Journeyman, RunStatus
from journeyman.testing import CrashPoint, ScriptedModel, call, crash_and_recover, say
from tests.app.output_program import AGENT, Order, model
from tests.waiting import WAIT_SECONDS

GOOD = {"id": "W-17", "total": 12.5}
FULL = {**GOOD, "currency": "EUR"}
PLAIN = Agent(name="clerk", instruction="Look orders up.")


async def test_a_handle_gives_the_type_and_the_store_the_data(tmp_path: Path) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path}/runs.db", model=model()) as app:
        handle = await app.start(AGENT, "Find W-17", output=Order)
        response = await handle.result()
        assert (response.output, response.outcome) == (Order(**GOOD), "achieved")
        assert response.model_dump(mode="json")["output"] == FULL
        elsewhere = await app.handle(handle.run_id)
        assert (await elsewhere.result()).output == FULL
        assert (await elsewhere.result()).output_as(Order) == Order(**GOOD)
        answered = [event async for event in elsewhere.events() if event.type == "answer"]
        assert [event.output for event in answered if event.type == "answer"] == [FULL]
        order = await app.store.runs.order(handle.run_id)
        assert order is not None
        assert order.agent["output"]["required"] == ["id", "total"]


async def test_another_process_goes_on_with_the_schema_alone(tmp_path: Path) -> None:
    url, asked = f"sqlite:///{tmp_path}/runs.db", asyncio.Event()

    async def hang(_: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    first = ScriptedModel([call("look"), call("finish", **{**GOOD, "total": "much"}), hang])
    async with Journeyman(store=url, model=first, grace_seconds=0.05) as app:
        handle = await app.start(AGENT, "Find W-17", output=Order)
        async with asyncio.timeout(WAIT_SECONDS):
            await asked.wait()
    # No type here: what only the type would refuse (a total below 0) passes, what the schema refuses does not.
    script = [*first.turns[:2], call("finish", id=5, total=1), call("finish", id="W-17", total=-1)]
    async with Journeyman(library=AGENT.own_library, store=url, model=ScriptedModel(script)) as app:
        [resumed] = await app.resume()
        response = await resumed.result()
        assert (response.status, response.output) == (
            RunStatus.COMPLETED,
            {"id": "W-17", "total": -1, "currency": "EUR"},
        )
        # Whoever has the type is told that this is none of it.
        same = await app.start(AGENT.with_output(Order), "Find W-17", run_id=handle.run_id)
        typed = await same.result()
        assert (typed.output, typed.outcome) == (None, "not")
        assert typed.error is not None
        assert "must be positive" in typed.error.message
        assert "-1" in typed.answer


async def test_one_that_never_fits_is_kept_as_such(tmp_path: Path) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path}/runs.db", model=ScriptedModel([say("12.50")] * 10)) as app:
        handle = await app.session("s").send(PLAIN, "Find W-17", output=Order)
        response = await handle.result()
        again = await (await app.handle(handle.run_id)).result()
    for found in (response, again):
        assert (found.output, found.outcome, found.answer) == (None, "not", "12.50")
        assert (found.status, found.error and found.error.code) == (RunStatus.FAILED, "OUTPUT_INVALID")


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after:10", "after:15", "before:16", "after:16"])
def test_killed_and_begun_again_it_gives_the_same(tmp_path: Path, point: str) -> None:
    when, _, fact = point.partition(":")
    url = f"sqlite:///{tmp_path}/runs.db"
    command = [sys.executable, "-m", "tests.app.output_program", url]
    at = CrashPoint("after" if when == "after" else "before", int(fact))
    recovery = crash_and_recover(command, at, timeout=WAIT_SECONDS)
    assert recovery.crashed
    assert recovery.output.strip() == f"{Order(**GOOD)!r} {FULL} completed 3"

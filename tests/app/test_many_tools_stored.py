"""Runs of agents with many tools over a store: the offer outlives its process, and sources that come and go."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Journeyman, ToolLibrary, run
from journeyman.core.events import ToolsOffered
from journeyman.testing import CrashPoint, ScriptedModel, call, crash_and_recover, say
from tests.app.many_tools_program import AGENT, MOST, POLICY, TASK, TOOLS, model, offers, work
from tests.sources.toy import Toy, made
from tests.waiting import WAIT_SECONDS


@pytest.mark.parametrize("turn", range(1, 6))
async def test_another_process_goes_on_with_the_same_offer(tmp_path: Path, turn: int) -> None:
    url, asked = f"sqlite:///{tmp_path}/runs.db", asyncio.Event()

    async def hang(_: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    whole = model()
    async with Journeyman(store=f"sqlite:///{tmp_path}/whole.db", model=whole, policy=POLICY) as app:
        await (await app.start(AGENT, TASK)).result()
    first = ScriptedModel([*model().turns[: turn - 1], hang])
    async with Journeyman(store=url, model=first, grace_seconds=0.05, policy=POLICY) as app:
        handle = await app.start(AGENT, TASK)
        async with asyncio.timeout(WAIT_SECONDS):
            await asked.wait()
    assert offers(first) == offers(whole)[:turn]
    # Here the tools come in another order, and words are told apart otherwise: a new choice would be another one.
    others = [work.with_changes(name=f"archive_{n}", description="Archive the contract.") for n in range(30)]
    second = model()
    library = ToolLibrary([*others, *reversed(TOOLS)])
    async with Journeyman(library=library, store=url, model=second, policy=POLICY) as app:
        [resumed] = await app.resume()
        assert (await resumed.result()).status == "completed"
        facts = await app.store.runs.facts(handle.run_id)
    assert offers(second)[0] == offers(whole)[turn - 1]
    reasons = [fact.reason for fact in facts if isinstance(fact, ToolsOffered)]
    assert list(dict.fromkeys(reasons)) == ["chosen", "found", "called", "fallback"]


@pytest.mark.slow
@pytest.mark.parametrize("fact", [2, 8, 9, 21])
def test_killed_and_begun_again_it_offers_the_same(tmp_path: Path, fact: int) -> None:
    command = [sys.executable, "-m", "tests.app.many_tools_program"]
    recovery = crash_and_recover(
        [*command, f"sqlite:///{tmp_path}/runs.db"], CrashPoint("before", fact), timeout=WAIT_SECONDS
    )
    assert recovery.crashed
    played = recovery.output.split()
    assert len(played) == MOST
    assert {"find_tools", "archive_contract", "book_parcel", "share_song"} <= set(played)


async def test_a_server_that_goes_and_comes_back_breaks_no_run() -> None:
    brought = [made(f"shelf_{number}", description=f"Look at shelf {number}.") for number in range(60)]
    toy = Toy("toy", *brought)
    async with ToolLibrary(TOOLS, sources=[toy]) as library:
        agent = Agent(name="a", instruction="i", all_tools=True, max_iterations=20)

        async def gone(_: Any) -> Any:
            await toy.has()
            return call("send_parcel")

        async def back(_: Any) -> Any:
            await toy.has(*brought)
            return call("find_tools", query="shelf 8", k=1)

        played = ScriptedModel([call("shelf_7"), gone, call("shelf_7"), back, call("shelf_8"), say("done")])
        response = await run(agent, "Look at shelf 7", library=library, model=played)
    assert response.status == "completed"
    failed = [record.tool_name for record in response.tool_calls if not record.success]
    assert failed == ["shelf_7"]
    before, same, without, _, again, _ = offers(played)
    assert before == same
    assert not any(name.startswith("shelf") for name in without)
    assert [name for name in again if name in before] == [name for name in before if name in again]
    assert {"shelf_7", "shelf_8"} <= set(again)
    assert all(len(offered) <= 20 for offered in offers(played))


async def test_while_an_older_program_is_at_work_nothing_is_recorded_and_a_resumed_run_chooses_again(
    tmp_path: Path,
) -> None:
    url, asked = f"sqlite:///{tmp_path}/runs.db", asyncio.Event()

    async def hang(_: Any) -> str:
        app._shared.format = ToolsOffered.since
        asked.set()
        await asyncio.Event().wait()
        return ""

    first = ScriptedModel([*model().turns[:2], hang])
    async with Journeyman(store=url, model=first, grace_seconds=0.05, policy=POLICY) as app:
        app._shared.format = ToolsOffered.since - 1
        handle = await app.start(AGENT, TASK)
        async with asyncio.timeout(WAIT_SECONDS):
            await asked.wait()
        facts = await app.store.runs.facts(handle.run_id)
    assert not any(isinstance(fact, ToolsOffered) for fact in facts)
    second = model()
    async with Journeyman(library=ToolLibrary(TOOLS), store=url, model=second, policy=POLICY) as app:
        [resumed] = await app.resume()
        assert (await resumed.result()).status == "completed"
    assert "archive_contract" in offers(second)[0]
    assert "book_parcel" in offers(second)[0]  # it was found, and called
    assert len(offers(second)[0]) == MOST


async def test_a_run_goes_on_where_none_of_the_chosen_tools_is_left(tmp_path: Path) -> None:
    url, asked = f"sqlite:///{tmp_path}/runs.db", asyncio.Event()

    async def hang(_: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(name="a", instruction="i", all_tools=True)
    async with Journeyman(
        library=ToolLibrary(TOOLS), store=url, model=ScriptedModel([hang]), grace_seconds=0.05, policy=POLICY
    ) as app:
        await app.start(agent, TASK)
        async with asyncio.timeout(WAIT_SECONDS):
            await asked.wait()
    renamed = ToolLibrary(TOOLS).prefixed("new_")
    second = ScriptedModel([call("new_archive_contract"), say("done")])
    async with Journeyman(library=renamed, store=url, model=second, policy=POLICY) as app:
        [resumed] = await app.resume()
        assert (await resumed.result()).status == "completed"
    assert "new_archive_contract" in offers(second)[0]
    assert len(offers(second)[0]) == MOST

"""Runs that were begun with other tools than this process has: their own are found, or they stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from journeyman import Agent, ConfigurationError, JourneymanError, RunStatus, ToolLibrary, tool
from journeyman.app.desk import LOCAL, Desk
from journeyman.app.journeyman import Journeyman
from journeyman.app.service import Service
from journeyman.core.storing import Origin, RunOrder
from journeyman.testing import FakeClock, ScriptedModel, call, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, Ledger, deletes

if TYPE_CHECKING:
    from journeyman.toolkits.tasks import TaskService

SHOP = Origin(library="/srv/shop.py")


async def begun(opens: Opens, agent: Agent) -> str:
    """A run whose call was approved when the process that began it was gone."""
    async with opens(deletes("W-1"), origin=SHOP) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
    async with opens(deletes("W-1"), library=ToolLibrary()) as app:
        [asked] = await app.approvals.pending()
        await app.approvals.approve(asked.id, by="grace")
    return handle.run_id


async def test_a_process_with_other_tools_finds_those_of_the_run(
    opens: Opens, agent: Agent, library: ToolLibrary, ledger: Ledger
) -> None:
    run_id = await begun(opens, agent)
    found: list[Origin | None] = []

    def find(order: RunOrder) -> ToolLibrary:
        found.append(order.origin)
        return library

    async with opens(deletes("W-1"), library=ToolLibrary(), origin=Origin(), find_tools=find) as app:
        [handle] = await app.resume(run_id)
        assert (await handle.result()).outcome == "achieved"
    assert (found[0], len(ledger.effects())) == (SHOP, 1)


@pytest.mark.parametrize("found", [None, ToolLibrary()], ids=["not loaded", "without the tool"])
async def test_a_run_whose_tools_are_not_found_stays_as_it_is(
    opens: Opens, agent: Agent, library: ToolLibrary, ledger: Ledger, found: ToolLibrary | None
) -> None:
    run_id = await begun(opens, agent)

    def find(_: RunOrder) -> ToolLibrary:
        if found is None:
            raise ConfigurationError("/srv/shop.py is not there")
        return found

    async with opens(deletes("W-1"), library=ToolLibrary(), origin=Origin(), find_tools=find) as app:
        facts = len(await app.store.runs.facts(run_id))
        [handle] = await app.resume(run_id)
        with pytest.raises(JourneymanError, match=r"/srv/shop.py is not there|delete_order: no implementation"):
            await handle.wait()
        row = await app.store.runs.get(run_id)
        assert row is not None
        assert (row.status, len(await app.store.runs.facts(run_id))) == (RunStatus.RUNNING, facts)
        assert row.trouble
    assert ledger.effects() == {}
    async with opens(deletes("W-1"), origin=SHOP) as app:  # one that has the tools
        [handle] = await app.resume(run_id)
        assert (await handle.result()).outcome == "achieved"


async def test_a_run_can_be_cancelled_where_its_tools_cannot_be_loaded(opens: Opens, agent: Agent) -> None:
    run_id = await begun(opens, agent)

    def find(_: RunOrder) -> ToolLibrary:
        raise AssertionError("nobody needs them")

    async with opens(deletes("W-1"), library=ToolLibrary(), origin=Origin(), find_tools=find) as app:
        await app.cancel(run_id)
        assert await (await app.handle(run_id)).status() == "cancelled"


# --- questions that nobody answered


async def test_every_door_says_of_an_expired_question_that_nobody_waits(opens: Opens, agent: Agent, url: str) -> None:
    clock = FakeClock(start=1_000_000.0)
    async with opens(deletes("W-1"), clock=clock) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
    late = FakeClock(start=3_000_000.0)
    app = Journeyman(library=ToolLibrary(), store=url, clock=late)  # looks, and carries out nothing
    await app.store.open()
    try:
        desk = Desk(app, LOCAL)
        assert [row.status for row in await desk.runs()] == [RunStatus.RUNNING]
        assert list(await desk.runs(statuses=[RunStatus.AWAITING_APPROVAL])) == []
        assert (await desk.run(handle.run_id)).status is RunStatus.RUNNING
        assert await desk.counts() == (1, 0)
        assert list(await desk.approvals()) == []
        [asked] = await desk.approvals(pending=False)
        assert (asked.status, (await desk.approval(asked.id)).status) == ("expired", "expired")
        assert (await desk.blockers(await desk.run(handle.run_id))).unattended
    finally:
        await app.store.close()


# --- how tools have fared


async def test_what_was_refused_is_not_held_against_a_tool(opens: Opens) -> None:
    @tool
    def fragile(number: int) -> int:
        """Divide. Use to divide."""
        return 1 // number

    library = ToolLibrary([fragile])
    calls = [call("fragile", number="many"), call("fragile", number=1), call("fragile", number=2)]
    agent = Agent(name="a", instruction="x", tools=library.specifications())
    async with opens(ScriptedModel([*calls, say("Over.")]), library=library) as app:
        handle = await app.start(agent, "Divide", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        [asked] = await app.approvals.pending()
        await app.approvals.deny(asked.id, by="grace")
        assert await handle.wait() == "awaiting_approval"
        [asked] = await app.approvals.pending()
        await app.approvals.approve(asked.id, by="grace")
        await handle.result()
        counts = library.counts("fragile")
        assert (counts.success_count, counts.failure_count) == (1, 0)
        rows = await app.store.calls.list(tool_name="fragile")
        assert sorted(row.status for row in rows) == ["denied", "error", "success"]
        service = Service(app=app, store=app.store, tasks=cast("TaskService", None), agents={})
        [health] = await service.health(seconds=3600)
        assert (health.calls, health.success_rate) == (1, 1.0)

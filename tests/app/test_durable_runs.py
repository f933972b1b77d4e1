"""Durable runs in one app after another: sessions, cancelling, events, handing over, versions, traces, many runs."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Principal, RiskLevel, RunStatus, ToolContext, ToolLibrary, tool
from journeyman.core import ApprovalStatus
from journeyman.core.events import Event, MessageReceived, TextDelta
from journeyman.core.protocols import ModelRequest
from journeyman.stores.store import open_store
from journeyman.testing import FakeClock, ScriptedModel, call, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, Ledger, clerk, deletes, shop, whole_day
from tests.marking import daily
from tests.waiting import until


class Gate:
    """Tools that wait until a test lets them go, and say when they have begun."""

    def __init__(self, ledger: Ledger) -> None:
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self._ledger = ledger

    def library(self) -> ToolLibrary:
        @tool(risk=RiskLevel.REVERSIBLE, idempotent=True)
        async def slow(order_id: str, context: ToolContext) -> str:
            """Do something slow. Use when there is time."""
            self.entered.set()
            await self.open.wait()
            self._ledger.write("slow", context.idempotency_key, order_id)
            return "done at last"

        return ToolLibrary([slow])


@pytest.fixture
def gate(ledger: Ledger) -> Gate:
    return Gate(ledger)


def slowly() -> ScriptedModel:
    return ScriptedModel([call("slow", order_id="W-1"), call("slow", order_id="W-2"), say("Done.")])


# --- sessions


async def test_runs_of_one_session_go_one_after_another_and_remember(opens: Opens, agent: Agent) -> None:
    model = ScriptedModel([say("I heard you.")])
    async with opens(model) as app:
        session = app.session("s-1")
        handles = [await session.send(agent, f"Number {number}") for number in (1, 2, 3)]
        assert [(await handle.result()).status for handle in handles] == ["completed"] * 3
        said = [message.content for message in await session.messages()]
    assert said == ["Number 1", "I heard you.", "Number 2", "I heard you.", "Number 3", "I heard you."]
    assert len(model.requests[-1].messages) == 6  # the instruction, two exchanges, and the third question


async def test_the_next_of_a_session_waits_across_a_restart(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1")) as app:
        session = app.session("s-1")
        first = await session.send(agent, "Delete W-1", principal=ADA)
        second = await session.send(agent, "What did you do?", principal=ADA)
        assert await first.wait() == "awaiting_approval"
        assert await second.status() is RunStatus.QUEUED
    async with opens(deletes("W-1")) as app:
        second, first = await app.resume()
        [approval] = await app.approvals.pending()
        assert await second.status() is RunStatus.QUEUED
        await app.approvals.deny(approval.id, by="grace")
        assert await first.wait() == "completed"
        assert await second.wait() == "awaiting_approval"
        messages = await app.session("s-1").messages()
    assert [message.role for message in messages] == ["user", "assistant", "function", "assistant"]


# --- cancelling


async def test_a_run_at_work_is_cancelled_with_a_whole_record(opens: Opens, gate: Gate) -> None:
    library = gate.library()
    async with opens(slowly(), library=library) as app:
        handle = await app.start(clerk(library), "Go")
        await gate.entered.wait()
        await handle.cancel()
        response = await handle.result()
        events = [event async for event in handle.events()]
    assert (response.status, response.tool_calls[0].status) == ("cancelled", "cancelled")
    assert [event.type for event in events].count("call_finished") == 1
    assert events[-1].type == "run_finished"


async def test_a_run_that_another_app_works_on_is_cancelled_there(opens: Opens, gate: Gate) -> None:
    library = gate.library()
    async with opens(slowly(), library=library) as app, opens(slowly(), library=library) as desk:
        handle = await app.start(clerk(library), "Go")
        await gate.entered.wait()
        await (await desk.handle(handle.run_id)).cancel()
        assert await handle.wait() == "cancelled"


async def test_a_cancelled_run_that_waits_in_its_session_never_begins(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    model = ScriptedModel([call("note", order_id="W-1"), call("delete_order", order_id="W-1"), say("Done.")])
    async with opens(model) as app:
        session = app.session("s-1")
        first = await session.send(agent, "One", principal=ADA)
        second = await session.send(agent, "Two", principal=ADA)
        assert await first.wait() == "awaiting_approval"
        await second.cancel()
        await first.cancel()
        assert await second.wait() == "cancelled"
    assert ledger.effects() == {("note", "W-1"): 1}


async def test_cancelling_needs_neither_the_tools_nor_the_model(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-1")) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        await handle.wait()
    async with opens(None, library=ToolLibrary()) as desk:
        await (await desk.handle(handle.run_id)).cancel()
        assert await (await desk.handle(handle.run_id)).status() is RunStatus.CANCELLED


async def test_cancelling_what_has_ended_changes_nothing(opens: Opens, agent: Agent) -> None:
    async with opens(ScriptedModel([say("Done.")])) as app:
        handle = await app.start(agent, "Go")
        await handle.result()
        before = [event.seq async for event in handle.events()]
        await handle.cancel()
        assert await handle.status() is RunStatus.COMPLETED
        assert [event.seq async for event in handle.events()] == before


# --- events


async def test_events_after_a_number_are_exactly_those_that_follow(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-1")) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        await handle.wait()
        [approval] = await app.approvals.pending()
        await app.approvals.deny(approval.id)
        await handle.result()
    async with opens(deletes("W-1")) as app:
        handle = await app.handle(handle.run_id)
        whole = [event async for event in handle.events()]
        assert [event.seq for event in whole] == list(range(1, len(whole) + 1))
        for after in range(len(whole)):
            assert [event async for event in handle.events(after=after)] == whole[after:]


async def test_whoever_watches_hears_each_delta_once_and_before_its_message(opens: Opens, agent: Agent) -> None:
    model = ScriptedModel([call("look", order_id="W-1"), say("All is well with it.")])
    async with opens(model) as app:
        handle = await app.start(agent, "Look at W-1")
        heard: list[Event] = [event async for event in handle.events()]
    answer = next(at for at, event in enumerate(heard) if isinstance(event, MessageReceived) and event.text)
    deltas = [event for event in heard[:answer] if isinstance(event, TextDelta)]
    assert "".join(delta.text for delta in deltas) == "All is well with it."
    assert not any(isinstance(event, TextDelta) for event in heard[answer:])


# --- handing over


async def test_closing_finishes_the_step_under_way_and_leaves_the_rest(
    opens: Opens, gate: Gate, ledger: Ledger
) -> None:
    library, model = gate.library(), slowly()
    async with opens(model, library=library) as app:
        handle = await app.start(clerk(library), "Go")
        await gate.entered.wait()
        asyncio.get_running_loop().call_later(0.1, gate.open.set)
    assert ledger.effects() == {("slow", "W-1"): 1}
    assert len(model.requests) == 1
    async with opens(slowly(), library=library) as app:
        [again] = await app.resume()
        assert again.run_id == handle.run_id
        assert (await again.result()).status == "completed"
    assert ledger.effects() == {("slow", "W-1"): 1, ("slow", "W-2"): 1}


async def test_a_step_longer_than_the_grace_is_handed_over_and_repeated_under_its_key(
    opens: Opens, gate: Gate, ledger: Ledger
) -> None:
    library = gate.library()
    async with opens(slowly(), library=library, grace_seconds=0.05) as app:
        await app.start(clerk(library), "Go")
        await gate.entered.wait()
    gate.open.set()
    assert ledger.lines() == []
    async with opens(slowly(), library=library) as app:
        [handle] = await app.resume()
        response = await handle.result()
    assert [record.status for record in response.tool_calls] == ["success", "success"]
    assert response.tool_calls[0].attempts == 2
    assert [key for _, key, _ in ledger.lines()] == [f"{handle.run_id}.call_1_1", f"{handle.run_id}.call_2_1"]


async def test_starting_twice_under_one_name_starts_once(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    model = ScriptedModel([call("note", order_id="W-1"), say("Done.")])
    async with opens(model) as app:
        first = await app.start(agent, "Go", run_id="mine")
        second = await app.start(agent, "Go", run_id="mine")
        assert (await first.result()).run_id == (await second.result()).run_id == "mine"
    assert ledger.effects() == {("note", "W-1"): 1}


async def test_two_apps_of_one_process_do_not_take_each_other_s_runs(opens: Opens, gate: Gate, ledger: Ledger) -> None:
    library = gate.library()
    async with opens(slowly(), library=library) as app, opens(slowly(), library=library) as other:
        handle = await app.start(clerk(library), "Go")
        await gate.entered.wait()
        [same] = await other.resume()
        gate.open.set()
        assert (await same.result()).status == "completed"
        events = [event.type async for event in handle.events()]
    assert "run_resumed" not in events
    assert ledger.effects() == {("slow", "W-1"): 1, ("slow", "W-2"): 1}


# --- versions, binding


async def test_a_run_goes_on_with_the_agent_it_was_started_with(opens: Opens, library: ToolLibrary) -> None:
    old = Agent(name="clerk", instruction="The old way.", tools=library.specifications())
    async with opens(deletes("W-1")) as app:
        handle = await app.start(old, "Delete W-1", principal=ADA)
        await handle.wait()
    model = deletes("W-1")
    async with opens(model) as app:
        [handle] = await app.resume()
        new = old.model_copy(update={"instruction": "The new way."})
        await app.start(new, "Delete W-2", principal=ADA)
        [approval] = await app.approvals.pending(run_id=handle.run_id)
        await app.approvals.approve(approval.id, by="grace")
        await handle.result()
    asked = {request.run_id: request.messages[0].content for request in model.requests}
    assert asked.pop(handle.run_id) == "The old way."
    assert set(asked.values()) == {"The new way."}


async def test_a_tool_that_is_gone_when_a_run_goes_on_is_answered_to_the_model(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    async with opens(deletes("W-1")) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        await handle.wait()
        [approval] = await app.approvals.pending()
    fewer = ToolLibrary(shop(ledger).lookup(name) for name in ("look", "stamp", "note"))  # type: ignore[misc]  # all there
    async with opens(deletes("W-1"), library=fewer) as app:
        [handle] = await app.resume()
        assert await handle.wait() == "awaiting_approval"
        await app.approvals.approve(approval.id, by="grace")
        response = await handle.result()
    assert response.status == "completed"
    [refused] = response.tool_calls
    assert refused.error is not None
    assert refused.error.code == "UNKNOWN_TOOL"
    assert ledger.effects() == {}


# --- traces, retention


async def test_traces_are_files_and_old_ones_are_purged_with_their_runs(
    opens: Opens, agent: Agent, tmp_path: Path
) -> None:
    folder = tmp_path / "traces"
    async with opens(ScriptedModel([call("look", order_id="W-1"), say("Done.")]), traces=folder) as app:
        handle = await app.start(agent, "Look")
        task_id = (await handle.result()).task_id
        [path] = folder.iterdir()
        assert path.name == f"{task_id}.json"
        assert json.loads(path.read_text())["tools_used"] == ["look"]
    os.utime(path, (0, 0))
    late = FakeClock(start=4_000_000_000.0)
    async with opens(whole_day(), traces=folder, clock=late) as app:
        await until(lambda: not path.exists())
        assert await app.store.runs.get(handle.run_id) is None


# --- many


@pytest.mark.slow
@pytest.mark.parametrize("many", daily(200, nightly=1_000))
async def test_many_waiting_runs_hold_nothing_and_all_go_on(
    opens: Opens, agent: Agent, ledger: Ledger, url: str, tmp_path: Path, many: int
) -> None:
    async def all_are(status: RunStatus) -> None:
        async def counted() -> bool:
            return len(await app.store.runs.list(statuses=[status], limit=many + 1)) == many

        await until(counted)

    def connections() -> int:
        links = (os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path))
        return sum(link.startswith(str(tmp_path / "store.db")) for link in links)

    async with opens(deletes("W-1")) as app:
        one = await app.start(agent, "Delete W-1", principal=ADA)
        await one.wait()
        tasks, threads, files = len(asyncio.all_tasks()), threading.active_count(), connections()
        for number in range(1, many):
            await app.start(agent, f"Delete W-1 ({number})", principal=ADA)
        await all_are(RunStatus.AWAITING_APPROVAL)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) <= tasks
        # Tools and reads have pools of a fixed size; nothing grows with the runs.
        assert threading.active_count() <= threads + 8
        assert connections() <= files + 8
    store = open_store(url)
    await store.open()
    for approval in await store.approvals.list(limit=many + 1):
        await store.approvals.decide(approval.id, ApprovalStatus.APPROVED, by="grace")
    await store.close()
    async with opens(deletes("W-1")) as app:
        handles = await app.resume()
        assert len(handles) == many
        await all_are(RunStatus.COMPLETED)
    assert ledger.effects() == {("delete_order", "W-1"): many}
    assert len({key for _, key, _ in ledger.lines()}) == many


async def test_a_run_amounts_to_the_same_whether_one_waited_for_its_end_or_comes_later(
    opens: Opens, agent: Agent
) -> None:
    async with opens(whole_day()) as app:
        handle = await app.start(agent, "The whole day", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        for approval in await app.approvals.pending():
            await app.approvals.deny(approval.id, by="grace", reason="not today")
        waited_for = await handle.result()
        assert await (await app.handle(handle.run_id)).result() == waited_for
        assert await handle.so_far() == waited_for


# --- fair turns


async def test_many_slow_runs_of_one_principal_keep_no_other_waiting(opens: Opens, gate: Gate) -> None:
    library = gate.library()
    agent = Agent(name="hand", instruction="Work.", tools=library.specifications())

    def first(request: ModelRequest) -> Any:
        return say("At once.") if request.messages[-1].content == "Quickly" else call("slow", order_id="W-1")

    async with opens(ScriptedModel([first, say("Done.")]), library=library, concurrency=8) as app:
        slow = [await app.start(agent, "Slowly", principal=Principal("ada")) for _ in range(20)]
        await gate.entered.wait()
        for name in ("bob", "eve"):
            quick = await app.start(agent, "Quickly", principal=Principal(name))
            assert (await quick.result()).answer == "At once."
        assert not gate.open.is_set()
        gate.open.set()
        assert [(await handle.result()).status for handle in slow] == ["completed"] * 20


async def test_a_program_without_principals_has_every_place(opens: Opens, gate: Gate) -> None:
    library = gate.library()
    agent = Agent(name="hand", instruction="Work.", tools=library.specifications())
    model = ScriptedModel([call("slow", order_id="W-1"), say("Done.")])
    async with opens(model, library=library, concurrency=8) as app:
        handles = [await app.start(agent, "Slowly") for _ in range(10)]
        await until(lambda: sum(app.runner.at_work(handle.run_id) for handle in handles) == 8)
        gate.open.set()
        assert [(await handle.result()).status for handle in handles] == ["completed"] * 10

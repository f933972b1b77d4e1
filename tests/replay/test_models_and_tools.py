"""Another model, another instruction, other tools: agreement, first difference, costs, and no effect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Approve, ConfigurationError, Deny, Journeyman, RiskLevel, ToolLibrary, Usage, run, tool
from journeyman.app.assembly import model_named
from journeyman.app.service import task_library
from journeyman.core.playbook import StrategyState, ToolCallingStrategy
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.execution.recorder import MemoryJournal
from journeyman.models.embedded.files import supported
from journeyman.replay.gate import differences, replay_tools
from journeyman.replay.models import RememberingModel, estimate, replay_model
from journeyman.replay.recording import Recording
from journeyman.replay.stage import Today
from journeyman.stores.store import open_store
from journeyman.testing import ScriptedModel, call, say
from tests.replay.shop import AGENT, EFFECTS, LIBRARY

OLD: list[Any] = [
    call("find_order", customer="Ada"),
    call("refund_order", order_id="ORD-00003"),
    say("Refunded."),
]


class Priced:
    """A scripted model that takes tokens."""

    def __init__(self, turns: list[Any], name: str = "gpt-4o") -> None:
        self.scripted = ScriptedModel(turns, name=name)

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        said = await self.scripted.respond(request, deltas)
        return said.model_copy(update={"usage": Usage(requests=1, input_tokens=1_000, output_tokens=100)})


async def recorded() -> Recording:
    journal = MemoryJournal()
    await run(
        AGENT,
        "Refund the order of Ada",
        library=LIBRARY,
        model=Priced(OLD),
        approver=lambda approval: Approve(by="grace"),
        journal=journal,
    )
    [run_id] = journal.runs()
    EFFECTS.clear()
    return Recording(run_id, await journal.read(run_id))


async def each(*recordings: Recording) -> AsyncIterator[Recording]:
    for recording in recordings:
        yield recording


@pytest.mark.parametrize("mode", ["steps", "free"])
async def test_a_model_agrees_with_itself(mode: Any) -> None:
    recording = await recorded()
    report = await replay_model(each(recording, recording), Today(LIBRARY), Priced(OLD), mode=mode)
    assert (report.shares["runs_that_agree"].part, report.counts["runs"]) == (2, 2)
    assert (report.findings, report.counts["steps"]) == ((), 6)
    assert report.counts["recorded_tokens"] == report.counts["tokens_now"] == 6_600
    assert not EFFECTS


async def test_step_by_step_says_where_another_model_differs() -> None:
    recording = await recorded()
    new = [
        call("find_order", customer="Adelaide"),
        call("tag_order", order_id="ORD-00003", tag="x"),
        say("Done, really."),
    ]
    report = await replay_model(each(recording), Today(LIBRARY), Priced(new, "other"))
    assert str(report.shares["steps_that_agree"]).startswith("1 of 3")
    assert {(item.change, item.tool, item.rule, item.call_id) for item in report.findings} == {
        ("other_arguments", "find_order", "other values of customer", "step 1"),
        ("other_calls", "refund_order", "tag_order in its place", "step 2"),
    }
    assert any(note.startswith("Recorded: gpt-4o") and "US$" in note for note in report.notes)
    assert any(note == "Now: other, no price is known." for note in report.notes)
    assert not EFFECTS


async def test_a_free_replay_ends_where_it_leaves_the_recording() -> None:
    recording = await recorded()
    new: list[Any] = [call("find_order", customer="Ada"), call("find_order", customer="Grace"), say("Nothing.")]
    report = await replay_model(each(recording), Today(LIBRARY), ScriptedModel(new), mode="free")
    assert (report.counts["not_recorded"], report.counts["steps"]) == (1, 2)
    assert ("not_recorded", "find_order") in {(item.change, item.tool) for item in report.findings}
    assert not EFFECTS
    live = await replay_model(each(recording), Today(LIBRARY), ScriptedModel(new), mode="free", live=True)
    assert (live.counts["steps"], dict(EFFECTS)) == (3, {"find_order": 1})  # a read, on request
    changing: list[Any] = [call("refund_order", order_id="ORD-77777"), say("Refunded.")]
    EFFECTS.clear()
    await replay_model(each(recording), Today(LIBRARY), ScriptedModel(changing), mode="free", live=True)
    assert not EFFECTS


async def test_another_instruction_is_what_the_model_reads_and_costs_are_known_before() -> None:
    recording, model = await recorded(), ScriptedModel(OLD)
    await replay_model(each(recording), Today(LIBRARY, instruction="Be brief."), model)
    assert {request.messages[0].content for request in model.requests} == {"Be brief."}
    asked = await estimate(each(recording), "gpt-4o")
    assert (asked.runs, asked.questions, asked.tokens) == (1, 3, 3_300)
    assert asked.cost == pytest.approx(0.0105)


async def test_reads_are_made_again_and_changes_never() -> None:
    calls: list[str] = []

    @tool(read_only=True)
    def find_order(customer: str) -> dict[str, Any]:
        """Find the latest order of a customer. Use when an order is needed and its number is not known."""
        calls.append(customer)
        return {"order_id": "ORD-00003", "customer": customer, "total": 41, "found_at": 5, "open": True}

    @tool(risk=RiskLevel.IRREVERSIBLE)
    def refund_order(order_id: str, reason: str) -> str:
        """Refund an order. Use when a customer gets money back."""
        raise AssertionError("a replay changes nothing")

    report = await replay_tools(each(await recorded()), Today(ToolLibrary([find_order, refund_order])))
    assert calls == ["Ada"]
    assert {(item.change, item.tool, item.rule[:40]) for item in report.findings} == {
        ("other_value", "find_order", "$.total has another value"),
        ("other_shape", "find_order", "$.open is new"),
        ("refused", "refund_order", "'refund_order' was not run: reason: miss"),
    }
    same = await replay_tools(each(await recorded()), Today(LIBRARY))
    assert same.verdict == "No recorded call would be refused; reads return what they returned."
    assert same.counts["changes_not_called"] == 1
    assert dict(EFFECTS) == {"find_order": 1}


def test_values_are_compared_by_their_structure() -> None:
    assert list(differences({"a": [1, 2], "updated_at": 1}, {"a": [1, 3], "updated_at": 2})) == [
        ("other_value", "$.a[] has another value")
    ]
    assert list(differences({"a": 1}, {"a": "1"})) == [("other_shape", "$.a has another type")]


async def test_an_app_asks_a_model_that_is_named(tmp_path: Path) -> None:
    async with Journeyman(
        library=LIBRARY, store=f"sqlite:///{tmp_path}/a.db", model=ScriptedModel(OLD[:1] + OLD[2:])
    ) as app:
        handle = await app.start(AGENT, "Find the order of Ada")
        await handle.result()
        report = await app.replay(handle.run_id, model=ScriptedModel(OLD[:1] + OLD[2:]), mode="free")
        assert report.shares["runs_that_agree"].part == 1
        assert (await app.replay(library=LIBRARY)).counts["calls"] == 1
        with pytest.raises(ConfigurationError, match="name a model"):
            await app.replay(instruction="Be brief.")


class Counted:
    """Counts how often it is asked, and may break off."""

    def __init__(self, turns: list[Any], *, most: int = 1_000) -> None:
        self.scripted, self.most, self.asked = ScriptedModel(turns), most, list[ModelRequest]()

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        if len(self.asked) == self.most:
            raise asyncio.CancelledError
        self.asked.append(request)
        return await self.scripted.respond(request, deltas)


async def test_a_replay_that_was_cut_short_asks_nothing_twice(tmp_path: Path) -> None:
    recording, answers = await recorded(), tmp_path / "answers.jsonl"
    first, second = Counted(OLD, most=2), Counted(OLD)
    with pytest.raises(asyncio.CancelledError):
        await replay_model(each(recording), Today(LIBRARY), RememberingModel(first, answers))
    with answers.open("a") as file:
        file.write('{"asked": "cut sho')
    report = await replay_model(each(recording), Today(LIBRARY), RememberingModel(second, answers))
    assert (len(first.asked), len(second.asked)) == (2, 1)
    assert report.shares["steps_that_agree"].part == 3
    other = Counted(OLD)
    await replay_model(each(recording), Today(LIBRARY), RememberingModel(other, answers, name="another"))
    assert len(other.asked) == 3


async def test_the_other_decision_is_tried_without_an_effect() -> None:
    recording = await recorded()
    turns = [*OLD[:2], say("It was refused.")]
    report = await replay_model(
        each(recording), Today(LIBRARY), ScriptedModel(turns), mode="free", decision=Deny(reason="no")
    )
    assert [(item.change, item.rule) for item in report.findings] == [("parts", "first at step 2: status")]
    assert (report.changed, report.not_recorded) == (1, 0)
    assert not EFFECTS


async def test_another_version_of_a_playbook_advises(tmp_path: Path) -> None:
    strategy = ToolCallingStrategy(
        id="s1",
        content="Look the order up first.",
        domain="shop",
        tool_sequence=["find_order"],
        state=StrategyState.ACTIVE,
        helpful_count=5,
        example_task="Find the order of Ada",
    )
    store = f"sqlite:///{tmp_path}/a.db"
    async with Journeyman(library=LIBRARY, store=store, model=ScriptedModel(OLD[:1] + OLD[2:])) as app:
        handle = await app.start(AGENT, "Find the order of Ada")
        await handle.result()
        playbook = app.playbooks["shop"]
        await playbook.put([], reason="nothing yet")
        await playbook.put([strategy])
        latest = (await playbook.history())[0].version
        with_advice, without = Counted(OLD[:1] + OLD[2:]), Counted(OLD[:1] + OLD[2:])
        await app.replay(handle.run_id, model=with_advice, playbook=("shop", latest))
        await app.replay(handle.run_id, model=without, playbook=("shop", latest - 1))
        said = ["".join(message.content for message in model.asked[0].messages) for model in (with_advice, without)]
        assert ["Look the order up first." in text for text in said] == [True, False]
        with pytest.raises(ConfigurationError, match="name a model"):
            await app.replay(playbook=("shop", latest))


async def test_another_agent_is_asked_and_two_runs_are_compared(tmp_path: Path) -> None:
    async with Journeyman(
        library=LIBRARY, store=f"sqlite:///{tmp_path}/a.db", model=ScriptedModel(OLD[:1] + OLD[2:])
    ) as app:
        a, b = [await app.start(AGENT, text) for text in ("Find Ada", "Find Grace")]
        await a.result(), await b.result()
        brief = AGENT.model_copy(update={"instruction": "Be brief."})
        model = Counted([*OLD[:1], say("ORD-00003.")])
        report = await app.replay(a.run_id, since="7d", agent=brief, model=model)
        assert model.asked[0].messages[0].content.startswith("Be brief.")
        assert report.changed == 0  # two answers in words agree
        difference = await app.diff(a.run_id, b.run_id)
        assert (difference.first, difference.differences) == (None, ())


@pytest.mark.slow
@pytest.mark.usefixtures("embedded_engine")
@pytest.mark.timeout(600)
@pytest.mark.skipif(not supported(), reason="the engine is built for Linux x86-64")
async def test_the_embedded_model_agrees_with_itself(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/a.db")
    library = task_library(store)
    async with Journeyman(store=store, library=library, model=model_named("embedded")) as app:
        agent = Agent(name="tasks", instruction="Keep the tasks.", tools=library.specifications())
        for sentence in ("Create a task to water the plants", "Which tasks have high priority?", "Book me a flight"):
            await (await app.start(agent, sentence)).result()
        report = await app.replay(model="embedded")
        assert (report.counts["runs"], report.changed) == (3, 0)
        assert report.shares["steps_that_agree"].part == report.counts["steps"] > 3

"""A cancelled run stops at once, leaves a whole record, and lets nothing run on."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from journeyman import (
    Agent,
    Approval,
    Approve,
    Journeyman,
    Limits,
    Message,
    ToolContext,
    ToolLibrary,
    run,
    stream,
    tool,
)
from journeyman.core.events import Fact, RunFinished
from journeyman.core.protocols import Deltas, ModelResponse
from journeyman.execution.recorder import MemoryJournal
from journeyman.models import ModelRequest
from journeyman.testing import ScriptedModel, call, say, together
from journeyman.testing.scripted import Turn
from tests.playing import agent_with
from tests.waiting import WAIT_SECONDS


class Cancelled:
    """A run that is cancelled when it has come to a certain point."""

    def __init__(self, tools: list[Any], turns: list[Turn], **options: Any) -> None:
        self.journal = MemoryJournal()
        self.model = ScriptedModel(turns)
        self.task = asyncio.ensure_future(
            run(
                agent_with(*tools),
                "go",
                library=ToolLibrary(tools),
                model=self.model,
                journal=self.journal,
                **options,
            )
        )

    async def at(self, point: asyncio.Event) -> list[Fact]:
        waiting = asyncio.ensure_future(point.wait())
        await asyncio.wait((waiting, self.task), return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_SECONDS)
        assert point.is_set()
        self.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self.task
        [run_id] = self.journal.runs()
        facts = list(await self.journal.read(run_id))
        assert facts[-1].type == "run_finished"
        assert facts[-1].status == "cancelled"
        return facts


def records(facts: list[Fact]) -> dict[str, str]:
    return {fact.record.tool_name: fact.record.status.value for fact in facts if fact.type == "call_finished"}


async def test_an_asynchronous_tool_is_cancelled() -> None:
    begun, cleaned = asyncio.Event(), asyncio.Event()

    @tool(risk="reversible")
    async def wait() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    facts = await Cancelled([wait], [call("wait")]).at(begun)
    assert cleaned.is_set()
    assert records(facts) == {"wait": "cancelled"}
    record = next(fact.record for fact in facts if fact.type == "call_finished")
    assert record.error is not None
    assert "check before repeating" in (record.error.recover_action or "")


async def test_a_synchronous_tool_is_interrupted_and_told() -> None:
    loop, begun, over = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    told: list[bool] = []

    @tool(risk="reversible")
    def busy(context: ToolContext) -> None:
        """Work for ever."""
        try:  # twice: the interrupt may strike anywhere, also in the first ``finally``
            try:
                loop.call_soon_threadsafe(begun.set)
                while not context.cancelled:
                    pass
            finally:
                told.append(context.cancelled)
        finally:
            over.set()

    facts = await Cancelled([busy], [call("busy")]).at(begun)
    assert records(facts) == {"busy": "cancelled"}
    assert await asyncio.to_thread(over.wait, WAIT_SECONDS)


async def test_finished_siblings_keep_their_results_and_open_ones_are_cancelled() -> None:
    begun = asyncio.Event()

    @tool(read_only=True)
    def quick() -> str:
        """Be quick."""
        return "done"

    @tool(risk="reversible")
    async def wait() -> None:
        """Wait."""
        while "call_finished" not in [fact.type for fact in journal._runs[journal.runs()[0]]]:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        begun.set()
        await asyncio.Event().wait()

    cancelled = Cancelled([quick, wait], [together(call("quick"), call("wait"))])
    journal = cancelled.journal
    facts = await cancelled.at(begun)
    assert records(facts) == {"quick": "success", "wait": "cancelled"}
    assert [fact.type for fact in facts[-2:]] == ["step_finished", "run_finished"]


async def test_cancelling_while_the_model_thinks() -> None:
    asked = asyncio.Event()

    async def think(request: ModelRequest) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    facts = await Cancelled([], [think]).at(asked)
    assert [fact.type for fact in facts] == ["run_started", "run_finished"]


async def test_cancelling_while_a_person_thinks_runs_nothing() -> None:
    asked = asyncio.Event()
    ran: list[str] = []

    @tool
    def delete() -> None:
        """Delete."""
        ran.append("deleted")

    async def approver(approval: Approval) -> Approve:
        asked.set()
        await asyncio.Event().wait()
        return Approve()

    facts = await Cancelled([delete], [call("delete")], approver=approver).at(asked)
    assert records(facts) == {"delete": "cancelled"}
    assert ran == []
    record = next(fact.record for fact in facts if fact.type == "call_finished")
    assert "before it ran" in (record.error_message or "")


async def test_a_tool_that_ignores_its_cancellation_is_left_behind() -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    @tool(risk="reversible")
    async def stubborn() -> None:
        """Ignore everything."""
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    facts = await Cancelled([stubborn], [call("stubborn")]).at(begun)
    assert records(facts) == {"stubborn": "cancelled"}
    release.set()
    await asyncio.sleep(0)


async def test_a_callers_timeout_ends_the_run() -> None:
    @tool(risk="reversible")
    async def wait() -> None:
        """Wait."""
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await run(agent_with(wait), "go", library=ToolLibrary([wait]), model=ScriptedModel([call("wait")]))


async def test_a_tool_that_cancels_itself_is_an_error_and_the_run_goes_on() -> None:
    @tool(risk="reversible")
    async def quit() -> None:  # noqa: A001
        """Cancel."""
        raise asyncio.CancelledError

    model = ScriptedModel([call("quit"), say("well")])
    response = await run(agent_with(quit), "go", library=ToolLibrary([quit]), model=model)
    assert [c.status for c in response.tool_calls] == ["error"]
    assert response.answer == "well"
    assert all(isinstance(message, Message) for message in response.messages)


class Typing:
    """A model that writes so much, again where it is asked again, and then says nothing more."""

    name = "typing"

    def __init__(self, *texts: str) -> None:
        self.texts, self.said = texts, asyncio.Event()

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        for number, text in enumerate(self.texts):
            if deltas is not None:
                if number:
                    deltas.restart()
                deltas.text(text[:4])
                deltas.text(text[4:])
        self.said.set()
        await asyncio.Event().wait()
        raise AssertionError


async def test_what_was_shown_of_an_answer_is_kept_when_it_is_cancelled(tmp_path: Path) -> None:
    model, store_url = Typing("Once there was a cat, ", "Once upon a time "), f"sqlite:///{tmp_path}/a.db"
    async with Journeyman(store=store_url, model=model) as app:
        handle = await app.start(Agent(name="a", instruction="Tell."), "A story", session_id="s")
        handle.stream_text()
        await model.said.wait()
        await handle.cancel()
        response = await handle.result()
        assert (response.status, response.answer, response.confidence) == ("cancelled", "Once upon a time", 0.0)
        assert (response.outcome, [step.thought for step in response.structured_trace]) == ("not", ["Once upon a time"])
        assert [fact.confidence async for fact in handle.events() if fact.type == "answer"] == [None], "nothing to show"
        # It stands in the conversation, for people and for the model.
        assert [message.content for message in response.messages] == ["A story", "Once upon a time"]
    async with Journeyman(store=store_url, model=ScriptedModel([say("a princess lived.")])) as again:
        said = await (await again.session("s").send(Agent(name="a", instruction="Tell."), "Go on")).result()
        assert [message.content for message in said.messages][:2] == ["A story", "Once upon a time"]


async def test_what_was_shown_is_kept_when_the_time_is_over() -> None:
    model = Typing("Once upon a time ")
    agent = Agent(name="a", instruction="Tell.")
    events = [event async for event in stream(agent, "A story", model=model, limits=Limits(seconds=0.3))]
    ended = events[-1]
    assert isinstance(ended, RunFinished)
    assert ended.response is not None
    assert (ended.response.status, ended.response.answer) == ("limit_reached", "Once upon a time")


@pytest.mark.parametrize("output", [None, dict])
async def test_what_nobody_has_read_and_data_are_not_kept(output: type | None) -> None:
    model, journal = Typing('{"a": '), MemoryJournal()
    agent = Agent(name="a", instruction="Tell.", output=output)
    if output is None:
        task = asyncio.ensure_future(run(agent, "A story", model=model, journal=journal))
        await model.said.wait()
        task.cancel()
        await asyncio.wait([task])
    else:
        events: Any = stream(agent, "A story", model=model, journal=journal)
        async with contextlib.aclosing(events):
            async for event in events:
                if event.type == "text_delta":
                    break
    [run_id] = journal.runs()
    assert [fact.type for fact in await journal.read(run_id)] == ["run_started", "run_finished"]

"""Faults of a model behind a real HTTP connection, seen from a whole run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from journeyman import AgentResponse, Limits, RunStatus, ToolLibrary, run, stream, tool
from journeyman.core.events import Event
from journeyman.models.openai import OpenAIModel
from journeyman.testing import FakeClock, ScriptedServer, call, cut, hang, http, raw, say, together
from tests.playing import agent_with, assert_well_formed
from tests.waiting import WAIT_SECONDS

ran: list[str] = []


@tool(risk="reversible")
def order(item: str) -> str:
    """Order something."""
    ran.append(item)
    return f"ordered {item}"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


ORDER = call("order", item="a pound of the best tea")


@dataclass
class Served:
    server: ScriptedServer
    model: OpenAIModel
    clock: FakeClock

    async def run(self, **options: Any) -> AgentResponse:
        library = ToolLibrary([order])
        response = await run(agent_with(order), "Order tea.", library=library, model=self.model, **options)
        assert_well_formed(response.messages)
        return response

    async def events(self) -> list[Event]:
        library = ToolLibrary([order])
        return [e async for e in stream(agent_with(order), "Order tea.", library=library, model=self.model)]


@asynccontextmanager
async def serving(*turns: Any, **options: Any) -> AsyncIterator[Served]:
    clock = FakeClock()
    async with ScriptedServer(turns) as server, OpenAIModel("m", base_url=server.url, clock=clock, **options) as model:
        yield Served(server, model, clock)


@pytest.mark.parametrize("fault", [http(500), http(503), http(429), cut(ORDER, after_bytes=120)])
async def test_a_passing_fault_is_asked_again_and_nothing_runs_twice(fault: Any) -> None:
    async with serving(fault, ORDER, fault, say("done")) as served:
        response = await served.run()
    assert (response.status, response.answer) == (RunStatus.COMPLETED, "done")
    assert ran == ["a pound of the best tea"]
    assert response.total_iterations == 2
    assert len(served.server.requests) == 4


async def test_a_server_that_says_how_long_to_wait_is_believed() -> None:
    async with serving(http(429, retry_after=7), say("done")) as served:
        response = await served.run()
    assert response.answer == "done"
    assert served.clock.slept == [7]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (http(500), "MODEL_UNAVAILABLE"),
        (http(429, retry_after=1), "MODEL_RATE_LIMITED"),
        (http(401), "MODEL_AUTHENTICATION"),
        (hang(), "MODEL_TIMEOUT"),
        (cut(ORDER, after_bytes=150), "MODEL_UNAVAILABLE"),
        (raw(b"<html>hello</html>"), "MODEL_BAD_ANSWER"),
        (raw(b'{"choices": []}'), "MODEL_BAD_ANSWER"),
    ],
)
async def test_a_lasting_fault_fails_the_run_with_what_was_done_so_far(fault: Any, code: str) -> None:
    async with serving(ORDER, *[fault] * 3, timeout=0.5 if code == "MODEL_TIMEOUT" else WAIT_SECONDS) as served:
        response = await served.run()
    assert response.status is RunStatus.FAILED
    assert response.error is not None
    assert response.error.code == code
    assert response.error.user_guidance
    assert [record.status for record in response.tool_calls] == ["success"]
    assert ran == ["a pound of the best tea"]
    assert f"Ended early: {response.error.message}" in response.reasoning
    assert (response.answer, response.confidence) == ("", 0.0)


async def test_a_server_that_hangs_is_ended_by_the_runs_own_time() -> None:
    async with serving(ORDER, hang(), hang(), hang()) as served:
        response = await served.run(limits=Limits(seconds=0.5))
    assert response.status is RunStatus.LIMIT_REACHED
    assert response.error is not None
    assert "0.5 seconds" in response.error.message


async def test_a_stream_cut_in_the_middle_of_a_tool_call() -> None:
    said = together(ORDER).model_copy(update={"text": "I order the tea now."})
    # By then the text and half of the call's arguments have arrived.
    async with serving(cut(said, after_bytes=1_400), said, say("It is ordered.")) as served:
        events = await served.events()
    types = [event.type for event in events]
    assert types.count("step_restarted") == 1
    restarted = types.index("step_restarted")
    before = "".join(e.text for e in events[:restarted] if e.type == "text_delta")
    after = "".join(e.text for e in events[restarted:] if e.type == "text_delta")
    assert before == "I order the tea now."
    assert after == "I order the tea now.It is ordered."
    assert ran == ["a pound of the best tea"]
    last = events[-1]
    assert last.type == "run_finished"
    assert last.response is not None
    assert last.response.answer == "It is ordered."
    numbers = [event.seq for event in events if event.seq is not None]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_stream_that_is_always_cut_fails_and_runs_nothing() -> None:
    async with serving(*[cut(ORDER, after_bytes=600)] * 3) as served:
        events = await served.events()
    assert events[-1].type == "run_failed"
    assert events[-1].error.code == "MODEL_UNAVAILABLE"
    assert ran == []


async def test_malformed_arguments_are_told_to_the_model_and_corrected() -> None:
    async with serving(call("order").raw('{"item": "te'), ORDER, say("done")) as served:
        response = await served.run()
    assert [record.status for record in response.tool_calls] == ["error", "success"]
    told = served.server.requests[1]["messages"][-1]
    assert told["role"] == "tool"
    assert "MALFORMED_ARGUMENTS" in told["content"]
    assert "conform to its schema" in told["content"]


async def test_ids_that_a_server_uses_twice_are_unique_in_what_it_is_sent() -> None:
    tea, milk = ORDER.with_id("same"), call("order", item="milk").with_id("same")
    async with serving(together(tea, milk), tea, say("done")) as served:
        await served.run()
    messages = served.server.requests[2]["messages"]
    asked = [made["id"] for message in messages for made in message.get("tool_calls") or []]
    answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert asked == answered == ["same", "call_1_2", "call_2_1"]


@pytest.mark.parametrize(
    "message",
    [
        b'{"tool_calls": [{"id": "x", "function": {"arguments": "{}"}}]}',
        b'{"tool_calls": [{}]}',
        b'{"tool_calls": [{"id": null, "function": {"name": null, "arguments": null}}]}',
    ],
)
async def test_a_call_without_a_name_is_answered(message: bytes) -> None:
    async with serving(raw(b'{"choices": [{"message": ' + message + b"}]}"), say("sorry")) as served:
        response = await served.run()
    assert [record.error.code for record in response.tool_calls if record.error] == ["UNKNOWN_TOOL"]
    assert response.answer == "sorry"
    asked, answered = served.server.requests[1]["messages"][-2:]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"]


async def test_an_empty_answer_is_told_to_the_model() -> None:
    async with serving(raw(b'{"choices": [{"message": {"content": null}}]}'), say("here I am")) as served:
        response = await served.run()
    assert response.answer == "here I am"
    assert "Your reply was empty" in served.server.requests[1]["messages"][-1]["content"]

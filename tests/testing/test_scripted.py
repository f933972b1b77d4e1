"""The fakes we ship: scripted model, clock, and the server that cannot be seen through the adapter alone."""

from __future__ import annotations

import asyncio

import pytest

from journeyman.core.errors import ModelError
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.core.runs import Message, ToolCall, Usage
from journeyman.testing import FakeClock, ScriptedModel, call, say, together
from journeyman.testing.scripted import Turn


def asked(step: int) -> ModelRequest:
    return ModelRequest(messages=[Message.user("hello")], tools=(), step=step)


class Heard:
    def __init__(self) -> None:
        self.pieces: list[str] = []

    def text(self, delta: str) -> None:
        self.pieces.append(delta)

    def restart(self) -> None:
        self.pieces.clear()


async def test_it_plays_by_the_step_and_not_by_the_question() -> None:
    model = ScriptedModel([call("look", name="x"), say("done")])
    for _ in range(2):
        assert (await model.respond(asked(2))).text == "done"
    first = await model.respond(asked(1))
    assert first.calls == (ToolCall(tool_name="look", arguments={"name": "x"}),)
    assert [request.step for request in model.requests] == [2, 2, 1]


async def test_the_end_of_the_script_is_an_error_that_counts_the_turns() -> None:
    with pytest.raises(ModelError, match="has 1 turns; it was asked for turn 2") as caught:
        await ScriptedModel(["only"]).respond(asked(2))
    assert caught.value.info.code == "SCRIPT_ENDED"


async def test_a_turn_takes_many_forms() -> None:
    async def later(request: ModelRequest) -> str:
        return f"step {request.step}"

    turns: list[Turn] = [
        "text",
        together(call("a"), call("b", x=1)),
        ModelResponse(text="whole"),
        lambda _: call("c"),
        later,
    ]
    model = ScriptedModel(turns, name="mimic")
    said = [await model.respond(asked(step)) for step in range(1, 6)]
    assert [response.text for response in said] == ["text", "", "whole", "", "step 5"]
    assert [[made.tool_name for made in response.calls] for response in said] == [[], ["a", "b"], [], ["c"], []]
    assert all(response.usage == Usage(requests=1) and response.model == "mimic" for response in said)


async def test_an_exception_in_the_script_is_raised() -> None:
    model = ScriptedModel([ValueError("boom"), lambda _: ModelError("X", "down")])
    with pytest.raises(ValueError, match="boom"):
        await model.respond(asked(1))
    with pytest.raises(ModelError, match="down"):
        await model.respond(asked(2))


async def test_a_turn_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="not 7"):
        await ScriptedModel([lambda _: 7]).respond(asked(1))  # type: ignore[list-item,return-value]


def test_a_call_can_be_dressed() -> None:
    made = call("pay", amount=3).with_confidence(0.4).with_id("call_1")
    assert made.tool_call == ToolCall(id="call_1", tool_name="pay", arguments={"amount": 3}, confidence=0.4)
    assert made.raw('{"amount": ').tool_call.malformed == '{"amount": '
    with pytest.raises(ValueError, match="confidence"):
        call("pay").with_confidence(4)


async def test_text_is_streamed_in_pieces() -> None:
    heard = Heard()
    await ScriptedModel(["It is shipped."]).respond(asked(1), heard)
    assert len(heard.pieces) > 1
    assert "".join(heard.pieces) == "It is shipped."


async def test_the_fake_clock_sleeps_at_once() -> None:
    clock = FakeClock(100)
    await clock.sleep(30)
    assert (clock.time(), clock.monotonic(), clock.slept) == (130, 30, [30])


async def test_the_manual_clock_waits_to_be_advanced() -> None:
    clock, woken = FakeClock(manual=True), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    late, now, soon, given_up = [asyncio.create_task(sleeper(seconds)) for seconds in (5, 0, 2, 1)]
    await now
    given_up.cancel()
    clock.advance(2)
    await soon
    assert woken == [0, 2]
    clock.advance(3)
    await late
    assert woken == [0, 2, 5]
    assert given_up.cancelled()

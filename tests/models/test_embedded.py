"""The embedded model with its real engine and weights. Slow: an engine reads a set of tools for seconds."""

from __future__ import annotations

import asyncio
import random
import string
from collections.abc import Sequence

import pytest

from journeyman.core.errors import ModelError
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.core.specification import ToolSpecification
from journeyman.models.embedded import EmbeddedModel
from journeyman.models.embedded.files import supported
from journeyman.models.embedded.model import GATE, LONGEST_REQUEST, MOST_TOOLS
from journeyman.models.embedded.worker import shared_engines
from tests.models.asking import Heard, asked, tool

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("embedded_engine"),
    pytest.mark.timeout(1200),  # minutes where other programs hold the cores
    pytest.mark.skipif(not supported(), reason="the engine is built for Linux x86-64"),
]

TEXT = {"type": "string"}
PATIENT = 1000.0


TOOLS = (
    tool("get_weather", "Get the current weather for a city.", city=TEXT),
    tool("delete_task", "Delete a task. Use to remove a task for good.", task=TEXT),
)


async def test_a_request_becomes_a_call_with_the_engines_confidence() -> None:
    heard = Heard()
    request = asked(Message.user("What is the weather in Lagos?"), tools=TOOLS)
    response = await EmbeddedModel(timeout=PATIENT).respond(request, heard)
    [call] = response.calls
    assert (call.tool_name, call.arguments) == ("get_weather", {"city": "Lagos"})
    assert call.confidence == response.confidence
    assert response.confidence is not None
    assert GATE <= response.confidence <= 1
    assert "".join(heard.pieces) == response.text


async def test_two_requests_in_one_become_two_calls() -> None:
    request = asked(Message.user("What is the weather in Paris and delete the milk task"), tools=TOOLS)
    response = await EmbeddedModel(timeout=PATIENT, gate=0.0).respond(request)
    assert sorted(call.tool_name for call in response.calls) == ["delete_task", "get_weather"]


async def test_a_request_no_tool_serves_is_not_guessed_at() -> None:
    response = await EmbeddedModel(timeout=PATIENT).respond(asked(Message.user("Play some jazz music"), tools=TOOLS))
    assert response.calls == ()
    assert "- get_weather: Get the current weather for a city." in response.text
    assert response.confidence is not None
    assert response.confidence < GATE


async def test_an_unreachable_gate_means_no_call() -> None:
    request = asked(Message.user("What is the weather in Lagos?"), tools=TOOLS)
    response = await EmbeddedModel(timeout=PATIENT, gate=1.0).respond(request)
    assert response.calls == ()


async def test_results_become_the_answer() -> None:
    call = ToolCall(id="1", tool_name="get_weather", arguments={"city": "Lagos"}, confidence=0.8)
    conversation = (
        Message.user("What is the weather in Lagos?"),
        Message(role=Role.ASSISTANT, calls=(call,)),
        Message(role=Role.FUNCTION, name="get_weather", call_id="1", content='{"sky": "clear", "degrees": 27}'),
    )
    response = await EmbeddedModel(timeout=PATIENT).respond(asked(*conversation, tools=TOOLS))
    assert response.calls == ()
    assert (response.text, response.from_results) == ("", True)
    assert response.confidence == 0.8


async def test_an_agent_that_finishes_by_a_call_gets_that_call() -> None:
    finish = tool("finish", "Give the final answer.", answer=TEXT)
    request = asked(Message.user("Play some jazz music"), tools=(*TOOLS, finish))
    response = await EmbeddedModel(timeout=PATIENT).respond(request)
    [call] = response.calls
    assert call.tool_name == "finish"
    assert "get_weather" in call.arguments["answer"]


async def test_a_tool_with_a_generated_name_and_parameter_is_callable() -> None:
    letters = random.Random(7)
    name, parameter, value = ("".join(letters.choices(string.ascii_lowercase, k=7)) for _ in range(3))
    made = tool(f"{name}_device", f"Switch on the {name}.", **{parameter: {**TEXT, "description": "Which one."}})
    request = asked(Message.user(f"Switch on the {name} called {value}"), tools=(made, TOOLS[1]))
    response = await EmbeddedModel(timeout=PATIENT, gate=0.0).respond(request)
    [call] = response.calls
    assert call.tool_name == made.name
    assert value in str(call.arguments[parameter]).lower()


async def test_of_many_tools_those_ranked_first_are_weighed() -> None:
    many = tuple(tool(f"paint_{index}", f"Paint wall {index}.", colour=TEXT) for index in range(MOST_TOOLS * 2))
    seen: list[str] = []

    async def rank(text: str, tools: Sequence[ToolSpecification]) -> list[tuple[ToolSpecification, float]]:
        seen.append(text)
        return [(each, 0.1) for each in reversed(tools)]

    request = asked(Message.user("What is the weather in Lagos?"), tools=(*many, *TOOLS))
    response = await EmbeddedModel(timeout=PATIENT, rank=rank).respond(request)
    assert [call.tool_name for call in response.calls] == ["get_weather"]
    assert seen == ["What is the weather in Lagos?"]


async def test_the_event_loop_goes_on_while_the_engine_computes() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await EmbeddedModel(timeout=PATIENT).respond(asked(Message.user("Delete the bread task"), tools=TOOLS))
    ticking.cancel()
    assert ticks >= 3


async def test_a_cancelled_request_stops_the_engine_and_the_next_one_is_answered() -> None:
    model = EmbeddedModel(timeout=PATIENT)
    fresh = (tool("water_plants", "Water the plants in a room.", room=TEXT),)
    waiting = asyncio.create_task(model.respond(asked(Message.user("Water the plants in the hall"), tools=fresh)))
    while shared_engines()._busy is None:  # noqa: ASYNC110 - set in another thread
        await asyncio.sleep(0.01)
    busy = shared_engines()._busy
    assert busy is not None
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    response = await model.respond(asked(Message.user("What is the weather in Lagos?"), tools=TOOLS))
    assert [call.tool_name for call in response.calls] == ["get_weather"]
    assert not busy.alive


async def test_an_engine_that_died_is_started_again() -> None:
    model = EmbeddedModel(timeout=PATIENT)
    await model.respond(asked(Message.user("Delete the bread task"), tools=TOOLS))
    process = shared_engines()._kept
    assert process is not None
    process.kill()
    response = await model.respond(asked(Message.user("Delete the honey task"), tools=TOOLS))
    assert [call.tool_name for call in response.calls] == ["delete_task"]


async def test_a_request_longer_than_it_can_read_is_refused() -> None:
    request = asked(Message.user("x" * (LONGEST_REQUEST + 1)), tools=TOOLS)
    with pytest.raises(ModelError, match="MODEL_REQUEST_TOO_LONG"):
        await EmbeddedModel().respond(request)

"""Ending a run with the ``finish`` tool instead of with plain text."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman import RunStatus, ToolDefinitionError, ToolLibrary, tool
from journeyman.testing import call, say, together
from tests.playing import Played, agent_with, play


@tool(read_only=True)
def look() -> str:
    """Look."""
    return "seen"


async def finishing(*turns: Any, **options: Any) -> Played:
    return await play([look], turns, agent=agent_with(look, finish=True), **options)


async def test_finish_gives_answer_reasoning_and_confidence() -> None:
    played = await finishing(call("look"), call("finish", answer="It is there.", reasoning="I saw it.", confidence=0.6))
    response = played.response
    assert (response.answer, response.reasoning, response.confidence) == ("It is there.", "I saw it.", 0.6)
    assert response.status is RunStatus.COMPLETED
    assert response.messages[-1].content == "It is there."
    assert [item.name for item in played.model.requests[0].tools] == ["look", "finish"]
    assert "call finish" in played.model.requests[0].messages[0].content


async def test_it_is_not_offered_to_other_agents() -> None:
    played = await play([look], [call("finish", answer="x"), say("then so")])
    assert [item.name for item in played.model.requests[0].tools] == ["look"]
    assert played.response.tool_calls[0].status == "error"
    assert played.response.answer == "then so"


async def test_text_alone_does_not_end_the_task() -> None:
    played = await finishing(say("I think it is there"), call("finish", answer="It is there."))
    assert "call finish" in played.model.requests[1].messages[-1].content
    assert [m.content for m in played.model.requests[1].messages[-2:-1]] == ["I think it is there"]
    assert played.response.answer == "It is there."


async def test_a_model_that_never_calls_it_is_taken_at_its_word() -> None:
    played = await finishing(say("one"), say("two"), say("three"))
    assert (played.response.answer, played.response.status) == ("three", RunStatus.COMPLETED)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"answer": ""}, {"answer": " \n"}, {"answer": "x", "confidence": 2}, {"answer": "x", "confidence": "high"}],
)
async def test_a_finish_that_does_not_conform_is_answered(arguments: dict[str, Any]) -> None:
    played = await finishing(call("finish", **arguments), call("finish", answer="right"))
    assert [c.status for c in played.response.tool_calls] == ["error"]
    assert "INVALID_ARGUMENTS" in played.told[0]
    assert played.response.answer == "right"


async def test_calls_beside_it_are_carried_out() -> None:
    played = await finishing(together(call("look"), call("finish", answer="done")))
    assert [c.tool_name for c in played.response.tool_calls] == ["look"]
    assert (played.response.answer, played.response.total_iterations) == ("done", 1)


async def test_it_is_an_action_and_no_tool() -> None:
    response = (await finishing(call("look"), call("finish", answer="It is there."))).response
    looked, ended = response.structured_trace
    assert (looked.action, looked.tool_name, looked.tool_args) == ("call_tool", "look", {})
    assert (ended.action, ended.observation, ended.calls) == ("finish", "It is there.", ())
    assert (ended.tool_name, ended.thought) == (None, "Gives the answer.")
    assert response.tools_used == ["look"]
    written = response.model_dump(mode="json")["structured_trace"]
    assert [(step["tool_name"], step["tool_args"]) for step in written] == [("look", {}), (None, None)]


@pytest.mark.parametrize("name", ["finish", "read_result"])
def test_its_name_is_reserved(name: str) -> None:
    with pytest.raises(ToolDefinitionError, match="reserved"):
        tool(look.function, name=name)
    with pytest.raises(ToolDefinitionError, match="reserved"):
        ToolLibrary([look.with_changes(name=name)])

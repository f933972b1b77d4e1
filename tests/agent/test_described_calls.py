"""A model that writes down the call it should make is asked once to make it."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman import Agent, AgentResponse, Deny, RiskLevel, run, tool
from journeyman.testing import ScriptedModel, call, say


@tool(risk=RiskLevel.REVERSIBLE)
async def update_event(event_id: str, start: str) -> str:
    """Move an event."""
    return "moved"


@tool(risk=RiskLevel.IRREVERSIBLE)
async def delete_event(event_id: str) -> str:
    """Delete an event."""
    return "deleted"


async def asked(*turns: Any, **options: Any) -> tuple[AgentResponse[Any], ScriptedModel]:
    model = ScriptedModel(list(turns))
    agent = Agent(name="office", instruction="Keep the calendar.", tools=[update_event, delete_event])
    return await run(agent, "Move event 17 to nine", model=model, **options), model


@pytest.mark.parametrize(
    "text",
    [
        "You can call `update_event` with event_id 17 and start 09:00.",
        'update_event(event_id="17", start="09:00")',
        'Use {"name": "update_event", "arguments": {"event_id": "17", "start": "09:00"}} for that.',
    ],
)
async def test_a_described_call_is_made_after_one_nudge(text: str) -> None:
    response, model = await asked(say(text), call("update_event", event_id="17", start="09:00"), say("Moved."))
    assert [item.tool_name for item in response.tool_calls] == ["update_event"]
    assert response.answer == "Moved."
    assert "call update_event now" in model.requests[1].messages[-1].content


async def test_it_is_said_once() -> None:
    text = "You can call `update_event` with event_id 17 and start 09:00."
    response, model = await asked(say(text), say(text))
    assert response.answer == text
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    "text",
    [
        "The event starts at nine.",
        "There is a tool update_event for that.",
        "You can call `update_event` with what you want.",  # and not with all that it needs
        "`update_event` takes event_id and start, `delete_event` takes event_id.",
        "`move_event` would want event_id and start.",
    ],
)
async def test_other_answers_are_answers(text: str) -> None:
    response, model = await asked(say(text))
    assert response.answer == text
    assert len(model.requests) == 1


async def test_what_was_done_may_be_described() -> None:
    text = "I called `update_event` with event_id 17 and start 09:00."
    response, model = await asked(call("update_event", event_id="17", start="09:00"), say(text))
    assert response.answer == text
    assert len(model.requests) == 2


async def test_nobody_is_urged_to_do_what_a_person_refused() -> None:
    text = "I would have called `delete_event` with event_id 17."
    turns = [call("delete_event", event_id="17"), say(text)]
    response, model = await asked(*turns, approver=lambda _: Deny(reason="keep it"))
    assert response.answer == text
    assert len(model.requests) == 2

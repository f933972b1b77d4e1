"""A model that writes down the call it should make is asked once to make it."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman import Agent, AgentResponse, Deny, RiskLevel, ToolError, run, tool
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


@tool(risk=RiskLevel.REVERSIBLE, read_only=True)
async def search_guests(name: str) -> list[str]:
    """Find guests by name."""
    return ["G-17"]


@tool(risk=RiskLevel.REVERSIBLE)
async def book_room(guest_id: str, room: str) -> str:
    """Book a room."""
    if guest_id != "G-17":
        raise ToolError("NO_SUCH_GUEST", f"no guest {guest_id!r}; search_guests finds ids")
    return "booked"


async def at_the_desk(*turns: Any) -> tuple[list[str], str | None]:
    model = ScriptedModel([*turns, say("The end.")])
    agent = Agent(name="desk", instruction="Run the hotel.", tools=[search_guests, book_room])
    response = await run(agent, "Book room 12 for Dora Lind", model=model)
    return [item.tool_name for item in response.tool_calls if item.success], response.answer


@pytest.mark.parametrize(
    "text",
    [
        'To book the room, look up the id. Call `search_guests` with the name "Dora Lind".',
        "First, I will look up the guest id using search_guests for Dora Lind, then book.",
        "I need the guest_id. To find it, call **search_guests** with name = Dora Lind.",
        'To proceed: 1. Call `search_guests` with "Dora Lind". 2. Then call `book_room` with guest_id and room 12.',
        "search_guests: Dora Lind",
        "<tool_call>search_guests Dora Lind</tool_call>",
        'Um das Zimmer zu buchen, muss zuerst `search_guests` mit dem Namen "Dora Lind" aufgerufen werden.',
        "Rufe search_guests mit „Dora Lind“ auf, danach book_room mit der gefundenen Nummer.",
        "Je vais chercher la cliente avec search_guests (nom : « Dora Lind »).",
        'Você deve chamar `search_guests` com "Dora Lind".',
        "Gebruik search_guests met de naam Dora Lind.",
        "I don't have the id yet, so please run search_guests with the guest's name, Dora Lind.",
    ],
)
async def test_a_described_lookup_is_made_and_the_run_goes_on(text: str) -> None:
    booked = call("book_room", guest_id="G-17", room="12")
    made, answer = await at_the_desk(say(text), call("search_guests", name="Dora Lind"), booked)
    assert (made, answer) == (["search_guests", "book_room"], "The end.")


async def test_a_lookup_that_an_error_told_of_need_only_be_named() -> None:
    guessed, text = call("book_room", guest_id="Dora Lind", room="12"), "I'll use the search_guests tool for that."
    booked = call("book_room", guest_id="G-17", room="12")
    made, answer = await at_the_desk(guessed, say(text), call("search_guests", name="Dora Lind"), booked)
    assert (made, answer) == (["search_guests", "book_room"], "The end.")
    assert await at_the_desk(say(text)) == ([], text)  # and nothing told of it here


@pytest.mark.parametrize(
    "text",
    [
        "Dora Lind is booked into room 12.",
        "My tools: search_guests and book_room.",
        "The tools are `search_guests` (name) and `book_room` (guest_id, room).",
        "Would you like me to call `search_guests` with another name?",
        "Room 12 is taken. Shall I book another room for Dora Lind with book_room?",
        "I did not call `book_room`, because you asked me not to book room 12 for guest_id G-17.",
        "Ich habe search_guests nicht benutzt, weil Dora Lind schon bekannt ist.",
        "Soll ich `search_guests` mit einem anderen Namen aufrufen?",
        "I could `book_room` for guest_id G-17, room 12, or `search_guests` by name first.",
    ],
)
async def test_what_describes_no_call_is_the_answer(text: str) -> None:
    assert await at_the_desk(say(text)) == ([], text)


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

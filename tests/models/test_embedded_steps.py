"""What the adapter makes of the engine's answers, step by step. The engines are played by a table here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.errors import ModelError
from journeyman.core.messages import Message, Role, ToolCall
from journeyman.models.embedded import EmbeddedModel, model
from journeyman.models.embedded.files import EngineFiles
from journeyman.models.embedded.worker import Setup
from tests.models.asking import asked, tool

TEXT = {"type": "string"}


TOOLS = (
    tool("find_contact", "Find a contact.", person=TEXT),
    tool("delete_task", "Delete a task.", task=TEXT),
    tool("send_message", "Send a message.", contact=TEXT),
)


class Engines:
    """Choices in turn, and arguments by the tool's name."""

    def __init__(self, *choices: tuple[str | None, float], negation: bool = False, **arguments: dict[str, Any]) -> None:
        self._choices = list(choices)
        self._arguments = arguments
        self._negation = negation

    async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
        shown = json.loads(setup.tools)
        if len(shown) > 1:
            name, confidence = self._choices.pop(0)
            calls = [{"name": name, "arguments": {}}] if name else []
            return {"function_calls": calls, "confidence": confidence, "validation": {"negation": self._negation}}
        name = shown[0]["name"]
        return {"function_calls": [{"name": name, "arguments": self._arguments.get(name, {})}], "confidence": 0.8}


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(model, "engine_files", lambda folder: EngineFiles(Path("engine"), Path("weights")))

    async def respond(engines: Engines, *messages: Message) -> Any:
        embedded = EmbeddedModel()
        embedded._engines = engines  # type: ignore[assignment]  # a table has no processes
        return await embedded.respond(asked(*messages, tools=TOOLS))

    return respond


def after(request: str, call: ToolCall, result: str) -> tuple[Message, ...]:
    function = Message(role=Role.FUNCTION, name=call.tool_name, call_id=call.id, content=result)
    return Message.user(request), Message(role=Role.ASSISTANT, calls=(call,)), function


FOUND = ToolCall(id="1", tool_name="find_contact", arguments={"person": "Ann"}, confidence=0.8)


async def test_the_next_call_may_use_what_a_result_shows(play: Any) -> None:
    engines = Engines(("send_message", 0.7), send_message={"contact": "c-17"})
    response = await play(engines, *after("Find Ann and send her a message", FOUND, '{"id": "c-17"}'))
    assert [(call.tool_name, call.arguments) for call in response.calls] == [("send_message", {"contact": "c-17"})]


async def test_the_next_call_may_not_use_what_nothing_shows(play: Any) -> None:
    engines = Engines(("send_message", 0.7), send_message={"contact": "c-99"})
    response = await play(engines, *after("Find Ann and send her a message", FOUND, '{"id": "c-17"}'))
    assert (response.calls, response.text) == ((), "id: c-17")


async def test_a_tool_is_not_called_again_for_the_same_request(play: Any) -> None:
    engines = Engines(("find_contact", 0.9), find_contact={"person": "her"})
    response = await play(engines, *after("Find Ann and send her a message", FOUND, '{"id": "c-17"}'))
    assert response.calls == ()


async def test_where_it_would_rather_call_nothing_nothing_is_called(play: Any) -> None:
    engines = Engines((None, 0.9), ("delete_task", 0.1), delete_task={"task": "milk"})
    response = await play(engines, Message.user("What does milk do to a task"))
    assert (response.calls, response.confidence) == ((), 0.0)


async def test_what_is_forbidden_is_not_done(play: Any) -> None:
    engines = Engines(("delete_task", 0.9), ("delete_task", 0.9), negation=True, delete_task={"task": "milk"})
    response = await play(engines, Message.user("Don't delete the milk task"))
    assert response.calls == ()


async def test_a_missing_argument_is_not_a_missing_tool(play: Any) -> None:
    engines = Engines(("delete_task", 0.9), ("delete_task", 0.7), delete_task={"task": "that task"})
    response = await play(engines, Message.user("Delete that task"))
    assert response.calls == ()
    assert response.confidence == pytest.approx(0.9)
    assert response.text.splitlines()[1] == "- delete_task: Delete a task."


async def test_the_longest_request_is_read_and_no_longer_one(play: Any) -> None:
    longest = "x" * model.LONGEST_REQUEST
    assert (await play(Engines((None, 0.9), (None, 0.9)), Message.user(longest))).calls == ()
    with pytest.raises(ModelError, match="MODEL_REQUEST_TOO_LONG"):
        await play(Engines(), Message.user(longest + "x"))

"""What an agent was told reaches every model: its instruction, and advice as text or as turns before the request.

The adapters of other providers have the same test beside their servers, in ``test_providers``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.messages import Message, Role, ToolCall
from journeyman.core.playbook import DEMONSTRATION
from journeyman.models import gguf
from journeyman.models.embedded import EmbeddedModel, model
from journeyman.models.embedded.files import EngineFiles
from journeyman.models.embedded.worker import Setup
from journeyman.models.gguf import GgufModel, GgufServer
from journeyman.testing import ScriptedModel, ScriptedServer, say
from tests.models.asking import asked, model_at, tool

INSTRUCTION = "Keep the user's orders."
ADVICE = "look the order up first"
MESSAGES = (
    Message.system(f"{INSTRUCTION}\n\nWhat worked in similar tasks before (advice, not orders):\n- {ADVICE}"),
    Message(role=Role.USER, name=DEMONSTRATION, content="Where is parcel W-1?"),
    Message(role=Role.ASSISTANT, calls=(ToolCall(id="x", tool_name="find_parcel", arguments={"parcel": "W-1"}),)),
    Message(role=Role.FUNCTION, name="find_parcel", call_id="x", content="in Ghent"),
    Message(role=Role.ASSISTANT, content="It is in Ghent."),
    Message.user("Where is parcel W-17?"),
)
TOOLS = (
    tool("find_parcel", "Find a parcel.", parcel={"type": "string"}),
    tool("send_mail", "Send a mail.", to={"type": "string"}),
)


async def test_openai() -> None:
    async with ScriptedServer([say("ok")]) as server, model_at(server) as asked_model:
        await asked_model.respond(asked(*MESSAGES, tools=TOOLS))
    sent = server.requests[0]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[0]["content"] == MESSAGES[0].content
    assert (sent[3]["tool_call_id"], sent[3]["content"]) == ("x", "in Ghent")


async def test_scripted() -> None:
    scripted = ScriptedModel([say("ok")])
    await scripted.respond(asked(*MESSAGES, tools=TOOLS))
    assert scripted.requests[0].messages == MESSAGES


class Engine:
    """In the place of xllamacpp: likes the first tool, and keeps what it was asked."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    def handle_chat_completions(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        if "logprobs" in body:
            likely = -1.0 if "find_parcel" in body["grammar"] else -9.0
            return {"choices": [{"logprobs": {"content": [{"token": "x", "logprob": likely}]}}]}
        return {"choices": [{"message": {"content": '{"parcel": "W-17"}' if "response_format" in body else "Hello."}}]}


@pytest.mark.parametrize("tools", [TOOLS, ()], ids=["a call", "prose"])
async def test_gguf(tools: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()

    async def loaded(path: Path, *, context: int) -> GgufServer:
        return GgufServer(engine)

    monkeypatch.setattr(gguf, "gguf_server", loaded)
    response = await GgufModel("any.gguf").respond(asked(*MESSAGES, tools=tools))
    assert [call.arguments for call in response.calls] == ([{"parcel": "W-17"}] if tools else [])
    assert len(engine.bodies) == (4 if tools else 1)  # a likelihood for each name and for no tool, then the arguments
    for body in engine.bodies:
        system, *turns = body["messages"]
        assert system["role"] == "system"
        assert system["content"].startswith(MESSAGES[0].content)
        assert [turn["role"] for turn in turns[:5]] == ["user", "assistant", "user", "assistant", "user"]
        assert turns[1]["content"] == '{"tool": "find_parcel", "arguments": {"parcel": "W-1"}}'
        assert turns[2]["content"] == "Result of find_parcel: in Ghent"
        assert turns[4]["content"] == "Where is parcel W-17?"


class Engines:
    """In the place of the embedded engine: chooses the first tool, and keeps what it was prepared for."""

    def __init__(self) -> None:
        self.setups: list[Setup] = []

    async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
        self.setups.append(setup)
        chosen = json.loads(setup.tools)[0]
        arguments = {"parcel": "W-17"} if chosen["parameters"]["properties"] else {}
        return {"function_calls": [{"name": chosen["name"], "arguments": arguments}], "confidence": 0.9}


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(model, "engine_files", lambda folder: EngineFiles(Path("engine"), Path("weights")))

    async def systems(*messages: Message) -> list[str]:
        asked_model, engines = EmbeddedModel(), Engines()
        asked_model._engines = engines  # type: ignore[assignment]  # it has no processes
        response = await asked_model.respond(asked(*messages, tools=TOOLS))
        assert [call.arguments for call in response.calls] == [{"parcel": "W-17"}]
        return [setup.system for setup in engines.setups]

    return systems


async def test_embedded(embedded: Any) -> None:
    for system in await embedded(*MESSAGES):
        date, told, example = system.split("; ")
        assert date.startswith("date: ")
        assert told == " ".join(MESSAGES[0].content.split())
        assert example == "earlier: 'Where is parcel W-1?' -> find_parcel"


async def test_embedded_reads_of_a_long_instruction_the_beginning_and_the_advice(embedded: Any) -> None:
    long = f"{INSTRUCTION} {'Be kind. ' * 500} {ADVICE}"
    for system in await embedded(Message.system(long), Message.user("Where is parcel W-17?")):
        assert INSTRUCTION in system
        assert system.endswith(ADVICE)
        assert len(system) < model.LONGEST_GUIDANCE + 40


async def test_embedded_reads_demonstrations_and_not_the_conversation_before_them(embedded: Any) -> None:
    demonstration = MESSAGES[1:5]
    before = [message for number in range(9) for message in (Message.user(f"Old {number}"), *demonstration[1:])]
    for system in await embedded(*before, *demonstration * 5, MESSAGES[-1]):
        assert system.count("earlier: ") == model.MOST_EXAMPLES
        assert "Old" not in system
        assert system.endswith("earlier: 'Where is parcel W-1?' -> find_parcel")


async def test_every_adapter_tells_in_which_words_people_ask_for_a_tool(
    embedded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "Track the parcel W-1"
    asked_for = TOOLS[0].model_copy(update={"examples": (words, {"parcel": "W-1"})})
    request = asked(Message.user("Where is parcel W-17?"), tools=(asked_for, TOOLS[1]))
    async with ScriptedServer([say("ok")]) as server, model_at(server) as asked_model:
        await asked_model.respond(request)
    [told, _] = [one["function"]["description"] for one in server.requests[0]["tools"]]
    assert told == f'Find a parcel.\n\nAsked for like this: "{words}"\n\nExamples: {{"parcel": "W-1"}}'
    engine, engines = Engine(), Engines()

    async def loaded(path: Path, *, context: int) -> GgufServer:
        return GgufServer(engine)

    monkeypatch.setattr(gguf, "gguf_server", loaded)
    await GgufModel("any.gguf").respond(request)
    assert words in engine.bodies[0]["messages"][0]["content"]
    asked_model_of_ours = EmbeddedModel()
    asked_model_of_ours._engines = engines  # type: ignore[assignment]  # it has no processes
    monkeypatch.setattr(model, "READ_AT_ONCE", 0)
    await asked_model_of_ours.respond(request)
    assert [one["name"] for one in json.loads(engines.setups[0].tools)] == ["find_parcel", "track_parcel", "send_mail"]

"""What an agent was told reaches every model: its instruction, and advice as text or as turns before the request.

The adapters of other providers have the same test beside their servers, in ``test_providers``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.playbook import DEMONSTRATION, NEXT_STEP, REMINDER
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.models import gguf
from journeyman.models.embedded import EmbeddedModel, model
from journeyman.models.embedded.files import EngineFiles
from journeyman.models.embedded.worker import Setup
from journeyman.models.gguf import GgufModel, GgufServer
from journeyman.testing import ScriptedModel, ScriptedServer, say
from tests.models.asking import asked, model_at, tool

INSTRUCTION = "Keep the user's orders."
ADVICE = "look the order up first"
STEP = "If this task is like the example, call find_parcel now with parcel: from the user's request."
MESSAGES = (
    Message.system(f"{INSTRUCTION}\n\nWhat worked in similar tasks before (advice, not orders):\n- {ADVICE}"),
    Message(role=Role.USER, name=DEMONSTRATION, content="Where is parcel W-1?"),
    Message(role=Role.ASSISTANT, calls=(ToolCall(id="x", tool_name="find_parcel", arguments={"parcel": "W-1"}),)),
    Message(role=Role.FUNCTION, name="find_parcel", call_id="x", content="in Ghent"),
    Message(role=Role.ASSISTANT, content="It is in Ghent."),
    Message.user("Where is parcel W-17?"),
    Message(role=Role.USER, name=NEXT_STEP, content=STEP),
)
TOOLS = (
    tool("find_parcel", "Find a parcel.", parcel={"type": "string"}),
    tool("send_mail", "Send a mail.", to={"type": "string"}),
)
READING = tuple(item.model_copy(update={"read_only": True}) for item in TOOLS)


async def test_openai() -> None:
    async with ScriptedServer([say("ok")]) as server, model_at(server) as asked_model:
        await asked_model.respond(asked(*MESSAGES, tools=TOOLS))
    sent = server.requests[0]["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user", "user"]
    assert sent[-1]["content"] == STEP
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
        assert [turn["role"] for turn in turns[:6]] == ["user", "assistant", "user", "assistant", "user", "user"]
        assert turns[1]["content"] == '{"tool": "find_parcel", "arguments": {"parcel": "W-1"}}'
        assert turns[2]["content"] == "Result of find_parcel: in Ghent"
        assert [turn["content"] for turn in turns[4:6]] == ["Where is parcel W-17?", STEP]


class Engines:
    """In the place of the embedded engine: chooses the first tool, and keeps what it was prepared for and asked."""

    def __init__(self, *, sure: float = 0.9) -> None:
        self.setups: list[Setup] = []
        self.asked: list[str] = []
        self.sure = sure

    async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
        self.setups.append(setup)
        self.asked.append(turns[0])
        chosen = json.loads(setup.tools)[0]
        arguments = {"parcel": "W-17"} if "parcel" in chosen["parameters"]["properties"] else {"to": "Ada"}
        return {"function_calls": [{"name": chosen["name"], "arguments": arguments}], "confidence": self.sure}


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(model, "engine_files", lambda folder: EngineFiles(Path("engine"), Path("weights")))

    async def systems(*messages: Message) -> list[str]:
        asked_model, engines = EmbeddedModel(), Engines()
        asked_model._engines = engines  # type: ignore[assignment]  # it has no processes
        response = await asked_model.respond(asked(*messages, tools=READING))
        assert [call.arguments for call in response.calls] == [{"parcel": "W-17"}]
        told = [setup.system for setup in engines.setups if len(json.loads(setup.tools)) > 1]
        assert told  # where it chooses; what it fills in comes from the request alone
        return told

    return systems


async def test_embedded(embedded: Any) -> None:
    for system in await embedded(*MESSAGES):
        date, told, example, step = system.split("; ")
        assert date.startswith("date: ")
        assert told == " ".join(MESSAGES[0].content.split())
        assert example == "earlier: 'Where is parcel W-1?' -> find_parcel"
        assert step == STEP


async def test_embedded_reads_of_a_long_instruction_the_beginning_and_the_advice(embedded: Any) -> None:
    long = f"{INSTRUCTION} {'Be kind. ' * 500} {ADVICE}"
    for system in await embedded(Message.system(long), Message.user("Where is parcel W-17?")):
        assert INSTRUCTION in system
        assert system.endswith(ADVICE)
        assert len(system) < model.LONGEST_GUIDANCE + 40


async def test_embedded_reads_demonstrations_and_not_the_conversation_before_them(embedded: Any) -> None:
    demonstration = MESSAGES[1:5]
    before = [message for number in range(9) for message in (Message.user(f"Old {number}"), *demonstration[1:])]
    for system in await embedded(*before, *demonstration * 5, MESSAGES[-2]):
        assert system.count("earlier: ") == model.MOST_EXAMPLES
        assert "Old" not in system
        assert system.endswith("earlier: 'Where is parcel W-1?' -> find_parcel")


def at_the_engine(engines: Engines) -> EmbeddedModel:
    made = EmbeddedModel()
    made._engines = engines  # type: ignore[assignment]  # it has no processes
    return made


def steps(tool_name: str) -> Message:
    return Message(role=Role.USER, name=NEXT_STEP, content=f"If this task is like the example, call {tool_name} now.")


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(
    ("sure", "advice", "called"),
    [
        (0.1, [], []),  # no word of the request speaks for the tool that it chose
        (0.3, [steps("find_parcel")], ["find_parcel"]),  # what served a similar request does
        (0.3, [steps("send_mail")], ["send_mail"]),
        (0.9, [steps("send_mail")], ["find_parcel"]),  # it knows better
        (0.1, [steps("send_mail")], []),  # advice makes nothing of what it cannot fill in
        (0.1, [steps("unknown")], []),
    ],
)
async def test_embedded_tries_the_tool_that_served_a_similar_request(
    sure: float, advice: list[Message], called: list[str]
) -> None:
    engines = Engines(sure=sure)
    request = asked(Message.user("Any sign of W-17 for Ada?"), *advice, tools=READING)
    response = await at_the_engine(engines).respond(request)
    assert [call.tool_name for call in response.calls] == called


@pytest.mark.usefixtures("embedded")
async def test_embedded_changes_nothing_because_a_similar_request_was_served_so() -> None:
    request = asked(Message.user("Any sign of W-17 for Ada?"), steps("send_mail"), tools=TOOLS)
    assert (await at_the_engine(Engines(sure=0.1)).respond(request)).calls == ()


@pytest.mark.usefixtures("embedded")
async def test_embedded_weighs_the_advised_tool_however_many_others_are_nearer() -> None:
    others = [TOOLS[0].model_copy(update={"name": f"find_parcel_{number}"}) for number in range(model.MOST_TOOLS)]
    request = asked(Message.user("Any sign of W-17 for Ada?"), steps("send_mail"), tools=(*others, *READING))
    response = await at_the_engine(Engines(sure=0.3)).respond(request)
    assert [call.tool_name for call in response.calls] == ["send_mail"]


@pytest.mark.usefixtures("embedded")
async def test_embedded_goes_on_with_the_next_step_after_a_result() -> None:
    found = ToolCall(id="a", tool_name="find_parcel", arguments={"parcel": "W-17"})
    done = (
        Message.user("Any sign of W-17 for Ada?"),
        Message(role=Role.ASSISTANT, calls=(found,)),
        Message(role=Role.FUNCTION, name="find_parcel", call_id="a", content="in Ghent"),
    )
    alone = await at_the_engine(Engines(sure=0.3)).respond(asked(*done, tools=TOOLS))
    assert (alone.calls, alone.from_results) == ((), True)
    advised = await at_the_engine(Engines(sure=0.3)).respond(asked(*done, steps("send_mail"), tools=READING))
    assert [(call.tool_name, call.arguments) for call in advised.calls] == [("send_mail", {"to": "Ada"})]


@pytest.mark.usefixtures("embedded")
async def test_embedded_does_not_take_a_reminder_for_the_request() -> None:
    engines, reminder = (
        Engines(),
        Message(role=Role.USER, name=REMINDER, content="Nothing was called yet. List parcels."),
    )
    await at_the_engine(engines).respond(asked(Message.user("Where is parcel W-17?"), reminder, tools=TOOLS))
    assert set(engines.asked) == {"Where is parcel W-17?"}


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
    await asked_model_of_ours.respond(replace(request, messages=(Message.user("Please track parcel W-17"),)))
    assert [one["name"] for one in json.loads(engines.setups[0].tools)] == ["track_parcel", "send_mail"]


@pytest.mark.usefixtures("embedded")
async def test_embedded_makes_the_call_that_served_a_request_of_the_same_wording() -> None:
    required = TOOLS[1].model_copy(update={"parameters": {**TOOLS[1].parameters, "required": ["to"]}})
    offered = (TOOLS[0], required)
    request = Message.user("Any sign of W-17 for Ada?")

    async def made(suggested: ToolCall, *since: Message, text: Message = request, sure: float = 0.3) -> Any:
        return await at_the_engine(Engines(sure=sure)).respond(asked(text, *since, tools=offered, suggested=suggested))

    known = ToolCall(tool_name="send_mail", arguments={"to": "ada@corp.example"})
    [call] = (await made(known)).calls
    assert (call.tool_name, call.arguments, call.confidence) == ("send_mail", known.arguments, model.AS_WORDED)
    [call] = (await made(ToolCall(tool_name="send_mail"))).calls  # what is not told it fills in, as surely as it can
    assert (call.arguments, call.confidence) == ({"to": "Ada"}, 0.3)
    # As if nothing had been suggested: what the engine is sure of is called, and nothing else.
    gone = ToolCall(tool_name="gone")
    assert [call.tool_name for call in (await made(gone, sure=0.9)).calls] == ["find_parcel"]
    assert (await made(gone)).calls == ()
    result = Message(role=Role.FUNCTION, name="send_mail", call_id="a", content="sent")
    ended = await made(ToolCall(tool_name="finish"), Message(role=Role.ASSISTANT, calls=(known,)), result)
    assert (ended.calls, ended.from_results) == ((), True)

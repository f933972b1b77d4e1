"""What the adapter makes of the engine's answers, step by step. The engines are played by a table here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.errors import ModelError
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.core.specification import ToolSpecification
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
    """Choices in turn, and arguments by the tool's name with how sure they are."""

    def __init__(
        self, *choices: tuple[str | None, float], negation: bool = False, sure: float = 0.8, **arguments: dict[str, Any]
    ) -> None:
        self._choices = list(choices)
        self._arguments = arguments
        self._negation = negation
        self._sure = sure

    async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
        shown = json.loads(setup.tools)
        if len(shown) > 1:
            name, confidence = self._choices.pop(0)
            calls = [{"name": name, "arguments": self._arguments.get(name, {})}] if name else []
            return {"function_calls": calls, "confidence": confidence, "validation": {"negation": self._negation}}
        name = shown[0]["name"]
        calls = [{"name": name, "arguments": self._arguments.get(name, {})}]
        return {"suppressed_calls": calls, "confidence": self._sure, "reasoning": "It calls nothing."}


async def undecided(text: str, tools: Sequence[ToolSpecification]) -> dict[str, float]:
    return dict.fromkeys([each.name for each in tools], -0.1)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(model, "engine_files", lambda folder: EngineFiles(Path("engine"), Path("weights")))

    async def respond(
        engines: Engines,
        *messages: Message,
        tools: Sequence[ToolSpecification] = TOOLS,
        rank: Any = None,
        serves: Any = undecided,
    ) -> Any:
        embedded = EmbeddedModel(rank=rank)
        embedded.serves = serves
        embedded._engines = engines  # type: ignore[assignment]  # a table has no processes
        return await embedded.respond(asked(*messages, tools=tuple(tools)))

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
    assert (response.calls, response.text, response.from_results) == ((), "", True)


async def test_a_tool_is_not_called_again_for_the_same_request(play: Any) -> None:
    engines = Engines(("find_contact", 0.9), find_contact={"person": "her"})
    response = await play(engines, *after("Find Ann and send her a message", FOUND, '{"id": "c-17"}'))
    assert response.calls == ()


async def test_where_it_would_call_nothing_nothing_is_called(play: Any) -> None:
    response = await play(Engines((None, 0.9)), Message.user("What does milk do to a task"))
    assert (response.calls, response.confidence) == ((), 0.0)


async def test_what_is_forbidden_is_not_done(play: Any) -> None:
    engines = Engines(("delete_task", 0.9), negation=True, delete_task={"task": "milk"})
    response = await play(engines, Message.user("Don't delete the milk task"))
    assert response.calls == ()


async def test_for_what_the_request_does_not_tell_it_asks_back(play: Any) -> None:
    response = await play(Engines(("delete_task", 0.9), delete_task={"task": " "}), Message.user("Delete nothing"))
    assert (response.calls, response.confidence) == ((), 0.0)
    assert response.text.startswith("I called nothing: delete_task needs task")


async def test_what_is_excepted_is_spared(play: Any) -> None:
    engines = Engines(("delete_task", 0.9), delete_task={"task": "milk"})
    assert (await play(engines, Message.user("Delete every task except the milk"))).calls == ()


async def test_not_to_forget_is_no_negation(play: Any) -> None:
    engines = Engines(("delete_task", 0.9), negation=True, delete_task={"task": "milk"})
    response = await play(engines, Message.user("Don't let me forget to delete the milk task"))
    assert [call.arguments for call in response.calls] == [{"task": "milk"}]


async def test_why_something_is_asked_for_is_no_negation(play: Any) -> None:
    for said, calls in (("I don't need the milk any more, delete it", 1), ("I don't want you to delete the milk", 0)):
        engines = Engines(("delete_task", 0.9), negation=True, delete_task={"task": "milk"})
        assert len((await play(engines, Message.user(said))).calls) == calls


@pytest.mark.parametrize(("served", "chance", "calls"), [(True, 0.9, 1), (False, 0.9, 0), (True, 0.4, 0)])
async def test_what_the_ranking_puts_first_by_far_is_ordered_where_a_tool_serves_the_request(
    play: Any, served: bool, chance: float, calls: int
) -> None:
    async def rank(text: str, tools: Sequence[ToolSpecification]) -> list[tuple[ToolSpecification, float]]:
        return [(tools[1], chance), (tools[0], 0.1)]

    async def serves(text: str, tools: Sequence[ToolSpecification]) -> dict[str, float]:
        return {"delete_task": 1.0 if served else -1.0}

    engines = Engines((None, 0.9), delete_task={"task": "milk"})
    response = await play(engines, Message.user("The milk task is over"), rank=rank, serves=serves)
    assert len(response.calls) == calls


@pytest.mark.parametrize(("chance", "sure", "read"), [(0.97, 0.8, 1), (0.97, 0.3, 3), (0.8, 0.8, 3)])
async def test_where_ranking_and_engine_are_sure_the_other_tools_are_not_read(
    play: Any, chance: float, sure: float, read: int
) -> None:
    async def rank(text: str, tools: Sequence[ToolSpecification]) -> list[tuple[ToolSpecification, float]]:
        return [(tools[1], chance / 5), (tools[0], 0.01), (tools[2], 0.01)]  # its verb makes it 5 times as likely

    class Seen(Engines):
        most = 0

        async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
            self.most = max(self.most, len(json.loads(setup.tools)))
            return await super().ask(setup, turns)

    engines = Seen(("delete_task", 0.9), sure=sure, delete_task={"task": "milk"})
    response = await play(engines, Message.user("Delete the milk task"), rank=rank)
    assert ([call.arguments for call in response.calls], engines.most) == ([{"task": "milk"}], read)


async def test_a_tool_that_takes_nothing_of_what_is_asked_for_is_another_one(play: Any) -> None:
    tools = (tool("list_rooms", "List rooms."), *TOOLS)
    for said, calls in (("I would like a rental car", 0), ("List what you have", 1)):
        assert len((await play(Engines(("list_rooms", 0.9), sure=0.9), Message.user(said), tools=tools)).calls) == calls


async def test_two_calls_of_one_tool_for_one_thing_must_be_surer(play: Any) -> None:
    class Twice(Engines):
        async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
            calls = [{"name": "delete_task", "arguments": {"task": each}} for each in ("milk", "bread")]
            return {"function_calls": calls, "confidence": 0.15, "validation": {}}

    for said, calls in (("Delete the milk and the bread task", 2), ("Delete the milk bread task", 0)):
        assert len((await play(Twice(), Message.user(said))).calls) == calls


@pytest.mark.parametrize(("choice", "arguments"), [(0.7, 0.2), (0.2, 0.7)])
async def test_the_confidence_is_the_engines_own_the_smaller_of_choice_and_arguments(
    play: Any, choice: float, arguments: float
) -> None:
    engines = Engines(("delete_task", choice), sure=arguments, delete_task={"task": "milk"})
    response = await play(engines, Message.user("Delete the milk task"))
    assert [call.confidence for call in response.calls] == [0.2]
    assert (response.confidence, response.text) == (0.2, "")


async def test_without_a_word_in_common_it_must_be_surer(play: Any) -> None:
    for choice, alone, calls in ((0.9, 0.1, 0), (0.9, 0.3, 1), (0.1, 0.9, 0)):
        engines = Engines(("delete_task", choice), sure=alone, delete_task={"task": "milk"})
        assert len((await play(engines, Message.user("Away with the milk"))).calls) == calls


async def test_what_neither_the_call_nor_the_tool_says_speaks_against_it_and_a_day_does_not(play: Any) -> None:
    for rest, calls in (("", 1), (" tomorrow", 1), (" beside the garden fence", 0)):
        engines = Engines(("delete_task", 0.3), sure=0.3, delete_task={"task": "milk"})
        assert len((await play(engines, Message.user(f"Away with the milk{rest}"))).calls) == calls


async def test_what_the_request_does_not_have_speaks_against_a_call(play: Any) -> None:
    for value, calls in (("milk", 1), ("honey", 0)):
        engines = Engines(("delete_task", 0.3), sure=0.3, delete_task={"task": value})
        assert len((await play(engines, Message.user("Away with the milk"))).calls) == calls


async def test_what_no_argument_took_up_is_asked_for(play: Any) -> None:
    class Forms(Engines):
        async def ask(self, setup: Setup, turns: Sequence[str]) -> Any:
            takes = {"area": "kitchen", "label": "timer"} if "area" in setup.tools else {}
            calls = [{"name": "stop_timer", "arguments": takes}]
            return {"function_calls": calls, "confidence": 0.8, "validation": {}}

    places = {"area": {"type": "string"}, "label": {"type": "string"}, "minutes": {"type": "integer"}}
    timer = tool("stop_timer", "Stop a timer.", **places)
    timer = timer.model_copy(update={"parameters": {**timer.parameters, "required": []}})
    [call] = (await play(Forms(), Message.user("Stop the timer in the kitchen"), tools=(timer,))).calls
    assert call.arguments == {"area": "kitchen"}


async def test_among_tools_of_which_it_is_unsure_the_ranking_counts(play: Any) -> None:
    async def rank(text: str, tools: Sequence[ToolSpecification]) -> list[tuple[ToolSpecification, float]]:
        return [(tools[1], 0.9), (tools[0], 0.08), (tools[2], 0.02)]

    engines = Engines(("find_contact", 0.3), delete_task={"task": "Ann"}, find_contact={"person": "Ann"})
    response = await play(engines, Message.user("No contact and task of Ann"), rank=rank)
    assert [(call.tool_name, call.arguments) for call in response.calls] == [("delete_task", {"task": "Ann"})]


async def test_a_request_in_the_words_of_an_example_is_served_though_it_would_call_nothing(play: Any) -> None:
    worded = TOOLS[1].model_copy(update={"examples": ("I have no more need of the tea",)})
    engines = Engines((None, 0.9), delete_task={"task": "milk"})
    response = await play(engines, Message.user("I have no more need of the milk"), tools=(TOOLS[0], worded))
    assert [call.arguments for call in response.calls] == [{"task": "milk"}]


async def test_small_talk_is_no_missing_tool(play: Any) -> None:
    response = await play(Engines(("find_contact", 0.9), sure=0.9), Message.user("Hello"))
    assert (response.calls, response.confidence) == ((), 1.0)
    assert response.text.startswith("Hello!")


async def test_the_longest_request_is_read_and_no_longer_one(play: Any) -> None:
    longest = "x" * model.LONGEST_REQUEST
    assert (await play(Engines((None, 0.9)), Message.user(longest))).calls == ()
    with pytest.raises(ModelError, match="MODEL_REQUEST_TOO_LONG"):
        await play(Engines(), Message.user(longest + "x"))


async def test_warming_up_ranks_the_tools_and_starts_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "engine_files", lambda folder: EngineFiles(Path("engine"), Path("weights")))
    ranked = list[str]()

    async def rank(text: str, tools: Sequence[ToolSpecification]) -> list[tuple[ToolSpecification, float]]:
        ranked.extend(tool.name for tool in tools)
        return [(tool, 0.3) for tool in tools]

    embedded, engines = EmbeddedModel(rank=rank), Engines((None, 0.9))
    embedded._engines = engines  # type: ignore[assignment]  # a table has no processes
    await embedded.warm_up(TOOLS)
    assert ranked == [tool.name for tool in TOOLS]
    assert engines._choices == []  # it was asked

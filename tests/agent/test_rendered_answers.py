"""Answers of models that write none: made of what the calls came to, in the tools' own words where they have some."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from journeyman import ToolError, tool
from journeyman.core.events import MessageReceived, StepFinished
from journeyman.execution import outcome as hooks
from journeyman.models import ModelResponse
from journeyman.testing import call
from tests.playing import Played, agent_with, play

WORDLESS = ModelResponse(confidence=0.7, from_results=True)


def adding(render: Any = None) -> Any:
    def add(title: str) -> dict[str, Any]:
        """Add a thing."""
        if title == "nothing":
            raise ToolError("NO", "there is no such thing", recover_action="Use another title")
        return {"title": title, "tags": ["x"], "note": None}

    return tool(add, risk="reversible", render=render)


def words(arguments: dict[str, Any], result: dict[str, Any]) -> str:
    result["tags"].append("changed")
    return f"Added *{arguments.pop('title')}*."


async def slowly(arguments: dict[str, Any], result: Any) -> str:
    await asyncio.sleep(0)
    return f"Added {result['title']}, slowly."


async def added(item: Any, **options: Any) -> Played:
    return await play([item], [call("add", title="Milk"), WORDLESS], **options)


GENERAL = "- **Title:** Milk\n- **Tags:** x"


@pytest.mark.parametrize(("render", "answer"), [(words, "Added *Milk*."), (slowly, "Added Milk, slowly.")])
async def test_a_tool_says_what_a_call_came_to_and_changes_nothing_by_that(render: Any, answer: str) -> None:
    played = await added(adding(render))
    assert (played.response.answer, played.response.confidence) == (answer, 0.7)
    [record] = played.response.tool_calls
    assert (record.arguments, record.result) == ({"title": "Milk"}, {"title": "Milk", "tags": ["x"], "note": None})
    assert "rendered" not in played.response.model_dump_json()
    [rendered, nothing] = [event.rendered for event in played.facts if isinstance(event, StepFinished)]
    assert (rendered, nothing) == ({record.call_id: answer}, None)


def raising(arguments: dict[str, Any], result: Any) -> str:
    raise SystemExit("no")


def numbering(arguments: dict[str, Any], result: Any) -> Any:
    return 7


def hanging(arguments: dict[str, Any], result: Any) -> str:
    while True:
        time.sleep(0.01)


@pytest.mark.parametrize("render", [None, raising, numbering, hanging, lambda arguments, result: "  "])
async def test_where_a_tool_has_no_words_its_result_has_a_general_form(
    render: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "RENDER_SECONDS", 0.05)
    assert (await added(adding(render))).response.answer == GENERAL


async def test_people_read_their_guidance_and_the_model_its_own() -> None:
    played = await play([adding(words)], [call("add", title="nothing"), WORDLESS])
    answer = played.response.answer
    assert answer.startswith("That did not work: There is no such thing.")
    assert "Use another title" not in answer
    assert "Use another title" in played.told[0]


async def test_an_agent_that_finishes_by_a_call_finishes_with_the_same_words() -> None:
    item = adding(words)
    played = await added(item, agent=agent_with(item, finish=True))
    assert played.response.answer == "Added *Milk*."
    assert [event.text for event in played.facts if isinstance(event, MessageReceived)] == ["", ""]


def test_a_hook_that_cannot_take_what_it_is_given_is_refused_when_the_tool_is_made() -> None:
    with pytest.raises(Exception, match="render must be a function of the arguments and the result"):
        adding(lambda result: "")

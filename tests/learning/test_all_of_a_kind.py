"""Who is asked for all of a kind does it for all or for none, and who is asked for one does not do it for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from journeyman import Agent, RiskLevel, run, tool
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.learning import LearningSettings, Playbook
from journeyman.testing import ScriptedModel, call, say

ROOMS = {"double": ["12", "13", "14"], "suite": ["21", "22", "23", "24"], "family": ["31"]}
CLEANED: list[str] = []


@tool(read_only=True)
async def search_rooms(kind: str) -> list[dict[str, str]]:
    """Find the rooms of a kind."""
    return [{"room": f"R{number}", "floor": number[0]} for number in ROOMS[kind]]


@tool(risk=RiskLevel.REVERSIBLE)
async def clean_room(room: str) -> str:
    """Clean a room."""
    if room == "R23":
        raise ValueError("somebody sleeps in there")
    CLEANED.append(room)
    return "done"


class Obedient:
    """Makes whatever call is suggested, and nothing else."""

    name = "obedient"

    async def respond(self, request: ModelRequest, deltas: Any = None) -> ModelResponse:
        made = request.suggested
        if made is None or made.tool_name == "finish":
            return ModelResponse(text="That is all.")
        return ModelResponse(calls=(made,))


AGENT = Agent(name="desk", instruction="Look after rooms.", tools=[search_rooms, clean_room])


async def taught(*requests: tuple[str, str, Callable[[list[str]], list[str]]]) -> Playbook:
    playbook = Playbook("desk", settings=LearningSettings(holdout=0.0, needed=1), embedder=None)
    for request, kind, chosen in requests:
        cleaned = [call("clean_room", room=f"R{number}") for number in chosen(ROOMS[kind])]
        model = ScriptedModel([call("search_rooms", kind=kind), *cleaned, say("Cleaned.")])
        await run(AGENT, request, model=model, playbook=playbook)
    return playbook


async def cleaned(playbook: Playbook, request: str) -> list[str]:
    CLEANED.clear()
    await run(AGENT, request, model=Obedient(), playbook=playbook)
    return list(CLEANED)


@pytest.fixture
async def for_each() -> Playbook:
    return await taught(("Clean all double rooms", "double", lambda rooms: rooms))


async def test_what_was_done_for_each_row_is_done_for_each(for_each: Playbook) -> None:
    assert await cleaned(for_each, "Clean all family rooms") == ["R31"]
    assert await cleaned(for_each, "Clean all double rooms") == ["R12", "R13", "R14"]


async def test_a_row_that_is_refused_does_not_keep_the_others_from_it(for_each: Playbook) -> None:
    assert await cleaned(for_each, "Clean all suite rooms") == ["R21", "R22", "R24"]


async def test_a_run_of_one_row_leaves_the_demonstration_of_several() -> None:
    playbook = await taught(
        ("Clean all double rooms", "double", lambda rooms: rooms),
        ("Clean all family rooms", "family", lambda rooms: rooms),
    )
    assert await cleaned(playbook, "Clean all double rooms") == ["R12", "R13", "R14"]


@pytest.mark.parametrize("chosen", [lambda rooms: rooms[:1], lambda rooms: rooms[:2], lambda rooms: rooms[-1:]])
async def test_what_was_done_for_some_is_not_done_for_fewer_than_all(chosen: Callable[[Any], Any]) -> None:
    playbook = await taught(("Clean all suite rooms", "suite", chosen))
    assert await cleaned(playbook, "Clean all double rooms") == []


async def test_who_asks_for_one_does_not_get_all() -> None:
    playbook = await taught(("Clean the double room", "double", lambda rooms: rooms))
    assert await cleaned(playbook, "Clean the suite room") == []

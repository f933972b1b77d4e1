"""Practice: earlier requests are tried again where nothing can be broken, and the next round knows what one taught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Journeyman, RiskLevel, TaskInput, ToolError, ToolLibrary, tool
from journeyman.app.practise import practise
from journeyman.core.errors import ConfigurationError
from journeyman.learning import LearningSettings, Playbook
from journeyman.testing import ScriptedModel, call, say

PEOPLE = {"Anna": "P-1", "Bert": "P-2"}
SENT: list[str] = []


@tool(read_only=True)
def find_person(name: str) -> list[dict[str, str]]:
    """Find a person by name. Use to get a person_id."""
    return [{"person_id": PEOPLE[name]}] if name in PEOPLE else []


@tool(read_only=True)
def list_notes(person_id: str) -> list[str]:
    """List the notes of a person."""
    if person_id not in PEOPLE.values():
        raise ToolError("UNKNOWN_PERSON", f"no person has the id {person_id!r}")
    return ["lunch"]


@tool(risk=RiskLevel.IRREVERSIBLE)
def send_note(person_id: str, text: str) -> str:
    """Send a note to a person."""
    SENT.append(text)
    return "sent"


AGENT = Agent(name="office", instruction="Help.", tools=[find_person, list_notes, send_note])
ASKED = "Tell Anna 'lunch', if there is no such note yet"


class Learner:
    """Guesses an id, and looks it up when that was refused; with all its tools it does the task."""

    def __init__(self) -> None:
        self.offered: list[set[str]] = []
        self.hints: list[str] = []

    async def respond(self, request: Any, deltas: Any = None) -> Any:
        self.offered.append({item.name for item in request.tools})
        self.hints += [item.content for item in request.messages if item.name == "next_step"]
        turns: list[Any] = [call("list_notes", person_id="Anna"), call("find_person", name="Anna")]
        turns += [call("list_notes", person_id="P-1"), say("There is one.")]
        if "send_note" in self.offered[-1]:
            turns = [call("find_person", name="Anna"), call("send_note", person_id="P-1", text="lunch"), say("Told.")]
        return await ScriptedModel(turns).respond(request, deltas)


def book() -> Playbook:
    return Playbook("office", settings=LearningSettings(holdout=0), embedder=None)


async def test_without_a_sandbox_nothing_that_changes_is_there_and_only_pitfalls_are_kept() -> None:
    SENT.clear()
    playbook, model = book(), Learner()
    made = await practise(playbook, AGENT, [ASKED], model=model, rounds=3)
    assert all(offered == {"find_person", "list_notes"} for offered in model.offered)
    assert SENT == []
    [bullet] = await playbook.bullets()
    assert (bullet.section, bullet.tool_name) == ("Pitfalls", "list_notes")
    assert bullet.lookup is not None
    assert (bullet.lookup.parameter, bullet.lookup.found_by) == ("person_id", "find_person")
    assert any("call find_person now" in hint for hint in model.hints)  # of the second round
    assert made.good == (0,) * made.rounds
    assert not made.sandbox


async def test_in_a_sandbox_whole_tasks_are_learned_without_anybodys_word_and_without_an_effect_outside() -> None:
    SENT.clear()
    tried: list[str] = []

    @tool(name="send_note", risk=RiskLevel.IRREVERSIBLE)
    def send_there(person_id: str, text: str) -> str:
        """Send a note to a person."""
        tried.append(text)
        return "sent"

    playbook = book()
    sandbox = ToolLibrary([find_person, list_notes, send_there])
    requests = [ASKED, "Tell Anna 'lunch' now"]
    made = await practise(playbook, AGENT, requests, sandbox=sandbox, model=Learner(), rounds=2)
    assert (tried, SENT) == (["lunch"] * 4, [])
    assert made.good == (2, 2)
    found = await playbook.strategies()
    assert {item.tool_sequence for item in found} == {("find_person", "send_note")}
    assert {source.value for item in found for source in item.label_sources} == {"judge"}


async def test_a_sandbox_that_lacks_a_tool_is_refused_and_so_is_practice_without_any_tool() -> None:
    with pytest.raises(ConfigurationError, match="the sandbox lacks tools of the agent: send_note"):
        await practise(book(), AGENT, [ASKED], sandbox=ToolLibrary([find_person, list_notes]), model=Learner())
    writer = Agent(name="office", instruction="Help.", tools=[send_note])
    with pytest.raises(ConfigurationError, match="name a sandbox"):
        await practise(book(), writer, [ASKED], model=Learner())


async def test_what_failed_is_tried_first_and_each_request_once(tmp_path: Path) -> None:
    calls: list[Any] = [call("find_person", name="Bert"), say("Found."), say("Sorry.")] * 2
    url = f"sqlite:///{tmp_path / 's.db'}"
    async with Journeyman(store=url, model=ScriptedModel(calls), learning=LearningSettings(holdout=0)) as app:
        reader = Agent(name="office", instruction="Help.", tools=[find_person])
        for text in ("Who is Bert?", "Do something", "Who is Bert?", "Do something"):
            await (await app.start(reader, TaskInput(description=text, domain="office"))).result()
        assert await app.playbooks.to_practise("office", principal=None, most=5) == ["Do something", "Who is Bert?"]
        assert await app.playbooks.to_practise("office", principal=None, most=1) == ["Do something"]
        assert await app.playbooks.to_practise("other", principal=None, most=5) == []

"""What a demonstration may never lead to: somebody else's values, a skipped approval, a call that a person refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from journeyman import Agent, Approve, Deny, Journeyman, RiskLevel, TaskInput, run, tool
from journeyman.core.calls import ResultField, Taken
from journeyman.core.playbook import NEXT_STEP, Advice, NextStep
from journeyman.learning import LearningSettings, Playbook
from journeyman.learning.abstraction import abstract
from journeyman.learning.alignment import merged
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.testing import ScriptedModel, call, say

USERS = {"Anna": 7, "Bert": 8, "Bob": 9}


@tool(read_only=True)
async def find_user(name: str) -> dict[str, Any]:
    """Find a user."""
    return {"id": USERS[name], "login": name.lower() + "x"}


@tool(risk=RiskLevel.REVERSIBLE)
async def lock_account(user_id: int, login: str) -> str:
    """Lock an account."""
    return "locked"


@tool(risk=RiskLevel.REVERSIBLE_WITH_DELAY)
async def close_account(user_id: int) -> str:
    """Close an account."""
    return "closed"


TOOLS: list[Any] = [find_user, lock_account, close_account]


def book(**settings: Any) -> Playbook:
    return Playbook("desk", settings=LearningSettings(holdout=0.0, needed=1, **settings), embedder=None)


async def asked(playbook: Playbook, request: str, *turns: Any, **options: Any) -> ScriptedModel:
    model = ScriptedModel(list(turns))
    agent = Agent(name="desk", instruction="Look after accounts.", tools=TOOLS)
    await run(agent, request, model=model, playbook=playbook, **options)
    return model


def locked(name: str) -> list[Any]:
    made = call("lock_account", user_id=USERS[name], login=name.lower() + "x")
    return [call("find_user", name=name), made, say("Locked.")]


async def test_somebody_elses_short_number_or_plain_word_is_no_constant() -> None:
    playbook = book()
    await asked(playbook, "Lock the account of Anna", *locked("Anna"))
    [strategy] = await playbook.strategies()
    assert strategy.demonstration is not None
    sources = strategy.demonstration.calls[1].sources
    assert sources == {"user_id": ResultField(0, ("id",)), "login": ResultField(0, ("login",))}
    kept = json.dumps([item.model_dump(mode="json") for item in await playbook.bullets()])
    assert "annax" not in kept
    model = await asked(playbook, "Lock the account of Bob", *locked("Bob"))
    suggested = model.requests[1].suggested
    assert suggested is not None
    assert suggested.arguments == {"user_id": 9, "login": "bobx"}


def test_a_constant_that_differed_is_none_and_rows_must_agree() -> None:
    def shown(choice: str, row: int) -> Any:
        rows = [{"slot": "a1b2"}, {"slot": "c3d4"}, {"slot": "e5f6"}]
        found = EpisodeCall("list_slots", {}, rows)
        taken = EpisodeCall("take", {"slot": rows[row]["slot"], "colour": choice}, "ok", effect=True)
        made = abstract(Episode(request="Take a slot for me", calls=(found, taken)))
        assert made is not None
        return made.demonstration

    alike = merged(shown("red", 0), shown("red", 0)).calls[1]
    assert (alike.arguments["colour"], alike.places) == ("red", {"slot": "first"})
    other = merged(shown("red", 0), shown("blue", 2)).calls[1]
    assert (other.arguments["colour"], other.sources["colour"]) == ("⟦colour⟧", Taken.COMPOSED)
    assert other.places == {"slot": "other"}
    assert shown("red", 2).calls[1].places == {"slot": "last"}


async def test_nothing_is_urged_once_a_person_has_refused() -> None:
    playbook = book()
    closing = [call("find_user", name="Anna"), call("close_account", user_id=7), say("Closed.")]

    await asked(playbook, "Close the account of Anna", *closing, approver=lambda _: Approve())
    turns = [call("find_user", name="Bob"), call("close_account", user_id=9), say("It was not allowed.")]
    model = await asked(playbook, "Close the account of Bob", *turns, approver=lambda _: Deny(reason="not W-201"))
    assert [request.suggested is not None for request in model.requests] == [True, True, False]
    assert model.requests[2].messages[-1].name != NEXT_STEP
    assert len(model.requests) == 3  # no reminder either
    assert not [item for item in await playbook.bullets() if item.lookup is not None]


async def test_a_result_that_cannot_be_read_keeps_nobody_from_learning(tmp_path: Any) -> None:
    @tool(read_only=True)
    async def deep() -> str:
        """Returns something deep."""
        return "[" * 3000 + "]" * 3000

    @tool(risk=RiskLevel.REVERSIBLE)
    async def note(text: str) -> str:
        """Write a note."""
        return "noted"

    agent = Agent(name="notes", instruction="Take notes.", tools=[deep, note])
    bad: list[Any] = [call("deep"), call("note", text="one"), say("Noted.")]
    good: list[Any] = [call("note", text="milk"), say("Noted.")]
    store = f"sqlite:///{tmp_path}/notes.db"
    for turns, request in ((bad, "Look deep and note one"), (good, "Note milk"), (good, "Note milk")):
        async with Journeyman(store=store, model=ScriptedModel(turns), learning=True) as app:
            await (await app.start(agent, TaskInput(description=request, domain="notes"))).result()
            await app.playbooks.learn()
    async with Journeyman(store=store) as app:
        sequences = [item.tool_sequence for item in await app.playbooks["notes"].strategies()]
    assert ("note",) in sequences


@pytest.mark.parametrize("source", ["result", "result x id", "result 99 id", "result -1 id", ""])
async def test_a_source_that_says_nothing_is_told_as_little(source: str) -> None:
    class Odd:
        async def advise(self, text: str, **who: Any) -> list[Advice]:
            step = NextStep.stored({"tool_name": "find_user", "sources": {"name": source}})
            return [Advice(form="steps", text="as before", steps=(step,), alike=True)]

    model = ScriptedModel([call("find_user", name="Bob"), say("Found.")])
    agent = Agent(name="desk", instruction="Look after accounts.", tools=TOOLS)
    response = await run(agent, "Find Bob", model=model, playbook=Odd())
    assert response.answer == "Found."

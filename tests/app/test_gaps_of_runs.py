"""Runs that end without having done what was asked say what is missing, whoever ran them; and only those do."""

from __future__ import annotations

import pytest

from journeyman import Agent, AgentResponse, Journeyman, Principal, ToolLibrary, run, tool
from journeyman.core.gaps import gap_key
from journeyman.testing import ScriptedModel, call, say

PORTFOLIO = "Retrieve my stock portfolio performance for Q3 2024"
MISSING = "retrieve stock portfolio performance"
DECLINES = "I'm sorry, I don't have a tool for that."


@tool(read_only=True)
def get_weather(city: str) -> str:
    """The current weather and the forecast for a city."""
    return "sunny"


@tool(risk="irreversible")
def delete_file(path: str) -> str:
    """Delete a file."""
    return path


@tool(read_only=True, permissions={"bank:read"})
def read_account(name: str) -> str:
    """Read the balance of an account."""
    return name


AGENT = Agent(name="helper", instruction="Help.", tools=[get_weather, delete_file, read_account])


async def asked(task: str, *turns: object, agent: Agent = AGENT) -> AgentResponse:
    return await run(agent, task, model=ScriptedModel(turns))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "turns",
    [
        [say(DECLINES)],
        [say("I cannot do that.")],
        [say("What I can do: …", confidence=0.1)],
        [say("Your portfolio rose by 12 %.")],  # words alone do nothing in the world, whatever they say
        [call("get_portfolio", quarter="Q3"), say("Done.")],
    ],
)
async def test_a_run_that_did_nothing_of_it_says_what_is_missing(turns: list[object]) -> None:
    response = await asked(PORTFOLIO, *turns)
    assert response.gap is not None
    assert response.gap.missing_tools == (MISSING,)
    assert "No tool can do this: retrieve stock portfolio performance. Nearest: " in response.gap.plain
    assert AgentResponse.model_validate_json(response.model_dump_json()).gap == response.gap


@pytest.mark.parametrize(
    ("task", "turns"),
    [
        ("Thanks!", [say("You are welcome. I cannot do more.")]),
        ("Hello, how are you?", [say("Hello! I can't complain.", confidence=0.0)]),
        ("What is the weather in Oslo?", [call("get_weather", city="Oslo"), say("Sunny.")]),
        ("What is the weather in Oslo?", [say("I cannot tell the weather in Oslo.")]),  # there is a tool for it
        ("Delete the file notes.txt", [call("delete_file", path="notes.txt"), say("I was not allowed to.")]),
        ("What is the capital of France?", [say("Paris.")]),
        ("Write a poem about my cat", [say("A cat sat.")]),
        (PORTFOLIO, [say("Not sure about that one.", confidence=0.9)]),
    ],
)
async def test_small_talk_and_what_was_done_or_refused_is_no_gap(task: str, turns: list[object]) -> None:
    assert (await asked(task, *turns)).gap is None


async def test_an_agent_without_tools_misses_none() -> None:
    assert (await asked(PORTFOLIO, say(DECLINES), agent=Agent(name="talker", instruction="Talk."))).gap is None


async def test_tools_that_the_principal_may_not_use_are_not_named() -> None:
    response = await asked("Transfer 100 dollars to Bob", say(DECLINES))
    assert response.gap is not None
    assert sorted(response.gap.existing_tools_checked) == ["delete_file", "get_weather"]


async def test_durable_runs_keep_it_once_and_demand_is_counted_by_people(url: str) -> None:
    model = ScriptedModel([say(DECLINES)])
    ada, bob = Principal("ada"), Principal("bob")
    async with Journeyman(library=ToolLibrary([get_weather, delete_file, read_account]), store=url, model=model) as app:
        for text, principal in (
            (PORTFOLIO, ada),
            ("Show me the performance of our stock portfolio", bob),
            ("Order a large pizza with mushrooms", ada),
            ("Order a large pizza with mushrooms", ada),
            ("Order a large pizza with mushrooms", ada),
        ):
            response = await (await app.start(AGENT, text, principal=principal)).result()
            assert response.gap is not None
        first, second = await app.gaps.demand()
        assert (first.key, first.times, first.people) == (gap_key(MISSING), 2, 2)  # by people, then by times
        assert (second.missing, second.times, second.people) == ("order large pizza", 3, 1)
        [own] = await app.gaps.demand(principal_id="bob")
        assert (own.key, own.times) == (first.key, 1)
        assert own.report.attempted_task.startswith("Show me")
    async with Journeyman(store=url) as later:
        await later.gaps.dismiss(second.key, by="ada")
        assert [gap.key for gap in await later.gaps.demand()] == [first.key]
        [_, dismissed] = await later.gaps.demand(dismissed=True)
        assert (dismissed.key, dismissed.dismissed_by) == (second.key, "ada")


async def test_a_detector_that_fails_costs_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("no vectors today")

    monkeypatch.setattr("journeyman.app.assembly.find_gap", broken)
    response = await asked(PORTFOLIO, say(DECLINES))
    assert (response.status.value, response.gap) == ("completed", None)


async def test_a_model_is_asked_where_one_is_given(url: str) -> None:
    request = "Is it windy in Oslo?"
    async with Journeyman(library=ToolLibrary([get_weather]), store=url) as app:
        assert await app.gaps.detect(request, model=ScriptedModel([call("get_weather", city="Oslo")])) is None
        assert await app.gaps.detect_missing_tools(request, model=ScriptedModel([say("No tool.")])) is not None

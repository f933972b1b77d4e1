"""What a model is offered: decided at every step, from what is there, permitted and fitting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from journeyman import (
    Agent,
    BindingError,
    ConfigurationError,
    Journeyman,
    Policy,
    Principal,
    Tool,
    ToolDefinitionError,
    ToolLibrary,
    run,
    tool,
)
from journeyman.testing import ScriptedModel, call, say
from tests.playing import agent_with, play


@tool(read_only=True)
def look(at: str) -> str:
    """Look at something. Use when the user asks for it."""
    return f"{at} is there"


@tool(risk="reversible", permissions={"notes:write"})
def note(text: str) -> str:
    """Write a note. Use when something must be remembered."""
    return text


def numbered(count: int) -> list[Tool[..., Any]]:
    return [look.with_changes(name=f"look_{number}", description=f"Look at shelf {number}.") for number in range(count)]


def offered(model: ScriptedModel) -> list[list[str]]:
    return [[item.name for item in request.tools] for request in model.requests]


async def test_what_the_principal_may_not_use_is_not_offered_and_a_call_of_it_is_refused() -> None:
    turns = [call("note", text="x"), say("done")]
    without = await play([look, note], turns)
    assert offered(without.model) == [["look"], ["look"]]
    assert [record.error.code for record in without.response.tool_calls if record.error] == ["NOT_PERMITTED"]
    permitted = await play([look, note], turns, principal=Principal("ada", permissions={"notes:*"}))
    assert offered(permitted.model) == [["look", "note"]] * 2
    assert permitted.response.tool_calls[0].success


async def test_tools_that_come_and_go_are_seen_at_the_next_step() -> None:
    library = ToolLibrary([look])

    @tool(read_only=True)
    def swap() -> str:
        """Put one tool in the place of another."""
        library.unregister("look")
        library.register(note.with_changes(permissions=frozenset()))
        return "swapped"

    library.register(swap)
    agent = Agent(name="a", instruction="i", all_tools=True)
    model = ScriptedModel([call("swap"), call("look", at="x"), call("note", text="y"), say("done")])
    response = await run(agent, "go", library=library, model=model)
    assert offered(model) == [["look", "swap"], *[["swap", "note"]] * 3]
    assert [record.status for record in response.tool_calls] == ["success", "error", "success"]
    assert response.tool_calls[1].error is not None
    assert response.tool_calls[1].error.code == "UNKNOWN_TOOL"


async def test_an_offer_that_stays_is_the_same_object_at_every_step() -> None:
    played = await play([look], [call("look", at="a"), call("look", at="b"), say("done")])
    first, *others = [request.tools for request in played.model.requests]
    assert all(other is first for other in others)


async def test_of_many_tools_those_are_offered_that_fit_the_task_and_were_used() -> None:
    tools = numbered(40)
    library = ToolLibrary(tools)

    @tool(read_only=True)
    def another() -> str:
        """Add a tool."""
        library.register(look)
        return "added"

    library.register(another)
    agent = agent_with(*tools, another)
    model = ScriptedModel([call("look_7", at="x"), call("another"), say("done")])
    response = await run(agent, "Look at shelf 33", library=library, model=model, policy=Policy(max_offered_tools=5))
    before, _, after = offered(model)
    assert len(before) == len(after) == 5
    assert "look_33" in before
    assert {"look_33", "look_7", "another"} <= set(after)  # called although it was not offered: that counts as used
    assert all(record.success for record in response.tool_calls)


async def test_an_agent_that_was_given_tools_or_functions_needs_no_library() -> None:
    def plain(text: str) -> str:
        """Say it back."""
        return text * 2

    agent = Agent(name="a", instruction="i", tools=[look, plain])
    policy = Policy(risks={"plain": "reversible"})
    model = ScriptedModel([call("look", at="x"), call("plain", text="ab"), say("done")])
    response = await run(agent, "go", model=model, policy=policy)
    assert [record.result for record in response.tool_calls] == ["x is there", "abab"]
    assert [item.name for item in agent.own_tools] == ["look", "plain"]
    copy = Agent.from_gram(agent.to_gram())
    assert copy == agent
    assert copy.own_tools == ()
    with pytest.raises(BindingError, match="no implementation is registered"):
        await run(copy, "go", model=model)


async def test_a_library_that_is_given_is_the_only_one() -> None:
    @tool(name="look", description=look.specification.description, read_only=True)
    def another_look(at: str) -> str:
        return f"{at} is here"

    agent = Agent(name="a", instruction="i", tools=[look])
    model = ScriptedModel([call("look", at="x"), say("done")])
    response = await run(agent, "go", library=ToolLibrary([another_look]), model=model)
    assert [record.result for record in response.tool_calls] == ["x is here"]
    with pytest.raises(BindingError, match="look: no implementation is registered"):
        await run(agent, "go", library=ToolLibrary(), model=model)


async def test_an_app_without_a_library_runs_agents_with_their_own_tools(tmp_path: Path) -> None:
    agent = Agent(name="a", instruction="i", tools=[tool(lambda_like, risk="irreversible")])
    model = ScriptedModel([call("lambda_like", text="ab"), say("done")])
    async with Journeyman(store=f"sqlite:///{tmp_path / 'x.db'}", model=model, poll_seconds=0.05) as app:
        handle = await app.start(agent, "go")
        assert await handle.wait() == "awaiting_approval"
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace")  # the run goes on from the store, with the agent's tools
        assert [record.result for record in (await handle.result()).tool_calls] == ["abab"]


def lambda_like(text: str) -> str:
    """Say it twice."""
    return text * 2


def test_what_is_no_tool_is_refused_in_our_words() -> None:
    with pytest.raises(ToolDefinitionError, match="3 is not a tool; pass a tool, a function or a specification"):
        Agent(name="a", instruction="i", tools=[3])  # type: ignore[list-item]


async def test_a_task_may_narrow_what_all_tools_offers() -> None:
    agent = Agent(name="a", instruction="i", all_tools=True)
    from journeyman import TaskInput

    model = ScriptedModel([say("done")])
    task = TaskInput(description="go", available_tools=("look",))
    await run(agent, task, library=ToolLibrary([look, note]), model=model)
    assert offered(model) == [["look"]]
    with pytest.raises(ConfigurationError, match="did you mean 'look'"):
        await run(
            agent, TaskInput(description="go", available_tools=("loook",)), library=ToolLibrary([look]), model=model
        )

"""The design of the agent with a learned playbook: its entities as it writes them, and its flow of learning."""

# mypy: disable-error-code="call-arg"
# The designs' names are read when a program runs; type checkers know ours.
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, AgentResponse, ConfigurationError, TaskInput, ToolCallRecord, run, tool
from journeyman.core import InvalidDataError, ReasoningStep
from journeyman.core.approvals import Label, LabelSource
from journeyman.core.playbook import read_bullet
from journeyman.learning import Curator, LearningSettings, Playbook, PlaybookBullet, Reflector, ToolCallingStrategy
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.stores import FilePlaybooks
from journeyman.testing import ScriptedModel, say

STEP: dict[str, Any] = {
    "iteration": 1,
    "thought": "I need to find recent sales data for Q3",
    "action": "call_tool",
    "tool_name": "search_database",
    "tool_args": {"table": "sales", "filters": {"quarter": "Q3"}},
    "observation": "Found 1,250 sales records",
    "timestamp": 1729123456.789,
    "duration_ms": 45.2,
}
STRATEGY: dict[str, Any] = {
    "content": "For database queries about recent data, apply temporal filter first",
    "section": "Strategies",
    "helpful_count": 15,
    "harmful_count": 2,
    "tags": ["rag", "database", "temporal"],
    "tool_sequence": ["temporal_filter", "search_vector_db", "rank_results"],
    "tool_success_rate": 0.88,
    "avg_iterations": 3,
    "example_task": "Find Q3 sales data for enterprise customers",
}
BAD = Label(source=LabelSource.RATING, value="bad")


def test_a_step_is_made_from_its_tool_and_arguments() -> None:
    step = ReasoningStep(**STEP)
    assert step.model_dump().items() >= STEP.items()
    [call] = step.calls
    assert (call.tool_name, call.result, call.success) == ("search_database", "Found 1,250 sales records", True)
    assert call.start_time.timestamp() == STEP["timestamp"]
    assert ReasoningStep.model_validate_json(step.model_dump_json()) == step
    assert ReasoningStep.model_validate_json(json.dumps(STEP)).tool_args == STEP["tool_args"]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"iteration": 0}, "iteration"),
        ({"thought": ""}, "thought"),
        ({"tool_name": None}, "calls"),
        ({"tool_args": None}, "calls"),
        ({"action": "finish", "observation": None}, "observation"),
        ({"tool": "x"}, "tool: unknown field"),
    ],
)
def test_a_wrong_step_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidDataError, match=named):
        ReasoningStep(**STEP | wrong)


def test_a_call_is_made_from_its_six_fields() -> None:
    given = {"tool_name": "x", "arguments": {"a": 1}, "duration_ms": 3.5}
    good = ToolCallRecord(**given, result=[1], success=True)
    bad = ToolCallRecord(**given, success=False, error_message="no such table")
    assert (good.status, good.result, good.duration_ms) == ("success", [1], 3.5)
    assert (bad.status, bad.error_message, bad.success) == ("error", "no such table", False)


def test_a_strategy_has_every_field_and_a_rate_that_can_be_one() -> None:
    strategy = ToolCallingStrategy(**STRATEGY)
    assert strategy.tool_success_rate == pytest.approx(0.88, abs=0.01)
    assert ToolCallingStrategy.model_validate_json(strategy.model_dump_json()) == strategy
    wrong: dict[str, Any]
    for wrong in ({"tool_success_rate": 1.7}, {"tool_success_rate": -1}, {"tool_sequence": []}, {"helpfull_count": 1}):
        with pytest.raises(InvalidDataError, match=next(iter(wrong))):
            ToolCallingStrategy(**STRATEGY | wrong)
    with pytest.raises(InvalidDataError, match="contnt: unknown field"):
        PlaybookBullet(content="x", contnt="y")


def test_a_task_and_its_output_have_the_fields_of_the_design() -> None:
    task = TaskInput(
        task_id="t-1",
        description="Find Q3 sales",
        playbook_bullets=["Filter first"],
        domain="sales",
        metadata={"a": 1},
        available_tools=["search_database"],
        max_iterations=5,
    )
    output = AgentResponse(
        task_id=task.task_id,
        answer="1,250",
        reasoning_trace="Searched, then counted.",
        confidence=0.9,
        metadata={},
        structured_trace=[STEP],
        tools_used=["search_database"],
        total_iterations=1,
        iteration_limit_reached=False,
    )
    assert (output.reasoning, output.tools_used, output.total_iterations) == (
        "Searched, then counted.",
        ["search_database"],
        1,
    )
    stopped = AgentResponse(answer="", reasoning="r", confidence=0.1, iteration_limit_reached=True)
    assert (stopped.status, stopped.iteration_limit_reached) == ("limit_reached", True)
    with pytest.raises(InvalidDataError, match="total_iterations"):
        AgentResponse(answer="x", reasoning="r", confidence=1, structured_trace=[STEP], total_iterations=2)


async def test_bullets_of_both_formats_load_from_files(tmp_path: Path) -> None:
    folder = tmp_path / "tool-calling" / "sales"
    folder.mkdir(parents=True)
    dated = {**STRATEGY, "created_at": "2025-10-16T10:30:00Z", "last_updated": "2025-10-16T15:45:00Z", "newer": 1}
    lines = [dated, {"content": "Sales reports are due on Fridays", "section": "Observations"}]
    (folder / "old.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    playbook = Playbook("sales", store=FilePlaybooks(tmp_path), embedder=None, settings=LearningSettings(holdout=0))
    assert len(await playbook.bullets()) == 2
    told = await playbook.advise("When are sales reports due?", tools=["query"])
    assert [advice.text for advice in told] == ["Sales reports are due on Fridays"]
    agent = Agent(name="a", instruction="Help.")
    model = ScriptedModel([say("On Friday.")])
    await run(agent, "When are sales reports due?", model=model, playbook=playbook)
    assert "Sales reports are due on Fridays" in model.requests[0].messages[0].content


def _failed(number: int) -> Episode:
    dropped = EpisodeCall("drop_rows", {"t": "t1"}, "ok", effect=True)
    calls = (EpisodeCall("find_table", {"name": "sales"}, "t1"), dropped)
    return Episode("Clean up the sales table", calls, run_id=f"r{number}", labels=(BAD,), iterations=2)


async def test_what_only_ever_failed_warns_later_runs() -> None:
    playbook = Playbook("sales", embedder=None, settings=LearningSettings(holdout=0))
    asked, tools = "Clean up the sales table", ["find_table", "drop_rows"]
    await playbook.feed(_failed(0))
    assert await playbook.advise(asked, tools=tools) == []
    await playbook.feed(_failed(1))
    [strategy] = await playbook.strategies()
    assert (strategy.section, strategy.harmful_count, strategy.helpful_count) == ("Pitfalls", 2, 0)
    [warning] = await playbook.advise(asked, tools=tools)
    assert "find_table, then drop_rows has failed 2 times of 2" in warning.text
    assert warning.strategy_id is None  # a run that heeds it must not count for it
    assert await playbook.advise("Write a poem", tools=tools) == []
    assert await playbook.advise(asked, tools=["find_table"]) == []


async def test_three_strategies_go_to_a_model_that_can_use_them_and_one_to_others() -> None:
    playbook = Playbook("sales", embedder=None, settings=LearningSettings(holdout=0, nearest=0, agreement=0))
    texts = ("Find the sales of May", "Find the sales of May by region", "Find the sales of May by product")
    for number, text in enumerate(texts):
        given = {**STRATEGY, "example_task": text, "tool_sequence": [f"find_{number}"], "id": f"s{number}"}
        await playbook.put([read_bullet(given)])
    tools = [tool(_named(f"find_{number}"), read_only=True) for number in range(3)]
    agent = Agent(name="a", instruction="Help.", tools=tools)
    for several, count in ((False, 1), (True, 3)):
        model = ScriptedModel([say("Done.")])
        model.several_strategies = several  # type: ignore[attr-defined]  # what an adapter may say of itself
        await run(agent, "Find the sales of May", model=model, playbook=playbook)
        assert model.requests[0].messages[0].content.count("apply temporal filter") == count


def _named(name: str) -> Any:
    def find() -> str:
        """Find sales."""
        return "1"

    find.__name__ = name
    return find


async def test_retrieval_filters_by_the_metadata_of_the_index() -> None:
    strategy = ToolCallingStrategy(**STRATEGY, id="s", domain="sales", state="active")
    kept = {"has_tool_sequence": True, "domain": "sales", "tool_count": 3, "success_rate": 15 / 17}
    assert strategy.index_metadata == kept
    playbook = Playbook("sales", embedder=None)
    await playbook.put([strategy])
    asked = STRATEGY["example_task"]
    for where, found in (
        ({"success_rate": 0.8, "has_tool_sequence": True}, 1),
        ({"success_rate": 0.9}, 0),
        ({"tool_count": 3, "domain": "sales"}, 1),
        ({"tool_count": 2}, 0),
    ):
        assert len(await playbook.retrieve(asked, where=where)) == found
    with pytest.raises(ConfigurationError, match="sucess_rate"):
        await playbook.retrieve(asked, where={"sucess_rate": 0.5})


async def test_the_curator_merges_bullets_of_either_format() -> None:
    same = "Check the stock before you order"
    plain = [PlaybookBullet(content=text, helpful_count=1) for text in (same, f"{same}.", same, "Write in English")]
    curator = Curator()
    kept = await curator.merge([*plain, ToolCallingStrategy(**STRATEGY), ToolCallingStrategy(**STRATEGY)])
    counted = {bullet.content: bullet.helpful_count for bullet in kept}
    assert counted == {same: 3, "Write in English": 1, STRATEGY["content"]: 30}


async def test_reflector_and_curator_take_a_programs_own_output() -> None:
    output = AgentResponse(answer="1,250", reasoning_trace="…", confidence=0.9, structured_trace=[STEP])
    output = output.with_labels([Label(source=LabelSource.RATING, value="good")])
    assert Reflector().reflect(output) is None  # nobody says what was asked
    lesson = Reflector().reflect(output, request="Find the sales of Q3")
    assert lesson is not None
    curator = Curator()
    await curator.take_in(lesson)
    [learned] = [bullet for bullet in curator.bullets if isinstance(bullet, ToolCallingStrategy)]
    assert (learned.tool_sequence, learned.helpful_count) == (("search_database",), 1)

"""The design of the Slack bot's tools: results, categories, configuration and environments, by its own names."""

# mypy: disable-error-code="call-arg"
# The designs' names are read when a program runs; type checkers know ours.
from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from journeyman import (
    Agent,
    ConfigurationError,
    Journeyman,
    Principal,
    TaskInput,
    ToolCallRecord,
    ToolCategory,
    ToolConfiguration,
    ToolLibrary,
    ToolSpecification,
    run,
    tool,
)
from journeyman.app import apply_configuration
from journeyman.core import InvalidDataError
from journeyman.testing import ScriptedModel, call, say

START = datetime(2025, 12, 1, 10, tzinfo=UTC)
RESULT: dict[str, Any] = {
    "execution_id": "exec-1",
    "tool_name": "fetch_slack_messages",
    "status": "success",
    "result_data": "12 messages",
    "start_time": START,
    "end_time": START + timedelta(seconds=2),
}


def test_an_execution_result_is_read_and_shown_under_its_names() -> None:
    record = ToolCallRecord(**RESULT)
    assert (record.result_data, record.error_message, record.duration_ms) == ("12 messages", None, 2000)
    text = json.dumps({**RESULT, "start_time": START.isoformat(), "end_time": None, "duration_ms": 2000})
    assert ToolCallRecord.model_validate_json(text).end_time == RESULT["end_time"]
    told = {"status": "error", "result_data": None, "error_message": "slow down", "error_category": "rate_limit"}
    failed = ToolCallRecord(**RESULT | told)
    assert (failed.error_message, failed.error_category) == ("slow down", "rate_limit")
    with pytest.raises(InvalidDataError, match="error: a call with status 'error' must say why"):
        ToolCallRecord(**RESULT | {"status": "error", "result_data": None})
    with pytest.raises(InvalidDataError, match="error_message: a successful call has no error"):
        ToolCallRecord(**RESULT | {"error_message": "slow down"})
    with pytest.raises(InvalidDataError, match="category"):
        ToolCallRecord(**RESULT | told | {"error_category": "bad_luck"})


def test_a_context_is_a_task_with_where_it_was_said() -> None:
    task = TaskInput(
        user_request="Summarise this", channel_id="C0123ABCD", user_id="U1", thread_ts="1.2", environment="staging"
    )
    assert task.description == "Summarise this"
    assert task.metadata == {"slack": {"channel_id": "C0123ABCD", "user_id": "U1", "thread_ts": "1.2"}}
    with pytest.raises(InvalidDataError, match="environment"):
        TaskInput(description="x", environment="moon")
    with pytest.raises(InvalidDataError, match="channel_id: must be the id of a channel"):
        TaskInput(user_request="Summarise this", channel_id="general", user_id="U1")


def test_a_tool_has_a_function_signature() -> None:
    made = ToolSpecification(name="x", description="Does it.", function_signature="(a: Int) --> Text")
    assert made.function_signature == made.signature
    assert made.parameters["required"] == ["a"]


@tool(read_only=True, category="slack_tools")
def fetch(channel: str, limit: int = 5) -> dict[str, Any]:
    """Fetch messages. Use when somebody asks what was said."""
    return {"channel": channel, "limit": limit}


@tool(read_only=True, category="slack_tools")
def summarise(text: str) -> str:
    """Summarise a text. Use for recaps."""
    return text


async def test_a_program_applies_configurations() -> None:
    fetching = ToolConfiguration(
        tool_name="fetch",
        parameters={"limit": 50},
        rate_limits={"per_hour": 1},
        timeout_seconds=10,
        environment_overrides={"production": {"parameters": {"limit": 9}}, "staging": {"enabled": False}},
    )
    category = ToolCategory(
        name="slack_tools", permissions=["slack:read"], global_config={"a": 1}, tools={"fetch": fetching}
    )
    made = apply_configuration(ToolLibrary([fetch, summarise]), category)
    assert made.library["fetch"].specification.timeout_seconds == 10
    assert made.library["summarise"].specification.permissions == {"slack:read"}
    assert made.policy.rate_limits["fetch"].calls == 1
    agent = Agent(name="a", instruction="Help.", tools=list(made.library))
    for environment, limit in (("development", 50), ("production", 9)):
        made = apply_configuration(ToolLibrary([fetch, summarise]), category, environment=environment)  # type: ignore[arg-type]
        response = await run(
            Agent(name="a", instruction="Help.", tools=list(made.library)),
            "What was said?",
            library=made.library,
            policy=made.policy,
            principal=Principal("ada", permissions={"slack:read"}),
            model=ScriptedModel([call("fetch", channel="C1"), say("Done.")]),
        )
        assert response.tool_calls[0].result == {"channel": "C1", "limit": limit}
    denied = await run(agent, "x", library=made.library, model=ScriptedModel([call("fetch", channel="C1"), say("No.")]))
    assert denied.tool_calls[0].status == "denied"
    off = apply_configuration(ToolLibrary([fetch]), fetching, environment="staging")
    assert not off.library["fetch"].specification.enabled


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (ToolConfiguration(tool_name="fetsh"), "fetsh: there is no such tool"),
        (ToolConfiguration(tool_name="fetch", parameters={"limt": 1}), "fetch.parameters.limt"),
        (ToolConfiguration(tool_name="fetch", environment_overrides={"staging": {"enabeld": 1}}), "enabeld"),
        (ToolCategory(name="slak_tools"), "slak_tools: no tool has this category"),
    ],
)
def test_a_wrong_configuration_is_refused_by_name(said: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        apply_configuration(ToolLibrary([fetch]), said)


def test_a_category_names_its_tools_once() -> None:
    category = ToolCategory(name="slack_tools", tools={"fetch": {"enabled": False}})
    assert category.tools["fetch"] == ToolConfiguration(tool_name="fetch", enabled=False)
    with pytest.raises(InvalidDataError, match="'fetsh' is configured under another name"):
        ToolCategory(name="slack_tools", tools={"fetch": {"tool_name": "fetsh"}})


async def test_a_task_selects_the_overrides_of_its_environment(tmp_path: Path) -> None:
    path = tmp_path / "journeyman.yaml"
    place = "tests.sources_designs.test_design_slack:fetch"
    text = """
version: 1
environment: production
store: sqlite:///{store}
tools:
  fetch:
    import: "{place}"
    parameters: {{limit: 1}}
    environments: {{staging: {{parameters: {{limit: {limit}}}, rate_limit: 7/h}}, development: {{enabled: false}}}}
"""
    path.write_text(text.format(store=tmp_path / "j.db", place=place, limit=2))
    model = ScriptedModel([call("fetch", channel="C1"), say("Done.")])
    async with Journeyman.from_config(path, model=model, watch=False) as app:
        agent = Agent(name="a", instruction="Help.", all_tools=True)

        async def limit(environment: Any) -> Any:
            handle = await app.start(agent, TaskInput(description="What was said?", environment=environment))
            [record] = (await handle.result()).tool_calls
            return record.result["limit"] if record.success else record.status

        assert [await limit(name) for name in (None, "production", "staging")] == [1, 1, 2]
        assert await limit("development") in ("error", "denied")
        assert app.configuration is not None
        _, rules = app.configuration.in_environment(app.library, app.configuration.rules, "staging")
        assert rules.policy.rate_limits["fetch"].calls == 7
        assert await app.configuration.take_over(text.format(store=tmp_path / "j.db", place=place, limit=3).encode())
        assert await limit("staging") == 3  # an edit holds there, too

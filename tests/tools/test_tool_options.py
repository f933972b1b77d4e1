"""What ``@tool`` makes of its options, and how it refuses those that cannot work."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest

from journeyman import RiskLevel, ToolDefinitionError, ToolSpecification, tool
from journeyman.tools.tool import Tool


def send(to: str, text: str) -> str:
    """Send a text."""
    return f"{text} to {to}"


class Sender:
    """Sends."""

    def __call__(self, to: str, text: str) -> str:
        """Send a text."""
        return send(to, text)


def test_a_partial_is_named_after_what_it_was_applied_to() -> None:
    assert tool(functools.partial(send, text="hello")).name == "send"
    assert tool(functools.partial(functools.partial(send, "ada"), text="hello")).name == "send"
    assert tool(functools.partial(Sender(), text="hello")).name == "Sender"
    assert tool(functools.partial(send, text="hello"), name="greet").name == "greet"


@pytest.mark.parametrize("value", ["2", 2.0, True, None, -1])
def test_retries_that_are_no_count_are_refused(value: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"send: retries must be a whole number, 0 or more, got"):
        tool(send, retries=value)


@pytest.mark.parametrize("value", ["3", True, 0, -1, math.inf, math.nan])
def test_a_cache_time_that_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(ToolDefinitionError, match=r"send: cache_seconds must be a positive number, got"):
        tool(send, read_only=True, cache_seconds=value)


def test_a_tool_with_effects_cannot_be_cached() -> None:
    with pytest.raises(ToolDefinitionError, match=r"send: cache_seconds .* declare read_only=True"):
        tool(send, cache_seconds=3)


def test_a_tool_from_elsewhere_is_held_to_the_same_rules() -> None:
    described = ToolSpecification(name="ping", description="Ping.", read_only=True)
    assert Tool.from_specification(described, send, retries=2, cache_seconds=3).retries == 2
    with pytest.raises(ToolDefinitionError, match=r"'ping': retries"):
        Tool.from_specification(described, send, retries="2")  # type: ignore[arg-type]
    with pytest.raises(ToolDefinitionError, match=r"'ping': cache_seconds"):
        Tool.from_specification(described, send, cache_seconds=math.inf)


@pytest.mark.parametrize("name", ["web_search", "read_file", "get_current_time", "search_memory"])
def test_a_tool_with_the_name_of_a_known_read_is_read_only(name: str) -> None:
    made = tool(send, name=name, cache_seconds=3)
    assert (made.specification.read_only, made.specification.risk) == (True, None)


def test_what_a_tool_declares_wins_over_its_name() -> None:
    assert not tool(send, name="read_file", read_only=False).specification.read_only
    assert not tool(send, name="read_file", risk="irreversible").specification.read_only
    assert not tool(send, name="read_file", risk=RiskLevel.REVERSIBLE).specification.read_only
    assert not tool(send, name="send_email").specification.read_only


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout_seconds": 900}, "timeout_seconds: must be less than or equal to 300, got 900"),
        ({"timeout_seconds": None}, "timeout_seconds: must be a number, got null"),
        ({"risk": "never"}, "risk: must be 'reversible', 'reversible_with_delay' or 'irreversible', got \"never\""),
        ({"name": ["send"]}, "name: must be a string, got"),
        ({"name": "send it"}, 'name: a tool\'s name has no spaces or control characters, got "send it"'),
        ({"description": 5}, "description: must be a string, got 5"),
        ({"permissions": 5}, "permissions: must be a frozenset, got 5"),
        ({"permissions": ["a b"]}, "permissions: permission 'a b' is not well-formed"),
        ({"metadata": 5}, "metadata: must be a dictionary, got 5"),
        ({"tags": "mail"}, 'tags: must be a tuple, got "mail"'),
        ({"read_only": True, "risk": "irreversible"}, "risk: a read-only tool is reversible"),
        ({"isolation": "fork"}, "isolation is 'thread' or 'process', got 'fork'"),
        ({"timeout": 5}, "tool\\(\\) has no option 'timeout'; did you mean 'timeout_seconds'\\?"),
        ({"colour": "red"}, "tool\\(\\) has no option 'colour'; there are name, description, risk"),
    ],
)
def test_a_wrong_option_is_refused_with_the_function_the_value_and_the_rule(options: Any, told: str) -> None:
    with pytest.raises(ToolDefinitionError, match=rf"send: {told}"):
        tool(send, **options)


def test_a_variant_is_held_to_the_same_rules() -> None:
    made = tool(send)
    with pytest.raises(ToolDefinitionError, match=r"tool 'send': timeout_seconds: must be greater .*, got 0"):
        made.with_changes(timeout_seconds=0)
    with pytest.raises(ToolDefinitionError, match="retries: unknown field"):
        made.with_changes(retries=2)


def test_a_schema_from_elsewhere_that_is_none_names_its_tool() -> None:
    described = ToolSpecification(name="ping", description="Ping.", parameters={"type": "object", "minProperties": "x"})
    with pytest.raises(ToolDefinitionError, match="tool 'ping': parameters are not a valid JSON Schema"):
        Tool.from_specification(described, send)

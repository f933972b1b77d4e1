"""Specifications as OpenAI's function JSON and back."""

from __future__ import annotations

import pytest

from journeyman import RiskLevel, ToolDefinitionError, tool
from journeyman.interop.openai import from_openai, to_openai


@tool(risk="reversible")
def book_room(name: str, nights: int = 1) -> str:
    """Book a room.

    Args:
        name: Whose room it is.
    """
    return f"{name}: {nights}"


def test_a_tool_becomes_function_json_and_back() -> None:
    described = to_openai(book_room)
    assert described["type"] == "function"
    assert described["function"]["name"] == "book_room"
    assert described["function"]["parameters"]["required"] == ["name"]

    again = from_openai(described, risk="reversible", returns=book_room.specification.returns)

    assert again == book_room.specification


def test_what_goes_out_can_be_changed_without_harm() -> None:
    to_openai(book_room)["function"]["parameters"]["properties"].clear()
    assert set(book_room.specification.parameters["properties"]) == {"name", "nights"}


def test_the_bare_function_and_the_flat_envelope_are_read_too() -> None:
    bare = {"name": "ping", "description": "Ping a host.", "parameters": None}
    assert from_openai(bare) == from_openai({"type": "function", "strict": True, **bare})
    assert from_openai(bare).parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert from_openai(bare, risk="irreversible").risk is RiskLevel.IRREVERSIBLE


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"type": "function"}, "no 'name'"),
        ({"name": "a", "description": "b", "parameters": ["c"]}, "'parameters' is no JSON Schema"),
        (
            {"name": "a", "description": "b", "parameters": {"type": "array"}},
            "tool 'a': parameters: must be .* got",
        ),
        ({"name": "a"}, "description"),
        ({"name": "a b", "description": "c"}, "no spaces"),
    ],
)
def test_what_is_no_function_is_refused_with_the_reason(bad: dict[str, object], why: str) -> None:
    with pytest.raises(ToolDefinitionError, match=why):
        from_openai(bad)

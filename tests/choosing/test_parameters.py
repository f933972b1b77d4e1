"""Values for parameters are read where the request says them, each for one parameter, and only what conforms."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import ToolSpecification
from journeyman.choosing.parameters import fitting_values, missing_parameters, read_parameters

MONDAY = date(2026, 1, 5)


def tool(required: tuple[str, ...] = (), **parameters: Any) -> ToolSpecification:
    schema = {"type": "object", "properties": parameters, "required": list(required)}
    return ToolSpecification(name="do_it", description="Does it.", parameters=schema)


TEXT: dict[str, Any] = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
NUMBER = {"type": "integer"}
NAMES = "title query to when amount path channel ticket_id attendees project language duration_minutes due"


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("Write to ada@example.com", {"email": TEXT}, {"email": "ada@example.com"}),
        ("Read https://example.com/a?b=1, please", {"url": TEXT}, {"url": "https://example.com/a?b=1"}),
        ("What was said in #ops?", {"channel": TEXT}, {"channel": "#ops"}),
        ("Close WEB-412", {"ticket_id": TEXT}, {"ticket_id": "WEB-412"}),
        ("Open report.pdf", {"path": TEXT}, {"path": "report.pdf"}),
        ("Ship a-service v1.2", {"service": TEXT, "version": TEXT}, {"service": "a-service", "version": "v1.2"}),
        ("Due on Friday", {"due": {"type": "string", "format": "date"}}, {"due": "2026-01-09"}),
        ("Since last week, how many?", {"period": TEXT}, {"period": "Since last week"}),
        ("The high ones", {"priority": {"enum": ["low", "high"]}}, {"priority": "high"}),
        ("The low or high ones", {"priority": {"enum": ["low", "high"]}}, {}),
        ("At most 5 results", {"results": NUMBER}, {"results": 5}),
        ("Book half an hour", {"duration_minutes": NUMBER}, {"duration_minutes": 30}),
        ("Pay $1,200.50 back", {"amount": {"type": "number"}}, {"amount": 1200.5}),
        ("Meet with Ada and Grace Hopper", {"attendees": TEXTS}, {"attendees": ["Ada", "Grace Hopper"]}),
        ("Only overdue ones", {"overdue": {"type": "boolean"}}, {"overdue": True}),
        ("Not the overdue ones", {"overdue": {"type": "boolean"}}, {}),
        ("Say it in German", {"language": TEXT}, {"language": "German"}),
        ("Nothing of this is here", {"url": TEXT, "limit": NUMBER, "when": TEXT}, {}),
        ("Maybe 5", {"limit": {"anyOf": [NUMBER, {"type": "null"}], "description": "maybe"}}, {"limit": 5}),
    ],
)
def test_a_value_is_read_by_its_form_or_its_neighbour(text: str, parameters: Any, expected: Any) -> None:
    assert read_parameters(text, tool(**parameters), today=MONDAY) == expected


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("Create a page called Plans for May", "title", "Plans for May"),
        ("File it: the door is open", "title", "the door is open"),
        ("Tell Ada that we are late", "message", "we are late"),
        ("Remind me to call Grace", "text", "call Grace"),
        ('Add "two words" to it', "text", "two words"),
        ("Search the notes for blue shoes", "query", "blue shoes"),
        ("Look it up: find it", "query", None),
    ],
)
def test_a_required_text_is_what_is_quoted_or_follows_its_cue(text: str, name: str, expected: str | None) -> None:
    found = read_parameters(text, tool((name,), **{name: TEXT}), today=MONDAY)
    assert found.get(name) == expected


def test_what_one_parameter_has_taken_no_other_takes() -> None:
    found = read_parameters(
        "from ada@x.io to bob@x.io", tool(("sender_email", "email"), sender_email=TEXT, email=TEXT), today=MONDAY
    )
    assert found == {"sender_email": "ada@x.io", "email": "bob@x.io"}


def test_an_address_is_not_taken_apart() -> None:
    assert read_parameters("See https://x.io/archives/C7KQ1/p172", tool(thread_id=TEXT), today=MONDAY) == {}


def test_what_does_not_conform_is_dropped_and_what_is_required_is_missing() -> None:
    chosen = tool(("a", "b", "c"), a={"type": "string", "maxLength": 3}, b=NUMBER, c={"type": "string", "default": "x"})
    assert fitting_values({"a": "long text", "b": 3, "d": 1}, chosen) == {"b": 3}
    assert missing_parameters({"b": 3}, chosen) == ("a",)


def test_references_within_a_schema_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"level": {"$ref": "#/$defs/Level"}},
        "$defs": {"Level": {"type": "string", "enum": ["low"]}},
    }
    chosen = ToolSpecification(name="do_it", description="Does it.", parameters=schema)
    assert fitting_values({"level": "low"}, chosen) == {"level": "low"}
    assert fitting_values({"level": "no"}, chosen) == {}


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    kinds = {"amount": {"type": "number"}, "attendees": TEXTS, "duration_minutes": NUMBER}
    kinds["due"] = {"type": "string", "format": "date"}
    chosen = tool(("title", "query"), **{name: kinds.get(name, TEXT) for name in NAMES.split()})
    found = read_parameters(text, chosen, today=MONDAY)
    assert fitting_values(found, chosen) == found

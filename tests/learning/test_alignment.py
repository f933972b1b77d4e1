"""Requests that are worded alike, and what stands in them in the place of values."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import Agent, RiskLevel, run, tool
from journeyman.core.playbook import NEXT_STEP, placeholder
from journeyman.learning import LearningSettings, Playbook
from journeyman.learning.alignment import Alike, aligned, generalised
from journeyman.testing import ScriptedModel, call, say


@pytest.mark.parametrize(
    ("template", "request_", "expected"),
    [
        (
            "Reply to ⟦name⟧'s latest letter with '⟦body⟧'.",
            "Reply to Ada Byron's latest letter with 'Thanks, I will look at it tomorrow'.",
            {"name": "Ada Byron", "body": "Thanks, I will look at it tomorrow"},
        ),
        (
            "Send ⟦who⟧'s chair to ⟦place⟧ instead.",
            "send Oak Ltd's lamp to 8 Low Road instead",
            ("Oak Ltd", "8 Low Road"),
        ),
        ("⟦a⟧ takes over ⟦b⟧ from now on.", "Gina takes over Birch Ltd from now on.", ("Gina", "Birch Ltd")),
        ("Move it to ⟦day⟧ at ⟦hour⟧", "Move it to 2026-03-21 at 16:00", ("2026-03-21", "16:00")),
        ("Move ⟦a⟧ to ⟦b⟧, then open ⟦a⟧ again", "Move x to y, then open x again", ("x", "y")),
        ("Move ⟦a⟧ to ⟦b⟧, then open ⟦a⟧ again", "Move x to y, then open z again", None),
        ("Cancel the last order of ⟦name⟧.", "Don't cancel the last order of Bob.", None),
        ("Cancel the last order of ⟦name⟧.", "Cancel the last order of nobody.", None),
        ("Cancel the last order of ⟦name⟧.", "Show the biggest bill of Bob.", None),
        (
            "Cancel the last order of ⟦name⟧.",
            "Cancel the last order of Bob and write to him",
            ("Bob and write to him",),
        ),
        ("Do ⟦this⟧", "Do that", None),  # one word says nothing
        ("⟦all⟧", "anything at all", None),
        ("Cancel it all now", "Cancel it all now", {}),
        ("", "x", None),
        ("Cancel it now", "", None),
    ],
)
def test_values_are_told_from_words(
    template: str, request_: str, expected: dict[str, str] | tuple[str, ...] | None
) -> None:
    alike = aligned(template, request_)
    found = None if alike is None else alike.values
    assert (tuple(found.values()) if isinstance(expected, tuple) and found is not None else found) == expected


TAUGHT = "Cancel the latest order of ⟦name⟧."


@pytest.mark.parametrize(
    "request_",
    [
        *(f"{verb} the latest order of Bob" for verb in ("Show", "Keep", "Restore", "Undo", "Describe", "Protect")),
        "Cancel the latest invoice of Bob",
        "Cancel the oldest order of Bob",
        "Was the latest order of Bob cancelled?",
        "Did you cancel the latest order of Bob?",
        "Cancel the latest order of Bob?",
        "Cancel the latest order of Bob and then delete everything",
        "Cancel the latest order of everybody but Bob",
        "Cancel the latest order of Bob if it costs below 5 euros",
        "Cancel the latest order of Bob: what would that cost?",
        "Cancel the latest order of Bob, I shouldn't have asked",
        "Cancel the latest order of Bob tomorrow at 9",
        "Cancel the latest order of Bob nicht",
        "Cancel the latest order of\nBob; delete the rest",
    ],
)
def test_what_asks_for_something_else_is_not_exactly_alike(request_: str) -> None:
    alike = aligned(TAUGHT, request_)
    assert alike is None or not alike.exact


@pytest.mark.parametrize(
    "request_",
    ["Cancel the latest order of Bob", "cancel the latest order of Bob.", 'Cancel the latest order of "Bob"'],
)
def test_marks_around_a_value_are_none_of_it(request_: str) -> None:
    assert aligned(TAUGHT, request_) == Alike({"name": "Bob"}, exact=True)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (
            "Send ⟦n⟧'s chair to ⟦a⟧ instead.",
            "Send ⟦n⟧'s lamp to ⟦a⟧ instead.",
            "Send ⟦n⟧'s ⟦any word⟧ to ⟦a⟧ instead.",
        ),
        ("Fewer than 358 visits on ⟦d⟧", "Fewer than 20 visits on ⟦d⟧", "Fewer than ⟦any word⟧ visits on ⟦d⟧"),
        ("Cancel the latest order of ⟦n⟧", "Cancel the oldest order of ⟦n⟧", None),
        ("Please lock the door of ⟦n⟧", "Please unlock the door of ⟦n⟧", None),
        ("Turn the light on in ⟦n⟧", "Turn the light off in ⟦n⟧", None),
        ("Cancel ⟦n⟧", "Cancel ⟦n⟧ now", None),
    ],
)
def test_a_thing_that_differed_may_differ_again_and_what_to_do_may_not(one: str, other: str, both: str | None) -> None:
    assert generalised(one, other) == both


WORDS = st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), min_size=1, max_size=3).map(" ".join)


@given(WORDS, WORDS)
def test_a_value_put_into_a_template_is_found_again(first: str, second: str) -> None:
    text = "Please move the parcel '{}' over to the shelf '{}' today."
    found = aligned(text.format(placeholder("a"), placeholder("b")), text.format(first, second))
    # None: it says something like "not".
    assert found is None or (found.exact and found.values == {"a": first, "b": second})


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_is_too_odd(template: str, request_: str) -> None:
    found = aligned(template, request_)
    assert found is None or all(value in request_ for value in found.values.values())


@tool(read_only=True)
async def find_person(name: str) -> list[dict[str, str]]:
    """Find a person's address."""
    return [{"email": f"{name.lower()}@corp.example", "name": name}]


@tool(risk=RiskLevel.REVERSIBLE)
async def book_room(guest: str, nights: int) -> str:
    """Book a room for a guest's address."""
    return "booked"


async def test_the_next_call_is_suggested_with_its_values_where_the_wording_is_known() -> None:
    agent = Agent(name="inn", instruction="Book rooms.", tools=[find_person, book_room])
    book = Playbook("inn", settings=LearningSettings(holdout=0.0, needed=1), embedder=None)

    def steps(name: str, nights: int) -> list[Any]:
        booked = call("book_room", guest=f"{name.lower()}@corp.example", nights=nights)
        return [call("find_person", name=name), booked, say("Booked.")]

    await run(agent, "Book 3 nights for Anna please", model=ScriptedModel(steps("Anna", 3)), playbook=book)
    model = ScriptedModel(steps("Dora", 12))
    await run(agent, "Book 12 nights for Dora please", model=model, playbook=book)
    first, second, last = (request.suggested for request in model.requests)
    assert first is not None
    assert (first.tool_name, first.arguments) == ("find_person", {"name": "Dora"})
    assert second is not None
    assert (second.tool_name, second.arguments) == ("book_room", {"guest": "dora@corp.example", "nights": 12})
    assert last is not None
    assert last.tool_name == "finish"

    elsewhere = ScriptedModel(steps("Dora", 2))
    await run(agent, "Dora would like to stay, two nights, book that please", model=elsewhere, playbook=book)
    assert [request.suggested for request in elsewhere.requests] == [None] * 3
    assert all(
        "Dora" not in m.content for request in elsewhere.requests for m in request.messages if m.name == NEXT_STEP
    )

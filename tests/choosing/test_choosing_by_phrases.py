"""What a request wants done is told without its verb too, and things by other words than those of the tools."""

from __future__ import annotations

import pytest

from journeyman import ToolSpecification
from journeyman.choosing.actions import CONCEPTS, LONGEST_PHRASE, concepts, cued_actions, mood_of
from journeyman.choosing.ranking import ToolRanking
from journeyman.core.words import packaged_text, words


def specification(name: str, description: str, *, read_only: bool = False, **parameters: str) -> ToolSpecification:
    properties = {key: {"type": "string", "description": told} for key, told in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": []}
    return ToolSpecification(name=name, description=description, parameters=schema, read_only=read_only)


ROOMS = (
    specification("court_create", "Reserve a court for a player.", player="Who plays", day="When"),
    specification("court_change", "Move a court reservation to another day.", player="Who plays", day="The new day"),
    specification("court_cancel", "Cancel a court reservation.", player="Who plays"),
    specification("court_list", "List the court reservations of a day.", read_only=True, day="Which day"),
)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("I'd like a court on Monday", "court_create"),
        ("Petra is ill on Monday, her court on Friday instead please", "court_change"),
        ("Petra no longer needs the court", "court_cancel"),
        ("Is there a court reserved on Monday yet?", "court_list"),
    ],
)
async def test_deeds_with_one_thing_are_told_apart_by_turns_of_phrase(text: str, tool: str) -> None:
    assert (await ToolRanking().rank(text, ROOMS, k=1)) == [tool]


@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("Cancel the lesson", "order"),
        ("Could you please book a lesson", "order"),
        ("Can we have the small hall?", "order"),
        ("How many lessons are left?", "question"),
        ("The hall is free then?", "question"),
        ("Petra has moved to Bonn", "statement"),
    ],
)
def test_orders_questions_and_statements_are_told_apart(text: str, mood: str) -> None:
    assert mood_of(text) == mood


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("we don't need the hall any more", {"delete"}),
        ("make it Friday instead", {"update"}),
        ("I'd like two seats", {"create"}),
        ("any news of the parcel", {"get"}),
        ("the sun shines", set()),
    ],
)
def test_turns_of_phrase_say_what_is_wanted(text: str, actions: set[str]) -> None:
    assert cued_actions(text) == actions


def test_things_are_known_by_other_words() -> None:
    assert concepts("Where is my suitcase?") & concepts("Trace baggage")
    assert not concepts("suitcase") & concepts("irrigation")


def test_every_listed_phrase_can_be_found_and_stands_beside_another() -> None:
    lines = [
        line
        for line in packaged_text("journeyman.choosing", CONCEPTS).splitlines()
        if line and not line.startswith("#")
    ]
    for line in lines:
        phrases = [phrase.strip() for phrase in line.split(",")]
        assert len(set(phrases)) == len(phrases) > 1, line
        for phrase in phrases:
            assert 0 < len(words(phrase)) <= LONGEST_PHRASE, phrase

"""What is left out of the tools that a model weighs: nobody who asks wants something changed."""

from __future__ import annotations

import pytest

from journeyman.app.finding import how_served, tools_with_chances
from tests.models.asking import tool

TEXT = {"type": "string"}
READS = tool("list_devices", "Show all devices and whether they are on.").model_copy(update={"read_only": True})
SEARCHES = tool("find_movies", "Find movies by genre.", genre=TEXT).model_copy(update={"read_only": True})
CHANGES = (tool("turn_on", "Switch a device on.", device=TEXT), tool("rent_movie", "Rent a movie.", movie=TEXT))


@pytest.mark.parametrize(
    ("said", "weighs"),
    [
        ("What is switched on?", {"list_devices", "find_movies"}),
        ("is the radio switched on", {"list_devices", "find_movies"}),
        ("Find me a movie", {"list_devices", "find_movies"}),
        ("I need help finding a drama", {"list_devices", "find_movies"}),
        ("Could you switch the radio on?", None),
        ("Is it possible to switch the radio on?", None),
        ("Switch the radio on", None),
        ("Is the radio on? Switch it on.", None),
        ("Find a movie and rent it", None),
    ],
)
async def test_a_question_weighs_only_what_reads(said: str, weighs: set[str] | None) -> None:
    tools = (READS, SEARCHES, *CHANGES)
    ranked = await tools_with_chances(said, tools)
    assert {each.name for each, _ in ranked} == (weighs or {each.name for each in tools})


async def test_where_nothing_reads_a_question_weighs_everything() -> None:
    ranked = await tools_with_chances("What is switched on?", CHANGES)
    assert {each.name for each, _ in ranked} == {each.name for each in CHANGES}


@pytest.mark.parametrize(("said", "served"), [("Rent the movie Heat", True), ("Water the lawn", False), ("Hi", False)])
async def test_a_request_is_served_where_much_speaks_for_a_tool(said: str, served: bool) -> None:
    assert any(fits >= 0 for fits in (await how_served(said, CHANGES)).values()) == served

"""Arguments that a request settles itself, whatever the tool. No engine is started here."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.specification import ToolSpecification
from journeyman.models.arguments import dates_in_request, flags_in_request, grounded, is_excepted, mentions
from journeyman.models.embedded.tools import form_of

MONDAY = date(2026, 11, 16)
TEXT, DAY = {"type": "string"}, {"type": "string", "format": "date"}
FLAG = {"type": "boolean", "default": False}


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


ONE = schema("name", name=TEXT, when=DAY)
RANGE = schema(name=TEXT, created_after=DAY, created_before=DAY)
STAY = schema("start_date", "end_date", start_date=DAY, end_date=DAY)


@pytest.mark.parametrize(
    ("request_", "day", "rest"),
    [
        ("Wash the car tomorrow", "2026-11-17", "Wash the car"),
        ("Remind me tonight to wash the car", "2026-11-16", "Remind me to wash the car"),
        ("On Friday, wash the car", "2026-11-20", "wash the car"),
        ("Wash the car, due by the 3rd of December, please", "2026-12-03", "Wash the car, please"),
        ("Wash the car next Monday at 5pm", "2026-11-23", "Wash the car at 5pm"),
        ("Wash the car this weekend!", "2026-11-21", "Wash the car!"),
        ("Wash the car within two weeks", "2026-11-30", "Wash the car"),
        ("Move the Friday meeting to Monday", "2026-11-23", "Move the Friday meeting"),
    ],
)
def test_the_day_of_a_request_is_the_only_date_of_a_tool(request_: str, day: str, rest: str) -> None:
    told = dates_in_request(ONE, request_, MONDAY)
    assert told is not None
    assert (told.arguments, told.text) == ({"when": day}, rest)


@pytest.mark.parametrize(
    "request_",
    [
        "Wash the car",
        "Prepare tomorrow's meeting",
        "Prepare the Friday meeting",
        "Add 'See you on Friday'",
        "Wash the car every Friday",
        "Wash it on Monday and on Friday",
        "Call the May Company",
    ],
)
def test_names_quotes_and_several_days_are_left_to_the_engine(request_: str) -> None:
    assert dates_in_request(ONE, request_, MONDAY) is None


@pytest.mark.parametrize(
    ("request_", "first", "last"),
    [
        ("Show files of this week", "2026-11-16", "2026-11-22"),
        ("Show today's files", "2026-11-16", "2026-11-16"),
        ("Show last month's files", "2026-10-01", "2026-10-31"),
        ("Show files since yesterday", "2026-11-15", None),
        ("Show files until Friday", None, "2026-11-20"),
        ("Show files between Monday and Friday", "2026-11-23", "2026-11-27"),
        ("Show files from 1 December to 2026-12-24", "2026-12-01", "2026-12-24"),
    ],
)
def test_a_range_gets_the_ends_that_a_request_names(request_: str, first: str | None, last: str | None) -> None:
    told = dates_in_request(RANGE, request_, MONDAY)
    assert told is not None
    assert (told.arguments.get("created_after"), told.arguments.get("created_before")) == (first, last)


def test_one_day_is_not_both_ends_of_a_stay() -> None:
    assert dates_in_request(STAY, "Book a room for Friday", MONDAY) is None
    told = dates_in_request(STAY, "Book a room from Friday to Sunday", MONDAY)
    assert told is not None
    assert told.arguments == {"start_date": "2026-11-20", "end_date": "2026-11-22"}


@given(
    st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.sampled_from(["this week", "next week", "next month", "Friday"])
)
def test_periods_are_whole_and_lie_where_they_should(today: date, words: str) -> None:
    [found] = mentions(f"Show what is due {words}", today)
    first, last = found.period
    assert first <= last
    match words:
        case "this week":
            assert first <= today <= last == first + timedelta(days=6)
        case "next week":
            assert today < first == last - timedelta(days=6) <= today + timedelta(days=7)
        case "next month":
            assert (first.day, (last + timedelta(days=1)).day, first.month) == (1, 1, today.month % 12 + 1)
        case _:
            assert first == last
            assert today < first <= today + timedelta(days=7)


@given(st.text(max_size=80))
def test_any_text_can_be_looked_through(text: str) -> None:
    for found in mentions(text, MONDAY):
        assert 0 <= found.start < found.end <= len(text)


def test_a_bad_copy_becomes_what_stands_in_the_request() -> None:
    given_ = {"url": "https://github.com/python/pull/1", "path": "src/mian.py", "name": "Ann", "when": "tomorrow"}
    text = "Send https://github.com/python/cpython/pull/1, and src/main.py to Anna tomorrow"
    parts = schema(url=TEXT, path=TEXT, name=TEXT, when={**TEXT, "description": "As YYYY-MM-DD."})
    assert grounded(given_, parts, text, MONDAY) == {
        "url": "https://github.com/python/cpython/pull/1",
        "path": "src/main.py",
        "name": "Ann",
        "when": "2026-11-17",
    }
    two = "Compare https://a.example/1 with https://a.example/2"
    assert grounded({"url": "https://a.example/3"}, parts, two, MONDAY) == {"url": "https://a.example/3"}


@pytest.mark.parametrize(
    ("request_", "value"),
    [
        ("I have finished the essay", "completed"),
        ("The essay is done", "completed"),
        ("Set the essay to pending", "pending"),
        ("The essay is not finished", "in_progress"),
        ("What about the essay?", "in_progress"),
        ("Is the essay pending or done?", "in_progress"),
    ],
)
def test_a_value_that_is_said_wins_over_one_that_is_not(request_: str, value: str) -> None:
    told = "The status: done or finished is completed, open is pending."
    status = {**TEXT, "enum": ["pending", "in_progress", "completed"], "description": told}
    assert grounded({"status": "in_progress"}, schema(status=status), request_, MONDAY) == {"status": value}


def test_a_flag_is_set_by_its_name() -> None:
    parts = schema(overdue=FLAG, name=TEXT, dry_run=FLAG)
    assert flags_in_request(parts, "Show overdue tasks") == {"overdue": True}
    assert flags_in_request(parts, "Make it a dry run") == {"dry_run": True}
    assert flags_in_request(parts, "Show tasks that are not overdue") == {}


def test_what_a_request_excepts_is_known() -> None:
    assert is_excepted(["milk"], "Delete all except the milk")
    assert not is_excepted(["all except the milk", 3, ""], "Delete all except the milk")


def test_a_day_that_the_request_settles_is_the_calls_whatever_the_engine_copied() -> None:
    made = ToolSpecification(name="create_task", description="Create a task.", parameters=ONE)
    text = "Remind me to wash the car tomorrow"
    form = form_of([made], text, MONDAY)
    [part] = json.loads(form.text)
    assert list(part["parameters"]["properties"]) == ["name", "when"]
    said = [{"name": "create_task", "arguments": {"name": "Wash the car", "when": "car"}}]
    [call] = form.calls(said, text=text, confidence=1.0, today=MONDAY)
    assert call.arguments == {"name": "Wash the car", "when": "2026-11-17"}

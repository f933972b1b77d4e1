"""What stands around the engine: files, forms, dates and answers. No engine is started here."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.errors import ModelError
from journeyman.core.runs import Message
from journeyman.core.specification import ToolSpecification
from journeyman.models.arguments import as_iso, plain_schema
from journeyman.models.embedded import EmbeddedModel, files
from journeyman.models.embedded.tools import (
    cannot_help,
    form_of,
    ordered_form_of,
    small_talk,
    whole_of,
)
from tests.models.asking import asked

MONDAY = date(2026, 11, 16)


def tool(name: str, *, required: tuple[str, ...] = (), **properties: Any) -> ToolSpecification:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpecification(name=name, description=f"Does {name}. Use it often.", parameters=parameters)


async def refusal(folder: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await EmbeddedModel(folder=folder).respond(asked(Message.user("Show all"), tools=(tool("look"),)))
    return caught.value


async def test_without_the_weights_every_request_fails_and_says_what_to_install(tmp_path: Path) -> None:
    error = await refusal(tmp_path)
    assert error.info.code == "MODEL_NOT_INSTALLED"
    assert "[embedded]" in str(error.info.user_guidance)


async def test_a_file_with_another_hash_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / files.ENGINE).write_bytes(b"not an engine")
    (tmp_path / files.WEIGHTS).write_bytes(b"not weights")
    error = await refusal(tmp_path)
    assert error.info.code == "MODEL_WRONG_FILE"
    assert files.HASHES[files.ENGINE] in error.info.message


async def test_another_platform_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    error = await refusal(tmp_path)
    assert error.info.code == "MODEL_UNSUPPORTED_PLATFORM"
    assert "darwin" in error.info.message


def test_the_package_that_brings_the_files_is_never_imported() -> None:
    code = (
        "import sys; from journeyman.models.embedded.files import engine_files\n"
        "import journeyman.models.embedded\n"
        "try: engine_files()\n"
        "except Exception: pass\n"
        "assert 'needle' not in sys.modules, sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_engine_reads_what_a_tool_does_and_when_and_not_its_small_print() -> None:
    look = tool("look").model_copy(update={"description": "Looks. Use it\noften.\n\nReturns much. Errors: MANY."})
    for offer in (form_of([look], "Look", MONDAY), whole_of([look])):
        assert json.loads(offer.text)[0]["description"] == "Looks. Use it often."


def asked_for(name: str, *requests: str) -> ToolSpecification:
    return tool(name).model_copy(update={"examples": (*requests, {"x": 1})})


def test_a_tool_is_offered_under_the_verb_with_which_it_is_asked_for() -> None:
    update = asked_for("update_task", "Rename milk to honey", "What about milk?", "Delete it", "")
    both = [update, tool("delete_task")]

    def offered(text: str) -> list[str]:
        return [part["name"] for part in json.loads(form_of(both, text, MONDAY).text)]

    assert offered("Please rename bread to buns") == ["rename_task", "delete_task"]
    assert offered("Delete the bread task") == ["update_task", "delete_task"]  # that is another tool's name
    assert offered("What is it?") == ["update_task", "delete_task"]
    said = [{"name": "rename_task", "arguments": {}}, {"name": "paint_task", "arguments": {}}]
    [call] = form_of(both, "Rename it", MONDAY).calls(said, text="Rename it", confidence=1.0, today=MONDAY)
    assert call.tool_name == "update_task"


@pytest.mark.parametrize(
    ("request_", "order"),
    [
        ("I have to buy stamps", "Create task: buy stamps"),
        ("i have to buy stamps", "Create task: buy stamps"),
        ("Put stamps on my list", "Create task: stamps"),
        ("I have to buy stamps on Friday", "Create task: buy stamps"),
        ("I want to buy stamps", None),
        ("Put stamps on the letter", None),
        ("I have to", None),
        ("", None),
    ],
)
def test_a_request_in_the_words_of_an_example_is_an_order(request_: str, order: str | None) -> None:
    text, day = {"type": "string"}, {"type": "string", "format": "date"}
    create = tool("create_task", required=("title",), title=text, when=day)
    create = create.model_copy(update={"examples": ("I have to call Anna", "Put bread on my list")})
    form = ordered_form_of(create, request_, MONDAY, worded=True)
    assert (form.asked if form else None) == order


def test_what_stands_around_it_is_left_where_it_says_something() -> None:
    status = {"type": "string", "enum": ["done", "open"]}
    update = tool("update_task", required=("task",), task={"type": "string"}, status=status)
    update = update.model_copy(update={"examples": ("I am done with the essay",)})
    form = ordered_form_of(update, "I am done with the report", MONDAY)
    assert form is not None
    assert form.asked == "Update task: I am done with the report"


def test_one_sentence_makes_one_task_and_two_make_two() -> None:
    forms = form_of([tool("add", title={"type": "string"})], "", MONDAY)

    def made(*titles: str) -> int:
        said = [{"name": "add", "arguments": {"title": title}} for title in titles]
        return len(forms.calls(said, text="", confidence=1.0, today=MONDAY))

    assert made("Buy bread", "Add buy bread") == 1
    assert made("Buy bread", "Buy milk") == 2


@pytest.mark.parametrize(
    ("said", "copied", "whole"),
    [
        ("Cancel the call with Lena", "Lena", "call with Lena"),
        ("throw away the entry visit grandpa", "grandpa", "visit grandpa"),
        ("Cancel Lena", "Lena", "Lena"),
        ("Cancel the event at noon", "noon", "noon"),
        ("Please cancel my call, Lena", "Lena", "Lena"),
    ],
)
def test_what_a_tool_acts_on_is_taken_whole(said: str, copied: str, whole: str) -> None:
    cancel = tool("cancel_event", required=("event",), event={"type": "string"})
    cancel = cancel.model_copy(update={"description": "Cancel an entry."})
    [call] = form_of([cancel], said, MONDAY).calls(
        [{"name": "cancel_event", "arguments": {"event": copied}}], text=said, confidence=1.0, today=MONDAY
    )
    assert call.arguments == {"event": whole}


@pytest.mark.parametrize(
    ("said", "copied", "whole"),
    [
        ("Ann Lee was born in May", {"name": "Lee"}, {"name": "Ann Lee"}),
        ("note that Ann Lee was here", {"name": "Ann"}, {"name": "Ann Lee"}),
        ("Call Anna", {"name": "Anna"}, {"name": "Anna"}),
        ("add Ann Lee", {"name": "Ann", "text": "Lee"}, {"name": "Ann", "text": "Lee"}),
        ("add Ann Lee, ann@lee.example", {"name": "Ann"}, {"name": "Ann Lee", "email": "ann@lee.example"}),
        ("add ann, ann@lee.example", {"name": "ann@lee.example"}, {"name": "ann@lee.example"}),
        ("add ann, a@b.example or c@d.example", {"name": "ann"}, {"name": "ann"}),
        ("add ann of https://ann.example/x", {"name": "ann"}, {"name": "ann", "website": "https://ann.example/x"}),
    ],
)
def test_names_are_taken_whole_and_addresses_go_where_they_belong(
    said: str, copied: dict[str, str], whole: dict[str, str]
) -> None:
    text = {"type": "string"}
    parts = {"name": text, "text": text, "email": text, "website": {"type": "string", "format": "uri"}}
    add = tool("add", required=()).model_copy(update={"parameters": {"type": "object", "properties": parts}})
    [call] = form_of([add], said, MONDAY).calls(
        [{"name": "add", "arguments": copied}], text=said, confidence=1.0, today=MONDAY
    )
    assert call.arguments == whole


@pytest.mark.parametrize(
    ("said", "copied", "settled"),
    [
        ("a four star hotel", {"number_of_rooms": 4}, {"stars": 4}),
        ("4 stars and two rooms", {"stars": 2}, {"stars": 4, "number_of_rooms": 2}),
        ("nine rooms", {}, {"number_of_rooms": 9}),
        ("a room with 3 stars or 4 stars", {"stars": 3}, {"stars": 3}),
        ("a hotel for 4", {"number_of_rooms": 4}, {"number_of_rooms": 4}),
    ],
)
def test_a_number_goes_to_the_parameter_whose_word_stands_beside_it(
    said: str, copied: dict[str, int], settled: dict[str, int]
) -> None:
    number = {"type": "integer"}
    search = tool("search", required=(), stars=number, number_of_rooms=number)
    [call] = form_of([search], said, MONDAY).calls(
        [{"name": "search", "arguments": copied}], text=said, confidence=1.0, today=MONDAY
    )
    assert call.arguments == settled


def test_the_only_number_of_a_request_goes_where_a_number_is_wanted() -> None:
    refund = tool("refund", required=("order",), order={"type": "string"}, amount={"type": "number"})

    def amount(text: str, **given: Any) -> Any:
        said = [{"name": "refund", "arguments": {"order": "A1042", **given}}]
        [call] = form_of([refund], text, MONDAY).calls(said, text=text, confidence=1.0, today=MONDAY)
        return call.arguments.get("amount")

    assert amount("Refund 15.50 of A1042") == 15.5
    assert amount("Refund 15.50 of A1042", amount=15.0) == 15.5  # it drops what stands after the point
    assert amount("Refund 15.50 of A1042", amount=3.0) == 3.0
    assert amount("Refund A1042") is None
    assert amount("Refund 3 or 4 euros of A1042") is None
    assert amount("Refund A1042 on 3 December at 9:30") is None


def test_a_form_has_what_is_required_and_what_the_request_can_speak_of() -> None:
    text, day = {"type": "string"}, {"type": "string", "format": "date"}
    look = tool(
        "look",
        required=("thing",),
        thing=text,
        colour={"type": "string", "enum": ["red", "dark green"]},
        until={**day, "description": "The last day."},
        most={"type": "integer"},
        owner={**text, "description": "Whose it is; the landlord is usual."},
        note=text,
    )

    def asked(request: str) -> list[str]:
        [part] = json.loads(form_of([look], request, MONDAY).text)
        return list(part["parameters"]["properties"])

    assert asked("Look at the car") == ["thing"]
    assert asked("Look at the dark green car") == ["thing", "colour"]
    assert asked("Look at the car until Friday") == ["thing", "until"]
    assert asked("Look at three cars") == ["thing", "most"]
    assert asked("Look at the landlord's car, with a note") == ["thing", "owner", "note"]


def test_where_nothing_is_required_a_name_is_asked_for() -> None:
    weather = tool("get_weather", place={"type": "string"}, unit={"type": "string", "enum": ["C", "F"]})
    search = tool("search", required=("query",), query={"type": "string"}, hint={"type": "string"})

    def asked_for(made: ToolSpecification, text: str) -> set[str]:
        [shown] = json.loads(form_of([made], text, MONDAY).text)
        return set(shown["parameters"]["properties"])

    assert asked_for(weather, "What is it like in Fox Chapel?") == {"place"}
    assert asked_for(weather, "what is it like on Friday") == set()
    assert asked_for(search, "Look for Fox Chapel") == {"query"}


def test_a_day_is_asked_for_in_words() -> None:
    when = tool("when", required=("day",), day={"type": "string", "format": "date", "description": "When."})
    [part] = json.loads(whole_of([when]).text)
    assert part["parameters"]["properties"]["day"] == {
        "type": "string",
        "description": "When. Copy the date word for word.",
    }


def test_names_that_are_not_plain_come_back_as_they_were() -> None:
    whole = whole_of([tool("größe.messen", required=("x",), x={"type": "string"})])
    [name] = [written["name"] for written in json.loads(whole.text)]
    [call] = whole.calls([{"name": name, "arguments": {"x": "1"}}], text="", confidence=1.0, today=MONDAY)
    assert (name.isascii(), call.tool_name) == (True, "größe.messen")


def test_references_and_nulls_are_resolved() -> None:
    schema = {
        "type": "object",
        "properties": {"level": {"anyOf": [{"$ref": "#/$defs/Level"}, {"type": "null"}], "default": None}},
        "$defs": {"Level": {"type": "string", "enum": ["low", "high"], "title": "Level"}},
    }
    assert plain_schema(schema)["properties"] == {"level": {"type": "string", "enum": ["low", "high"]}}


def test_a_schema_that_contains_itself_ends() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert plain_schema({**node, "$defs": {"Node": node}})["type"] == "object"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2026-12-01", "2026-12-01"),
        ("today", "2026-11-16"),
        ("by tomorrow", "2026-11-17"),
        ("Friday", "2026-11-20"),
        ("next Monday", "2026-11-23"),
        ("in 3 days", "2026-11-19"),
        ("in 2 weeks", "2026-11-30"),
        ("December 3", "2026-12-03"),
        ("3rd January", "2027-01-03"),
        ("1 March 2028", "2028-03-01"),
        ("the 3rd of December", "2026-12-03"),
        ("Friday, November 20", "2026-11-20"),
        ("Nov. 27", "2026-11-27"),
        ("tomorrow at 5pm", "2026-11-17"),
        ("Friday morning", "2026-11-20"),
        ("the day after tomorrow", "2026-11-18"),
        ("in a week", "2026-11-23"),
        ("in five days", "2026-11-21"),
        ("3 Dec.", "2026-12-03"),
        ("Sept 5", "2027-09-05"),
        ("since Monday", "since Monday"),
        ("next week", "2026-11-23"),
        ("this week", "2026-11-22"),
        ("this weekend", "2026-11-21"),
        ("by the end of the week", "2026-11-22"),
        ("next month", "2026-12-01"),
        ("the end of the month", "2026-11-30"),
        ("29 February", "29 February"),
        ("when the cows come home", "when the cows come home"),
    ],
)
def test_a_copied_date_becomes_the_day_it_means(said: str, meant: str) -> None:
    assert as_iso(said, MONDAY) == meant


def test_a_day_that_next_year_does_not_have_is_left_as_it_is() -> None:
    assert as_iso("29 February", date(2028, 3, 1)) == "29 February"
    assert as_iso("29 February", date(2028, 2, 1)) == "2028-02-29"


def test_only_parameters_that_are_dates_are_read_as_dates() -> None:
    forms = whole_of([tool("note", day={"type": "string", "format": "date"}, text={"type": "string"})])
    said = [{"name": "note", "arguments": {"day": "tomorrow", "text": "tomorrow"}}]
    [call] = forms.calls(said, text="", confidence=1.0, today=MONDAY)
    assert call.arguments == {"day": "2026-11-17", "text": "tomorrow"}


def test_an_unsure_answer_names_tools_by_their_first_sentence() -> None:
    told = cannot_help([tool("look"), *(tool(f"other_{number}") for number in range(6))])
    assert "- look: Does look." in told
    assert told.endswith("- and 2 more")


@pytest.mark.parametrize(
    ("said", "answered"),
    [
        ("Hello", "Hello!"),
        ("Hi there, my name is ada.", "Hello, Ada!"),
        ("Thanks a lot!", "You are welcome."),
        ("ok, bye", "Goodbye!"),
        ("What can you do for me?", "What I can do"),
        ("Hello, delete the milk task", None),
        ("I am done with the milk", None),
        ("help me move", None),
    ],
)
def test_small_talk_is_answered_unless_something_is_asked_for(said: str, answered: str | None) -> None:
    told = small_talk(said, [tool("look")])
    assert told is None if answered is None else answered in str(told)

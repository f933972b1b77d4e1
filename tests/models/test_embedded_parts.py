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
from journeyman.core.messages import Message, Role
from journeyman.core.specification import ToolSpecification
from journeyman.models.embedded import EmbeddedModel, files
from journeyman.models.embedded.format import answer_from, cannot_help
from journeyman.models.embedded.tools import MOST_NAMES, as_iso, choice_of, simplified, whole_of
from tests.models.asking import asked

MONDAY = date(2026, 11, 16)


def tool(name: str, *, required: tuple[str, ...] = (), **properties: Any) -> ToolSpecification:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpecification(name=name, description=f"Does {name}. Use it often.", parameters=parameters)


def result(value: Any, name: str = "look") -> Message:
    return Message(role=Role.FUNCTION, name=name, content=value if isinstance(value, str) else json.dumps(value))


async def refusal(folder: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await EmbeddedModel(folder=folder).respond(asked(Message.user("Show all"), tools=(tool("look"),)))
    return caught.value


async def test_without_the_weights_every_request_fails_and_says_what_to_install(tmp_path: Path) -> None:
    error = await refusal(tmp_path)
    assert error.info.code == "MODEL_NOT_INSTALLED"
    assert "journeyman[embedded]" in str(error.info.user_guidance)


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


def test_the_choice_shows_no_parameters() -> None:
    delete = tool("delete", required=("task",), task={"type": "string"})
    assert json.loads(choice_of([delete]).text)[0]["parameters"]["properties"] == {}
    assert json.loads(whole_of([delete]).text)[0]["parameters"]["properties"] == {"task": {"type": "string"}}


def test_the_engine_reads_what_a_tool_does_and_when_and_not_its_small_print() -> None:
    look = tool("look").model_copy(update={"description": "Looks. Use it\noften.\n\nReturns much. Errors: MANY."})
    for offer in (choice_of([look]), whole_of([look])):
        assert json.loads(offer.text)[0]["description"] == "Looks. Use it often."


def test_a_tool_is_also_offered_under_the_names_that_its_tags_give() -> None:
    update = tool("update_task").model_copy(update={"tags": ("rename", "mark as done", "delete")})
    choice = choice_of([update, tool("delete_task")])
    assert [offered["name"] for offered in json.loads(choice.text)] == ["update_task", "rename_task", "delete_task"]
    named = choice.named([{"name": "rename_task"}, {"name": "delete_task"}, {"name": "paint_task"}])
    assert [one.name for one in named] == ["update_task", "delete_task"]


def test_every_tool_has_a_turn_before_any_has_a_second_and_there_is_an_end() -> None:
    tagged = [tool(f"do_{index}").model_copy(update={"tags": ("a", "b", "c")}) for index in range(10)]
    names = [offered["name"] for offered in json.loads(choice_of(tagged).text)]
    assert len(names) == MOST_NAMES
    assert {f"a_{index}" for index in range(10)} | {"b_0", "b_3"} <= set(names)
    assert "b_4" not in names


def test_names_that_are_not_plain_come_back_as_they_were() -> None:
    whole = whole_of([tool("größe.messen", required=("x",), x={"type": "string"})])
    [name] = [written["name"] for written in json.loads(whole.text)]
    [call] = whole.calls([{"name": name, "arguments": {"x": "1"}}], confidence=1.0, today=MONDAY)
    assert (name.isascii(), call.tool_name) == (True, "größe.messen")


def test_references_and_nulls_are_resolved() -> None:
    schema = {
        "type": "object",
        "properties": {"level": {"anyOf": [{"$ref": "#/$defs/Level"}, {"type": "null"}], "default": None}},
        "$defs": {"Level": {"type": "string", "enum": ["low", "high"], "title": "Level"}},
    }
    assert simplified(schema)["properties"] == {"level": {"type": "string", "enum": ["low", "high"]}}


def test_a_schema_that_contains_itself_ends() -> None:
    node: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert simplified({**node, "$defs": {"Node": node}})["type"] == "object"


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
    [call] = forms.calls(said, confidence=1.0, today=MONDAY)
    assert call.arguments == {"day": "2026-11-17", "text": "tomorrow"}


def test_records_become_a_table() -> None:
    answer = answer_from(
        [result([{"id": 1, "title": "Milk", "note": None}, {"id": 2, "title": "Bread", "note": None}])]
    )
    assert answer.splitlines() == ["id | title", "---+------", "1  | Milk", "2  | Bread"]


def test_an_error_is_told_with_what_to_do() -> None:
    error = {"status": "error", "error": "No task 'x'", "code": "TASK_NOT_FOUND", "recover_action": "List the tasks"}
    assert answer_from([result(error, "delete_task")]) == (
        "delete_task: error: No task 'x' (TASK_NOT_FOUND)\nWhat to do: List the tasks"
    )


@pytest.mark.parametrize(
    ("value", "answer"),
    [("It rains.", "It rains."), ([], "Nothing found."), ({"ok": True}, "ok: yes"), ("null", "Done: no result.")],
)
def test_other_results_are_told_as_they_are(value: Any, answer: str) -> None:
    assert answer_from([result(value)]) == answer


def test_a_long_list_says_how_much_is_left_out() -> None:
    assert answer_from([result(list(range(50)))]).endswith("… and 30 more")


def test_an_unsure_answer_names_tools_by_their_first_sentence() -> None:
    told = cannot_help([tool("look")], more=2)
    assert "- look: Does look." in told
    assert told.endswith("- and 2 more")

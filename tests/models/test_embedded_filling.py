"""Arguments from what an engine says about one parameter at a time. The engine is played by a table here."""

from __future__ import annotations

import json
from datetime import date
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.specification import ToolSpecification
from journeyman.models.embedded.evidence import Request
from journeyman.models.embedded.filling import MOST_ASKED, Form

MONDAY = date(2026, 11, 16)
TEXT = {"type": "string"}
UPDATE = ToolSpecification(
    name="update_task",
    description="Change a task.",
    parameters={
        "type": "object",
        "properties": {
            "task_id": {**TEXT, "description": "The task's id or words of its title."},
            "title": {**TEXT, "description": "The new title, to rename the task."},
            "description": {**TEXT, "description": "The new description text."},
            "status": {**TEXT, "enum": ["pending", "in_progress", "completed"], "description": "Done is completed."},
            "priority": {**TEXT, "enum": ["low", "high"], "description": "The new priority."},
            "eta": {**TEXT, "format": "date", "description": "The new due day."},
            "tags": {"type": "array", "items": TEXT, "description": "The new tags."},
        },
        "required": ["task_id"],
    },
)
QUERY = ToolSpecification(
    name="query_tasks",
    description="List tasks.",
    parameters={
        "type": "object",
        "properties": {
            "text": {**TEXT, "description": "Words in the title."},
            "limit": {"type": "integer", "description": "How many at most."},
            "due_after": {**TEXT, "format": "date", "description": "Due from this day on, or after it."},
            "due_before": {**TEXT, "format": "date", "description": "Due by or until this day, or before it."},
        },
    },
)
LINK = ToolSpecification(
    name="add_attachment",
    description="Attach a URL to a task.",
    parameters={
        "type": "object",
        "properties": {"reference": TEXT, "task_id": TEXT, "title": {**TEXT, "description": "What to call it."}},
        "required": ["reference", "task_id"],
    },
)


class Engine:
    """Answers by the last parameter of a form with the calls it would make."""

    def __init__(self, /, **said: Any) -> None:
        self._said = said
        self.asked: list[tuple[str, str]] = []

    async def __call__(self, form: str, text: str) -> dict[str, Any]:
        [shown] = json.loads(form)
        last = list(shown["parameters"]["properties"])[-1]
        self.asked.append((last, text))
        said = self._said.get(last, [])
        if callable(said):
            said = said(text)
        calls = [said] if isinstance(said, dict) else said
        return {"function_calls": [{"name": shown["name"], "arguments": each} for each in calls], "confidence": 0.5}


async def filled(tool: ToolSpecification, request: str, /, **said: Any) -> list[dict[str, Any]]:
    return [each.arguments for each in await Form(tool, today=MONDAY).fill(Engine(**said), request)]


async def test_a_value_that_nobody_said_is_left_out() -> None:
    made = await filled(
        UPDATE,
        "Change the status of milk to completed",
        task_id={"task_id": "milk"},
        status={"task_id": "milk", "status": "completed"},
        eta={"task_id": "milk", "eta": "2027-01-31"},
    )
    assert made == [{"task_id": "milk", "status": "completed"}]


async def test_a_word_of_the_description_is_as_good_as_the_value() -> None:
    milk = {"task_id": "milk"}
    made = await filled(UPDATE, "Mark milk as done", task_id=milk, status={**milk, "status": "completed"})
    assert made == [{"task_id": "milk", "status": "completed"}]


async def test_a_word_speaks_for_one_argument_only() -> None:
    milk = {"task_id": "milk"}
    made = await filled(
        UPDATE,
        "Rename milk, tag it high",
        task_id=milk,
        priority={**milk, "priority": "high"},
        tags={**milk, "tags": ["high"]},
        title={**milk, "title": "high"},
    )
    assert made == [{"task_id": "milk", "priority": "high"}]


async def test_tagged_speaks_of_tags_and_a_copied_day_becomes_a_date() -> None:
    milk = {"task_id": "milk"}
    made = await filled(
        UPDATE,
        "Let milk be tagged home and due on Friday",
        task_id=milk,
        tags={**milk, "tags": ["home"]},
        eta={**milk, "eta": "Friday"},
    )
    assert made == [{"task_id": "milk", "eta": "2026-11-20", "tags": ["home"]}]


async def test_what_no_answer_could_be_believed_for_is_not_asked() -> None:
    engine = Engine(task_id={"task_id": "milk"})
    await Form(UPDATE, today=MONDAY).fill(engine, "Rename milk")
    assert [asked for asked, _ in engine.asked] == ["task_id", "title"]
    engine = Engine(task_id={"task_id": "milk"})
    await Form(UPDATE, today=MONDAY).fill(engine, "Move milk to the 3rd of December, or in 2 weeks")
    assert [asked for asked, _ in engine.asked] == ["task_id", "eta"]


async def test_without_a_required_argument_there_is_no_call() -> None:
    assert await filled(UPDATE, "Change something") == []
    assert await filled(UPDATE, "Change that task", task_id={"task_id": "that task"}) == []
    assert await filled(UPDATE, "Change it", task_id={"task_id": "quarterly report"}) == []


async def test_a_required_argument_keeps_off_the_words_of_the_others() -> None:
    made = await filled(
        UPDATE,
        "Set milk to in progress",
        task_id={"task_id": "milk to in progress"},
        status={"task_id": "milk", "status": "in_progress"},
    )
    assert made == [{"task_id": "milk", "status": "in_progress"}]


async def test_a_required_argument_inside_another_is_asked_for_again_without_it() -> None:
    def task(text: str) -> dict[str, Any]:
        reference = {"reference": "https://maps.example.org/trail"}
        return {"task_id": "weekend"} if "maps" not in text else {**reference, "task_id": "trail"}

    def nothing(text: str) -> dict[str, Any]:
        return task(text) if "maps" not in text else {"reference": "https://maps.example.org/trail", "task_id": "task"}

    for engine in (task, nothing):
        made = await filled(LINK, "Put https://maps.example.org/trail on the weekend task", task_id=engine)
        assert made == [{"reference": "https://maps.example.org/trail", "task_id": "weekend"}]


async def test_words_that_nothing_accounts_for_belong_to_the_only_free_text() -> None:
    assert await filled(QUERY, "Find tasks with holiday plans", text={"text": "holiday plans"}) == [
        {"text": "holiday plans"}
    ]
    assert await filled(QUERY, "Show all my tasks", text={"text": "all my tasks"}) == [{}]
    both = {"reference": "https://a.example/menu", "task_id": "venue"}
    made = await filled(
        LINK, "Attach https://a.example/menu to the venue task", task_id=both, title={**both, "title": "Menu"}
    )
    assert made == [both]


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("What is due by Friday?", {"due_before": "2026-11-20"}),
        ("What is due after Friday?", {"due_after": "2026-11-20"}),
        ("What is due Friday?", {"due_after": "2026-11-20", "due_before": "2026-11-20"}),
    ],
)
async def test_a_day_goes_to_the_parameter_that_is_mentioned_and_else_to_both(text: str, given: dict[str, Any]) -> None:
    made = await filled(QUERY, text, due_after={"due_after": "Friday"}, due_before={"due_before": "Friday"})
    assert made == [given]


async def test_of_two_days_each_goes_to_one_parameter() -> None:
    made = await filled(
        QUERY,
        "What is due between Tuesday and Friday?",
        due_after={"due_after": "Tuesday"},
        due_before=[{"due_before": "Tuesday"}, {"due_before": "Friday"}],
    )
    assert made == [{"due_after": "2026-11-17", "due_before": "2026-11-20"}]


async def test_a_number_must_stand_in_the_request() -> None:
    assert await filled(QUERY, "Show five tasks", limit={"limit": 5}) == [{"limit": 5}]
    assert await filled(QUERY, "Show 7 tasks", limit={"limit": 5}) == [{}]


@pytest.mark.parametrize(
    ("text", "value"), [("Scale by 1.5", 1.5), ("Scale by 2", 2.0), ("Scale by 1,500", 1500), ("Scale by -2", -2)]
)
async def test_numbers_are_compared_as_numbers(text: str, value: float) -> None:
    parameters = {"type": "object", "properties": {"factor": {"type": "number"}}}
    scale = ToolSpecification(name="scale_image", description="Scale.", parameters=parameters)
    assert await filled(scale, text, factor={"factor": value}) == [{"factor": value}]
    assert await filled(scale, text, factor={"factor": 5}) == [{}]


async def test_a_flag_is_set_by_its_name_only() -> None:
    flags = {"force": {"type": "boolean", "description": "Skip the confirmation."}}
    remove = ToolSpecification(
        name="remove_folder", description="Remove.", parameters={"type": "object", "properties": flags}
    )
    assert await filled(remove, "Remove it, but ask for confirmation", force={"force": True}) == [{}]
    assert await filled(remove, "Remove it by force", force={"force": True}) == [{"force": True}]


async def test_a_word_of_an_announced_text_is_nothing_else() -> None:
    milk = {"task_id": "milk"}
    made = await filled(
        UPDATE,
        "Rename milk to high school reunion",
        task_id=milk,
        title={**milk, "title": "high school reunion"},
        priority={**milk, "priority": "high"},
    )
    assert made == [{"task_id": "milk", "title": "high school reunion"}]


async def test_of_very_many_parameters_only_some_are_asked_for() -> None:
    properties = {f"size_{index}": {"type": "integer"} for index in range(50)}
    many = ToolSpecification(name="do_it", description="Do.", parameters={"type": "object", "properties": properties})
    engine = Engine()
    await Form(many, today=MONDAY).fill(engine, "Do it 77 times with 33")
    assert len(engine.asked) == MOST_ASKED
    assert engine.asked[0][0] == "size_33"


async def test_several_of_the_same_are_several_calls() -> None:
    made = await filled(UPDATE, "Change task 3 and task 4", task_id=[{"task_id": "3"}, {"task_id": "4"}])
    assert made == [{"task_id": "3"}, {"task_id": "4"}]
    made = await filled(UPDATE, "Change task 3", task_id=[{"task_id": "3"}, {"task_id": "4"}])
    assert made == [{"task_id": "3"}]


async def test_where_another_tool_is_meant_too_its_words_are_not_one_more_call() -> None:
    engine = Engine(task_id=[{"task_id": "milk"}, {"task_id": "bread"}])
    made = await Form(UPDATE, today=MONDAY).fill(engine, "Change milk and show bread", several=False)
    assert [each.arguments for each in made] == [{"task_id": "milk"}]


def test_what_is_cut_out_of_a_request_leaves_the_rest() -> None:
    request = Request("Put https://a.example/x on the venue task")
    assert request.without(request.of("https://a.example/x")) == "Put on the venue task"
    request = Request("Delete milk and call Ann tomorrow.")
    assert request.without(request.of("milk") | request.of("tomorrow")) == "Delete and call Ann ."
    assert request.without(()) == request.text


NAMES = st.text("abc_ö", min_size=1, max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 12) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
SCHEMAS = st.sampled_from(
    [
        {},
        TEXT,
        {**TEXT, "format": "date"},
        {**TEXT, "enum": ["low", "", "+", None]},
        {"enum": [1, 2]},
        {"type": "integer"},
        {"type": ["number", "null"]},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "object"}},
        {"type": "object", "properties": {"a": TEXT}},
        {"anyOf": [{"type": "null"}, TEXT], "description": "a b c tomorrow"},
    ]
)


@given(
    properties=st.dictionaries(NAMES, SCHEMAS, max_size=4),
    required=st.lists(NAMES, max_size=3),
    text=st.text("ab 12.,/:ö", max_size=20) | st.sampled_from(["", "a tomorrow 2", "low priority b", "3rd of May"]),
    answers=st.lists(st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=2), min_size=1, max_size=6),
)
async def test_no_tool_and_no_answer_of_an_engine_breaks_it(
    properties: dict[str, Any], required: list[str], text: str, answers: list[list[dict[str, Any]]]
) -> None:
    left = cycle(answers)

    async def ask(form: str, asked: str) -> dict[str, Any]:
        return {"function_calls": [{"arguments": each} for each in next(left)], "confidence": None}

    parameters = {"type": "object", "properties": properties, "required": required}
    made = ToolSpecification(name="ö.b_c", description="A.", parameters=parameters)
    for each in await Form(made, today=MONDAY).fill(ask, text):
        assert set(required) & set(properties) <= set(each.arguments) <= set(properties)

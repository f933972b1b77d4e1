"""The next step of a demonstration, as a run is told it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from journeyman.core.calls import CallStatus, ResultField, Taken, ToolCallRecord
from journeyman.core.errors import ErrorInfo
from journeyman.core.playbook import NEXT_STEP, Advice, NextStep
from journeyman.core.runs import ReasoningStep
from journeyman.core.specification import ToolSpecification
from journeyman.provenance.hints import allowed_in, hint_for, nearest_choice, next_step

NOW = datetime(2026, 3, 4, tzinfo=UTC)
STEPS = (
    NextStep(tool_name="find_person", sources={"name": Taken.REQUEST}, example={"name": "Alma Kessel"}),
    NextStep(
        tool_name="send_note",
        constants={"urgent": True},
        sources={"to": ResultField(0, ("email",)), "text": Taken.COMPOSED, "kind": Taken.COMPOSED},
        example={"urgent": True, "to": "hugo@example.org", "text": "Lunch", "kind": "Private"},
        choices={"kind": ("Private", "Public")},
    ),
)
ADVICE = Advice(form="steps", text="as before", steps=STEPS, example="Tell Alma Kessel about lunch.")
REQUEST = "Tell Dora about tea."


def refusal_of(value: str, allowed: str) -> ErrorInfo:
    return ErrorInfo(code="NOT_ALLOWED", message=f"status {value} is not allowed; choose from {allowed}")


def failed(name: str, arguments: dict[str, Any], error: ErrorInfo) -> list[ReasoningStep]:
    [step] = made((name, None))
    changes = {"status": CallStatus.ERROR, "arguments": arguments, "error": error, "error_message": error.message}
    return [step.model_copy(update={"calls": (step.calls[0].model_copy(update=changes),)})]


def made(*calls: tuple[str, Any]) -> list[ReasoningStep]:
    steps = []
    for at, (name, result) in enumerate(calls):
        record = ToolCallRecord(
            execution_id=f"e{at}",
            call_id=f"c{at}",
            tool_name=name,
            status=CallStatus.SUCCESS,
            result=result,
            start_time=NOW,
            end_time=NOW,
        )
        step = ReasoningStep(
            iteration=at + 1, thought="-", action="call_tool", calls=(record,), timestamp=0.0, duration_ms=0.0
        )
        steps.append(step)
    return steps


def test_the_first_step_comes_first_beside_the_call_of_the_example() -> None:
    said = next_step(ADVICE, [], request=REQUEST).message
    assert said.name == NEXT_STEP
    example, now = said.content.split("\n")
    assert '"Tell Alma Kessel about lunch."' in example
    assert example.endswith('{"name": "find_person", "arguments": {"name": "Alma Kessel"}}')
    assert f'"{REQUEST}"' in now
    assert now.endswith("call find_person now.")


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"email": "dora@corp.example"}, 'to: "dora@corp.example";'),
        ([{"email": "a@x.example"}, {"email": "b@x.example"}], 'to: "a@x.example" or "b@x.example";'),
        ('[{"email": "a@x.example"}]', 'to: "a@x.example";'),
        ([{"email": f"{n}@x.example"} for n in range(9)], '"2@x.example" or another;'),
        ("[not json", None),
        ({"mail": "dora@corp.example"}, None),
        (None, None),
    ],
)
def test_only_values_are_told_beside_the_example_and_no_note_about_them(result: Any, told: str | None) -> None:
    said = next_step(ADVICE, made(("find_person", result)), request=REQUEST).message.content
    now = said.split("\n")[1]
    assert told in now if told is not None else "to:" not in now
    assert 'kind: one of "Private", "Public"' in now
    assert not any(note in said for note in ("in your words", "from the", "in the result of", "text:"))


def test_what_the_request_says_is_told_as_a_value() -> None:
    step = NextStep(tool_name="wait", sources={"hours": Taken.REQUEST}, given={"hours": "3"}, example={"hours": 2})
    advice = Advice(form="steps", text="as before", steps=(step,), example="Wait 2 hours", alike=True)
    schema = {"type": "object", "properties": {"hours": {"type": "integer"}}}
    tools = [ToolSpecification(name="wait", description="Wait.", parameters=schema)]
    hint = next_step(advice, [], tools, "Wait 3 hours")
    assert hint.message.content.endswith("call wait now with hours: 3.")
    assert hint.call is not None
    assert hint.call.arguments == {"hours": 3}


def test_other_calls_in_between_change_nothing_and_the_end_is_said() -> None:
    taken = made(("look_around", 1), ("find_person", {"email": "d@x.example"}), ("look_around", 1))
    assert '"d@x.example"' in next_step(ADVICE, taken).message.content
    ended = next_step(ADVICE, [*taken, *made(("send_note", "ok"))])
    assert "Every step of the example has been made" in ended.message.content
    assert ended.call is None


@pytest.mark.parametrize(
    ("error", "refused", "allowed"),
    [
        ("status 'won' is not allowed; choose from 'Lead', 'Won', 'Lost'", "won", ("Lead", "Won", "Lost")),
        ("field is one of name, due, not 'day'", "day", ("name", "due")),
        ("Input should be 'a', 'b' or 'c'", "x", ("a", "b", "c")),
        ("must be either red or blue", "pink", ("red", "blue")),
        ("there is no order 'W-1'", "W-1", ()),
        ("must be positive", "-1", ()),
        ("one of", "x", ()),
    ],
)
def test_the_values_that_a_refusal_allows_are_read(error: str, refused: str, allowed: tuple[str, ...]) -> None:
    assert allowed_in(error, refused) == allowed


@pytest.mark.parametrize(
    ("value", "nearest"),
    [
        ("won", "Won"),
        ("IN PROGRESS", "In progress"),
        ("in-progress", "In progress"),
        ("In progres", "In progress"),
        ("Won", "Won"),
        ("open", None),
        ("Lo", None),
        ("", None),
    ],
)
def test_only_a_choice_beyond_doubt_is_the_nearest(value: str, nearest: str | None) -> None:
    assert nearest_choice(value, ("Lead", "Won", "Lost", "In progress")) == nearest


def test_a_refused_choice_is_made_again_with_the_nearest_that_is_allowed() -> None:
    given = {"id": "C-1", "status": "won"}
    hint = hint_for([], failed("set_status", given, refusal_of("'won'", "'Lead', 'Won'")), [], "Won it")
    assert hint is not None
    assert hint.message.content == 'Call set_status again now with id: "C-1"; status: "Won".'
    assert hint.call is not None
    assert hint.call.arguments == {"id": "C-1", "status": "Won"}
    far = hint_for([], failed("set_status", given, refusal_of("'won'", "'Lead', 'Open'")), [], "")
    assert far is not None
    assert far.call is None
    assert far.message.content.endswith('status: one of "Lead", "Open".')

"""The next step of a demonstration, as a run is told it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from journeyman.core.calls import CallStatus, ResultField, Taken, ToolCallRecord
from journeyman.core.playbook import NEXT_STEP, Advice, NextStep
from journeyman.core.runs import ReasoningStep
from journeyman.provenance.hints import next_step

NOW = datetime(2026, 3, 4, tzinfo=UTC)
STEPS = (
    NextStep(tool_name="find_person", sources={"name": Taken.REQUEST}),
    NextStep(
        tool_name="send_note",
        constants={"urgent": True},
        sources={"to": ResultField(0, ("email",)), "text": Taken.COMPOSED},
    ),
)
ADVICE = Advice(form="steps", text="as before", steps=STEPS)


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


def test_the_first_step_comes_first() -> None:
    said = next_step(ADVICE, []).message
    assert said.name == NEXT_STEP
    assert said.content.endswith("call find_person now with name: from the user's request.")


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"email": "dora@corp.example"}, 'to: "dora@corp.example" (email in the result of find_person)'),
        ([{"email": "a@x.example"}, {"email": "b@x.example"}], 'to: "a@x.example" or "b@x.example" (email in'),
        ('[{"email": "a@x.example"}]', 'to: "a@x.example" (email in the result of find_person)'),
        ([{"email": f"{n}@x.example"} for n in range(9)], '"2@x.example" or another (email in'),
        ("[not json", "to: email in the result of find_person;"),
        ({"mail": "dora@corp.example"}, "to: email in the result of find_person;"),
        (None, "to: email in the result of find_person;"),
    ],
)
def test_values_come_from_results_of_the_run(result: Any, told: str) -> None:
    said = next_step(ADVICE, made(("find_person", result))).message.content
    assert told in said
    assert "urgent: true" in said
    assert "text: in your words" in said


def test_other_calls_in_between_change_nothing_and_the_end_is_said() -> None:
    taken = made(("look_around", 1), ("find_person", {"email": "d@x.example"}), ("look_around", 1))
    assert '"d@x.example"' in next_step(ADVICE, taken).message.content
    ended = next_step(ADVICE, [*taken, *made(("send_note", "ok"))])
    assert "Every step of the example has been made" in ended.message.content
    assert ended.call is None

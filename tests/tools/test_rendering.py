"""What people are shown of calls: sentences, tables, lists; nothing that only a program or a model reads."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.calls import Artifact, CallStatus, ToolCallRecord
from journeyman.core.errors import ErrorInfo
from journeyman.tools.rendering import composed, plain, rendered, rendered_value

NOW = datetime(2026, 1, 5, tzinfo=UTC)
OPAQUE = "task_ee2761db3c4126b065412600"


def record(result: Any = None, *, tool: str = "look_up", number: int = 1, **fields: Any) -> ToolCallRecord:
    values = {"execution_id": f"e{number}", "call_id": f"call_{number}", "tool_name": tool, "status": "success"}
    return ToolCallRecord(**{**values, "start_time": NOW, "end_time": NOW, "result": result, **fields})


def failed(status: str, message: str, **fields: Any) -> ToolCallRecord:
    error = ErrorInfo(code="NO", message=message, recover_action="Do not repeat the call", user_guidance="ask Grace")
    return record(status=CallStatus(status), error=error, **fields)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("It rains.", "It rains."),
        (None, "Done."),
        ({}, "Done."),
        (42, "The result is 42."),
        (True, "The result is yes."),
        ([], "Nothing found."),
        (["a", 2], "- a\n- 2"),
        ({"status": "shipped", "order_id": "W-17"}, "- **Status:** shipped\n- **Order id:** W-17"),
        ({"deleted": {"id": OPAQUE, "title": "Milk"}}, "Deleted:\n\n- **Title:** Milk"),
        ({"tasks": [], "total": 0}, "No tasks."),
        ({"companies": [{"name": "ACME"}], "total": 1}, "1 company:\n\n| Name |\n| ---- |\n| ACME |"),
    ],
)
def test_a_result_becomes_a_sentence_a_list_or_a_table(value: Any, shown: str) -> None:
    assert rendered_value(value) == shown


def test_a_table_begins_with_names_and_leaves_out_what_only_programs_read() -> None:
    row = {"id": OPAQUE, "created_at": "2026-01-05T09:00:00.123Z", "number": 7, "name": "A|B", "note": None, "_v": 1}
    shown = rendered_value([row, {**row, "name": "*C*", "metadata": {"a": 1}}])
    assert shown.splitlines() == [
        r"| Name  | Number | Created at           |",
        r"| ----- | ------ | -------------------- |",
        r"| A\|B  | 7      | 2026-01-05 09:00 UTC |",
        r"| \*C\* | 7      | 2026-01-05 09:00 UTC |",
    ]


def test_a_long_list_says_how_much_is_left_out() -> None:
    assert rendered_value(list(range(50))).endswith("… and 30 more.")
    assert rendered_value({"rows": [{"a": 1}] * 2, "total": 90}).endswith("… and 88 more.")


def test_where_a_record_has_nothing_but_its_id_that_is_shown() -> None:
    assert rendered_value({"id": OPAQUE, "note": None}) == f"- **Id:** {OPAQUE}"


def test_a_failure_tells_a_person_what_they_can_do_and_not_what_the_model_is_told() -> None:
    assert rendered(failed("denied", "nobody answered")) == "Not done: Nobody answered. Ask Grace."
    assert rendered(failed("error", "no *order*")) == r"That did not work: No \*order\*. Ask Grace."


def test_several_calls_are_told_in_their_order_the_tools_own_words_first() -> None:
    told = composed(
        [record(21, tool="get_weather", arguments={"city": "Rome"}), record({}, tool="add", number=2)],
        {"call_2": "Added *Milk*."},
    )
    assert told == "**Get weather** (Rome)\n\nThe result is 21.\n\nAdded *Milk*."


def test_what_was_made_good_or_told_again_is_told_once() -> None:
    first = failed("error", "busy", number=1, tool="pay")
    assert composed([first, record("Paid.", tool="pay", number=2, arguments={"sum": 3})], {}) == "Paid."
    assert composed([record("old"), record("new", number=2)], {}) == "new"
    assert composed([], {}) == ""


def test_of_a_large_result_what_is_at_hand_is_shown() -> None:
    artifact = Artifact(id="a", kind="json", chars=10_000, head='[{"name": "Ann"}, {"name": "B', tail="}]")
    assert rendered(record(artifact=artifact)).startswith("| Name |\n| ---- |\n| Ann  |")
    text = artifact.model_copy(update={"kind": "text", "head": "Once upon"})
    assert rendered(record(artifact=text)) == "Once upon…\n\nThe whole result has 10,000 characters."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("buy_milk at 5", "buy_milk at 5"),
        ("*b* _i_ `c`\n| d", r"\*b\* \_i\_ \`c\` \| d"),
        ("[a](http://b) <img>", r"[a\](http://b) \<img>"),
    ],
)
def test_text_of_others_means_nothing_but_itself(text: str, shown: str) -> None:
    assert plain(text) == shown


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_whatever_a_tool_returns_can_be_shown(value: Any) -> None:
    assert rendered_value(value)


def test_no_more_is_looked_at_than_is_shown() -> None:
    row = {f"field_{number}": "x" * 1_000 for number in range(1_000)}
    large = {
        "rows": [row] * 100_000,
        "text": "word " * 1_000_000,
        "number": 7**20_000,
        "deep": {"a": {"b": {"c": [1]}}},
    }
    began = time.process_time()
    assert len(rendered_value(large)) < 30_000
    assert time.process_time() - began < 2

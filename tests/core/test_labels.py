"""The grounded judge, and which label counts."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman.core.approvals import Label, LabelSource, best_label, judge, says_failure
from journeyman.core.calls import ArgumentSource, CallStatus, ToolCallRecord
from journeyman.core.data import moment
from journeyman.core.errors import ErrorInfo


def record(tool: str, *, reads: bool = False, origin: Any = "request", **fields: Any) -> ToolCallRecord:
    values: dict[str, Any] = {
        "execution_id": "e",
        "call_id": "c",
        "tool_name": tool,
        "arguments": {"order_id": "W-1"},
        "status": CallStatus.SUCCESS,
        "start_time": moment(0),
        "end_time": moment(1),
        "attempts": 1,
        "read_only": reads,
        "grounding": (ArgumentSource(argument="order_id", origin=origin),),
    }
    return ToolCallRecord(**{**values, **fields})


LOOKED_UP = record("search", reads=True)
CANCELLED = record("cancel", result="done")
FAILED = record("cancel", status=CallStatus.ERROR, error=ErrorInfo.model_validate(
    {"code": "X", "message": "x", "category": "tool_error"}
))  # fmt: skip


def verdict(*calls: ToolCallRecord, ended: bool = True) -> tuple[str, str] | None:
    label = judge(calls, ended=ended)
    return None if label is None else (label.value, label.note)


def test_a_grounded_change_is_good() -> None:
    assert verdict(LOOKED_UP, CANCELLED) == ("good", "")


def test_doing_twice_what_changes_nothing_more_is_no_fault() -> None:
    assert verdict(CANCELLED, CANCELLED) == ("good", "")


def test_a_run_that_only_read_says_nothing() -> None:
    assert verdict(LOOKED_UP) is None


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ((record("cancel", origin="nowhere"),), "order_id of cancel was found nowhere"),
        ((record("send"), record("send")), "the same thing was done twice"),
        ((CANCELLED, LOOKED_UP), "something was changed before anything was looked up"),
        ((LOOKED_UP, CANCELLED, FAILED), "cancel failed after the last change"),
        ((LOOKED_UP, record("refund", result="Order not found."), CANCELLED), "refund had no effect"),
        ((FAILED,), "cancel had no effect"),
    ],
)
def test_what_speaks_against_a_run(calls: tuple[ToolCallRecord, ...], why: str) -> None:
    assert verdict(*calls) == ("bad", why)


def test_a_run_that_was_stopped_is_bad() -> None:
    assert verdict(CANCELLED, ended=False) == ("bad", "the run did not end by itself")


def test_a_failed_change_is_made_good_by_a_later_one() -> None:
    invented = record("cancel", origin="nowhere", result="Order not found.")
    assert verdict(invented, LOOKED_UP, CANCELLED) == ("good", "")
    assert verdict(LOOKED_UP, invented, CANCELLED) == ("good", "")


def test_short_texts_that_report_a_failure_are_known() -> None:
    assert says_failure("Email not found.")
    assert says_failure("Value must be one of a, b")
    assert not says_failure("Email deleted successfully.")
    assert not says_failure({"error": "x"})
    assert not says_failure("not " * 100)


def label(source: str, value: str, time: float = 0.0) -> Label:
    return Label.model_validate({"source": source, "value": value, "time": time})


def test_the_most_reliable_label_counts_and_of_one_source_the_latest() -> None:
    assert best_label([]) is None
    assert best_label([label("judge", "good"), label("verifier", "bad")]) == label("verifier", "bad")
    assert best_label([label("rating", "bad", 1), label("rating", "good", 2)]) == label("rating", "good", 2)


def test_one_denied_call_outweighs_approved_ones() -> None:
    denied = label("decision", "bad", 1)
    assert best_label([denied, label("decision", "good", 2)]) == denied
    assert [source.rank for source in LabelSource] == [0, 1, 2, 3]

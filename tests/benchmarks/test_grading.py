"""The benchmark of how arguments are graded keeps to the figures it promises."""

from __future__ import annotations

from benchmarks.grading import LEAST_RAISED, MOST_FALSE, credentials, measure, values


def test_dangerous_arguments_are_raised_and_ordinary_ones_are_not() -> None:
    found = measure()
    assert found.held_out >= LEAST_RAISED
    assert found.seen >= LEAST_RAISED
    assert found.false_alarms <= MOST_FALSE


def test_there_is_enough_to_measure() -> None:
    assert len(values("grading_dangerous.txt")) + len(list(credentials())) >= 400
    assert len(values("grading_ordinary.txt")) >= 200

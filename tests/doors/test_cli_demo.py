"""``journeyman demo``: a log of it shows every promise kept."""

from __future__ import annotations

import re

import pytest

from tests.doors.driving import Cli


def test_the_demo_shows_each_fault_answered_and_ends_well(cli: Cli) -> None:
    ended = cli("demo", "--yes")
    assert (ended.code, ended.err) == (0, "")
    expected = (
        "The model is scripted",
        "MALFORMED_ARGUMENTS",
        "the nearest are calculate_expression",
        "delete_note: approved by --yes",
        "TOOL_TIMEOUT",
        "come to 157.40",
        "The old draft is deleted.",
        "Left in journeyman-notes: weekly orders.md",
    )
    assert [text for text in expected if text not in ended.out] == []
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", ended.out)


@pytest.mark.slow
def test_without_a_terminal_the_question_expires_and_the_demo_goes_on(cli: Cli) -> None:
    ended = cli("demo")
    assert ended.code == 0
    expected = ("nobody answered in time: denied", "APPROVAL_EXPIRED", "still there", "draft.md, weekly orders.md")
    assert [text for text in expected if text not in ended.out] == []

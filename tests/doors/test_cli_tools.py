"""``journeyman tools``: listings, one tool, search, lint, and one governed call."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from journeyman import ToolCallRecord
from tests.doors.driving import Cli

CRATES = """
from journeyman import tool

@tool
def crates(n: int) -> list[int]:
    '''Do things with crates.'''
    return list(range(n))
"""


@pytest.fixture
def crates(tmp_path: Path) -> None:
    (tmp_path / "crateshop.py").write_text(CRATES)


def test_the_list_shows_every_tool_with_its_risk(cli: Cli) -> None:
    ended = cli("tools", "list")
    assert ended.code == 0
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["delete_note", "irreversible"] in [row[:2] for row in rows]
    assert all(len(line) <= 80 for line in ended.out.splitlines())


def test_every_listing_speaks_json(cli: Cli) -> None:
    assert "read_file" in [item["name"] for item in json.loads(cli("tools", "list", "--json").out)]
    assert json.loads(cli("tools", "show", "read_file", "--json").out)["parameters"]["required"] == ["path"]
    found = json.loads(cli("tools", "search", "delete a note", "--limit", "1", "--json").out)
    assert [item["name"] for item in found] == ["delete_note"]
    assert json.loads(cli("tools", "lint", "--json").out) == []


def test_showing_a_tool_tells_what_a_model_and_an_operator_must_know(cli: Cli) -> None:
    out = cli("tools", "show", "search_text").out
    for expected in ("Use when", "reads only", "none needed", "30 s", "What to look for, literally.", "(text::String"):
        assert expected in out


def test_our_own_tools_leave_lint_nothing_to_say(cli: Cli) -> None:
    ended = cli("tools", "lint")
    assert (ended.code, ended.out) == (0, "7 tools: nothing to say\n")


def test_lint_findings_are_advice_and_no_failure(cli: Cli, crates: None) -> None:
    ended = cli("tools", "lint", "--library", "crateshop")
    assert ended.code == 0
    for rule in ("no-use-when", "name-not-verb-noun", "parameter-undescribed", "risk-undeclared"):
        assert rule in ended.out


def test_a_call_prints_its_record(cli: Cli) -> None:
    ended = cli("tools", "call", "calculate_expression", "--args", '{"expression": "6 * 7"}', "--json")
    record = ToolCallRecord.model_validate_json(ended.out)
    assert (ended.code, ended.err, record.result, record.attempts) == (0, "", 42, 1)
    shown = cli("tools", "call", "calculate_expression", "--args", '{"expression": "6 * 7"}')
    assert "✓ success" in shown.out
    assert "42" in shown.out


def test_a_call_is_governed_like_any_other(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "journeyman-notes"
    assert cli("tools", "call", "write_note", "--args", '{"title": "a", "text": "b"}').code == 0
    denied = cli("tools", "call", "delete_note", "--args", '{"title": "a"}')
    assert (denied.code, [path.name for path in notes.iterdir()]) == (1, ["a.md"])
    assert "APPROVAL_DENIED" in denied.out
    assert cli("tools", "call", "delete_note", "--args", '{"title": "a"}', "--yes").code == 0
    assert list(notes.iterdir()) == []


def test_a_call_with_arguments_against_the_schema_is_not_run(cli: Cli, crates: None) -> None:
    ended = cli("tools", "call", "crates", "--library", "crateshop", "--yes", "--args", '{"n": "many"}', "--json")
    record = json.loads(ended.out)
    assert (ended.code, record["status"], record["attempts"]) == (1, "error", 0)
    assert "n:" in record["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tools", "show", "read_fil"], "did you mean 'read_file'"),
        (["tools", "call", "xyz"], "'journeyman tools list' shows all of them"),
        (["tools", "call", "read_file", "--args", "{path"], "--args '{path' is not JSON"),
        (["tools", "call", "read_file", "--args", "[1]"], "not a JSON object"),
        (["tools", "search", "note", "--limit", "0"], "--limit"),
    ],
)
def test_wrong_usage_of_tools_gives_exit_code_2(cli: Cli, arguments: list[str], told: str) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert told in ended.err


def test_a_search_without_a_match_says_so(cli: Cli) -> None:
    ended = cli("tools", "search", "zeppelin")
    assert (ended.code, ended.out) == (0, "")
    assert "zeppelin" in ended.err

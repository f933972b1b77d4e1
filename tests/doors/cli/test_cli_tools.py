"""``journeyman tools``: listings, one tool, search, lint, and one governed call."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import pytest

from journeyman import ToolCallRecord
from journeyman.testing import call, say
from tests.doors.cli.driving import Cli, Serve

LOCAL = ("--library", "local")
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
    assert ["delete_task", "irreversible"] in [row[:2] for row in rows]
    assert all(len(line) <= 80 for line in ended.out.splitlines())


def test_every_listing_speaks_json(cli: Cli) -> None:
    assert "read_file" in [item["name"] for item in json.loads(cli("tools", "list", *LOCAL, "--json").out)]
    assert json.loads(cli("tools", "show", "create_task", "--json").out)["parameters"]["required"] == ["title"]
    found = json.loads(cli("tools", "search", "delete a note", "--limit", "1", *LOCAL, "--json").out)
    assert [item["name"] for item in found] == ["delete_note"]
    assert json.loads(cli("tools", "lint", "--json").out) == []


def test_showing_a_tool_tells_what_a_model_and_an_operator_must_know(cli: Cli) -> None:
    out = cli("tools", "show", "search_text", *LOCAL).out
    for expected in ("Use when", "reads only", "none needed", "30 s", "What to look for, literally.", "(text::String"):
        assert expected in out


@pytest.mark.parametrize("library", [[], ["--library", "local"]], ids=["tasks", "local"])
def test_our_own_tools_leave_lint_nothing_to_say(cli: Cli, library: list[str]) -> None:
    ended = cli("tools", "lint", *library)
    assert (ended.code, ended.out.partition(": ")[2]) == (0, "nothing to say\n")


def test_lint_findings_are_advice_and_no_failure(cli: Cli, crates: None) -> None:
    ended = cli("tools", "lint", "--library", "crateshop")
    assert ended.code == 0
    for rule in ("no-use-when", "name-not-verb-noun", "parameter-undescribed", "risk-undeclared"):
        assert rule in ended.out


def test_a_call_prints_what_it_came_to_or_its_record(cli: Cli) -> None:
    ended = cli("tools", "call", "calculate_expression", *LOCAL, "--args", '{"expression": "6 * 7"}', "--json")
    record = ToolCallRecord.model_validate_json(ended.out)
    assert (ended.code, ended.err, record.result, record.attempts) == (0, "", 42, 1)
    shown = cli("tools", "call", "calculate_expression", *LOCAL, "--args", '{"expression": "6 * 7"}')
    assert shown.out == "6 \\* 7 = **42**\n"
    assert "✓ calculate_expression" in shown.err
    whole = cli("tools", "call", "calculate_expression", *LOCAL, "--args", '{"expression": "6 * 7"}', "--verbose")
    assert "✓ success" in whole.out


def test_a_call_is_governed_like_any_other(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "journeyman-notes"
    assert cli("tools", "call", "write_note", *LOCAL, "--args", '{"title": "a", "text": "b"}').code == 0
    denied = cli("tools", "call", "delete_note", *LOCAL, "--args", '{"title": "a"}')
    assert (denied.code, [path.name for path in notes.iterdir()]) == (1, ["a.md"])
    assert denied.out.startswith("Not done: ")
    assert "Do not repeat the call" not in denied.out + denied.err  # that is for the model
    assert "APPROVAL_DENIED" in denied.err
    assert cli("tools", "call", "delete_note", *LOCAL, "--args", '{"title": "a"}', "--yes").code == 0
    assert list(notes.iterdir()) == []
    assert not (tmp_path / "journeyman.db").exists()


def test_tasks_are_kept_in_the_store_from_one_call_to_the_next(cli: Cli, tmp_path: Path) -> None:
    other = ("--store", "sqlite:///other.db")
    assert cli("tools", "call", "create_task", "--args", '{"title": "Buy milk"}').code == 0
    assert cli("tools", "call", "create_task", "--args", '{"title": "Sell milk"}', *other).code == 0
    for store, title in (((), "Buy milk"), (other, "Sell milk")):
        record = json.loads(cli("tools", "call", "query_tasks", *store, "--json").out)
        assert [task["title"] for task in record["result"]["tasks"]] == [title]
    assert (tmp_path / "journeyman.db").exists()


def test_a_call_with_arguments_against_the_schema_is_not_run(cli: Cli, crates: None) -> None:
    ended = cli("tools", "call", "crates", "--library", "crateshop", "--yes", "--args", '{"n": "many"}', "--json")
    record = json.loads(ended.out)
    assert (ended.code, record["status"], record["attempts"]) == (1, "error", 0)
    assert "n:" in record["error"]["message"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tools", "show", "create_tsk"], "did you mean 'create_task'"),
        (["tools", "call", "xyz"], "all of them: journeyman tools list\n"),
        (["tools", "call", "create_task", "--args", "{path"], "--args '{path' is not JSON"),
        (["tools", "call", "create_task", "--args", "[1]"], "not a JSON object"),
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


def test_the_audit_has_the_effects_of_calls_that_the_store_does_not_keep(cli: Cli) -> None:
    assert cli("tools", "call", "create_task", "--args", '{"title": "Buy milk"}').code == 0
    [row] = json.loads(cli("audit", "list", "--json").out)
    assert (row["kind"], row["details"]["tool"], row["actor"]) == ("call_started", "create_task", getpass.getuser())
    assert cli("tools", "call", "search_tasks", "--args", '{"query": "milk"}').code == 0
    assert len(json.loads(cli("audit", "list", "--json").out)) == 1, "reading is no effect"
    assert cli("audit", "verify").code == 0


def test_the_audit_has_the_effects_of_a_run_that_the_store_does_not_keep(cli: Cli, serve: Serve) -> None:
    with serve(call("create_task", title="Buy milk"), say("Done.")) as server:
        assert cli("run", "Note the milk", "--model", f"{server.url}#any").code == 0
    [row] = json.loads(cli("audit", "list", "--json").out)
    assert (row["kind"], row["details"]["tool"]) == ("call_started", "create_task")


def test_an_earlier_version_of_a_task_is_shown_and_restored(cli: Cli) -> None:
    for name, arguments in (
        ("create_task", {"title": "Draft"}),
        ("update_task", {"task_id": "Draft", "title": "Final"}),
    ):
        assert cli("tools", "call", name, "--args", json.dumps(arguments)).code == 0
    wanted = ("--args", '{"task_id": "Final"}')
    assert "title: Draft" in cli("tools", "call", "list_task_versions", *wanted).out
    assert "Renamed *Final* to *Draft*" in cli("tools", "call", "restore_task", *wanted).out
    assert "Draft" in cli("tools", "call", "list_tasks").out

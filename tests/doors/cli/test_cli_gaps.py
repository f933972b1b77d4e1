"""Gaps from the command line: what is missing for a task is said, kept and listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.doors.cli.driving import Cli

PORTFOLIO = "Retrieve my stock portfolio performance for Q3 2024"
MISSING = "retrieve stock portfolio performance"
WEATHER = "What is the weather and the forecast for the city of Oslo?"
LIBRARY = ("--library", "sky")


@pytest.fixture(autouse=True)
def sky(tmp_path: Path) -> None:
    """A module with one tool, beside what comes with the program."""
    (tmp_path / "sky.py").write_text(
        "from journeyman import tool\n"
        "@tool(read_only=True)\n"
        "def get_weather(city: str) -> str:\n"
        '    """The current weather and the forecast for a city."""\n'
        "    return city\n"
    )


def test_what_is_missing_is_said_and_kept(cli: Cli) -> None:
    ended = cli("gaps", "detect", PORTFOLIO, *LIBRARY)
    assert ended.code == 0
    assert f"missing: {MISSING}" in ended.out
    assert "nearest first: get_weather" in ended.out
    assert "journeyman gaps list" in ended.err
    [kept] = json.loads(cli("gaps", "list", "--json").out)
    assert (kept["report"]["attempted_task"], kept["run_id"], kept["times"]) == (PORTFOLIO, None, 1)
    listed = cli("gaps", "list")
    assert (listed.code, MISSING in listed.out) == (0, True)


def test_a_task_that_tools_can_do_leaves_nothing(cli: Cli) -> None:
    ended = cli("gaps", "detect", WEATHER, *LIBRARY)
    assert (ended.code, "nothing seems to be missing among 1 tool" in ended.out) == (0, True)
    assert json.loads(cli("gaps", "list", "--json").out) == []
    empty = cli("gaps", "list")
    assert (empty.code, empty.out, "nothing was missing" in empty.err) == (0, "", True)


def test_json_is_the_report_or_null(cli: Cli) -> None:
    report = json.loads(cli("gaps", "detect", PORTFOLIO, "--json", *LIBRARY).out)
    assert (report["missing_tools"], report["existing_tools_checked"]) == ([MISSING], ["get_weather"])
    assert cli("gaps", "detect", WEATHER, "--json", *LIBRARY).out == "null\n"


def test_without_a_library_our_own_tools_are_looked_at(cli: Cli) -> None:
    ours = [item["name"] for item in json.loads(cli("tools", "list", "--json").out)]
    report = json.loads(cli("gaps", "detect", PORTFOLIO, "--json").out)
    assert sorted(report["existing_tools_checked"]) == sorted(ours)


def test_a_blank_task_and_a_store_that_is_not_there_are_wrong_usage(cli: Cli, tmp_path: Path) -> None:
    assert cli("gaps", "detect", "  ").code == 2
    assert cli("gaps", "list").code == 2
    assert not list(tmp_path.glob("*.db"))


def test_a_gap_is_shown_exported_and_dismissed(cli: Cli, tmp_path: Path) -> None:
    for _ in range(2):
        cli("gaps", "detect", PORTFOLIO, *LIBRARY)
    [kept] = json.loads(cli("gaps", "list", "--json").out)
    shown = cli("gaps", "show", kept["key"])
    assert (shown.code, "asked for 2 times by 1 person" in shown.out, "nearest tools: get_weather" in shown.out) == (
        0,
        True,
        True,
    )
    assert "retrieve_stock_portfolio_performance:Tool" in cli("gaps", "export", kept["key"]).out
    folder = tmp_path / "new"
    written = cli("gaps", "export", kept["key"], "--as", "python", "--to", str(folder))
    assert (written.code, len(list(folder.glob("*.py")))) == (0, 2)
    assert cli("gaps", "export", kept["key"], "--as", "python", "--to", str(folder)).code == 2
    assert cli("gaps", "dismiss", kept["key"], "--by", "ada").code == 0
    assert json.loads(cli("gaps", "list", "--json").out) == []
    [dismissed] = json.loads(cli("gaps", "list", "--all", "--json").out)
    assert dismissed["dismissed_by"] == "ada"


def test_a_gap_that_is_not_there_is_wrong_usage(cli: Cli) -> None:
    cli("gaps", "detect", PORTFOLIO, *LIBRARY)
    for command in ("show", "export", "dismiss"):
        ended = cli("gaps", command, "nothing")
        assert (ended.code, "gaps list" in ended.err) == (2, True)

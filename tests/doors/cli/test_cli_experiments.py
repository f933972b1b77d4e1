"""Experiments from the command line: the file, the progress, the report in every form, and what is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from journeyman.experiments import Report
from tests.doors.cli.driving import Cli, Open

PAGE = Path(__file__).parents[3] / "docs" / "experiments.md"


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The experiment of the documentation, as its reader would save it."""
    saved = re.compile(r"^```python title=\"orders_ab.py\"\n(.*?)^```", re.DOTALL | re.MULTILINE)
    found = saved.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    (tmp_path / "orders_ab.py").write_text(f"print('loading')\n{found[1]}", encoding="utf-8")
    return "orders_ab.py"


def test_an_experiment_is_run_told_and_kept(cli: Cli, file: str) -> None:
    ended = cli("experiment", "run", file)
    assert ended.code == 0
    for expected in (
        "new is better than the other.",
        "0 (0–0)",
        "1 (1–1)",
        "new against old: score +1.000",
        "p < 0.0001",
    ):
        assert expected in ended.out
    [kept] = json.loads(cli("experiment", "list", "--json").out)
    assert (kept["name"], kept["winner"]) == ("support: old / new", "new")
    assert f"experiment show {kept['id']}" in ended.err
    shown = cli("experiment", "show", kept["id"])
    assert (shown.code, shown.out) == (0, ended.out)
    listed = cli("experiment", "list")
    assert (listed.code, kept["id"] in listed.out, "support: old / new" in listed.out) == (0, True, True)


def test_progress_is_a_few_plain_lines_where_nobody_looks(cli: Cli, file: str) -> None:
    lines = re.findall(r"^journeyman: (\d+) of 40 runs$", cli("experiment", "run", file).err, re.MULTILINE)
    assert [int(line) for line in lines] == list(range(2, 41, 2))


@pytest.mark.slow
def test_progress_is_a_bar_in_a_terminal(terminal: Open, file: str) -> None:
    program = terminal("experiment", "run", file)
    assert program.end() == 0
    assert "━" in program.shown
    assert "40 of 40 runs" in program.shown
    assert "new is better than the other." in program.shown


def test_json_and_markdown_have_stdout_for_themselves(cli: Cli, file: str) -> None:
    as_json = cli("experiment", "run", file, "--json")
    report = Report.model_validate_json(as_json.out)
    assert (as_json.code, report.winner, len(report.observations)) == (0, "new", 40)
    assert cli("experiment", "show", report.experiment_id, "--json").out == as_json.out
    assert cli("experiment", "show", report.experiment_id, "--markdown").out == report.to_markdown()
    assert cli("experiment", "run", file, "--markdown").out.startswith("# support: old / new\n")
    both = cli("experiment", "run", file, "--json", "--markdown")
    assert (both.code, "give one of them" in both.err) == (2, True)


def test_the_page_is_written_where_asked(cli: Cli, file: str, tmp_path: Path) -> None:
    report = Report.model_validate_json(cli("experiment", "run", file, "--json", "--html", "report.html").out)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.to_html()
    assert cli("experiment", "show", report.experiment_id, "--html", "again.html").code == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == report.to_html()


@pytest.mark.parametrize("page", ["nowhere/report.html", "."])
def test_a_page_that_cannot_be_written_is_known_before_anything_runs(cli: Cli, file: str, page: str) -> None:
    ended = cli("experiment", "run", file, "--html", page)
    assert (ended.code, ended.out) == (2, "")
    assert "cannot be written" in ended.err
    assert "runs" not in ended.err


def test_a_store_of_ones_own_is_made_and_used(cli: Cli, file: str, tmp_path: Path) -> None:
    assert cli("experiment", "run", file, "--store", "sqlite:///own.db").code == 0
    assert [path.name for path in tmp_path.glob("*.db")] == ["own.db"]
    assert len(json.loads(cli("experiment", "list", "--store", "sqlite:///own.db", "--json").out)) == 1


def test_a_store_that_cannot_be_had_is_known_before_anything_runs(cli: Cli, file: str) -> None:
    ended = cli("experiment", "run", file, "--store", "sqlite:///nowhere/x.db")
    assert (ended.code, ended.out) == (1, "")
    assert "make its directory" in ended.err
    assert "runs" not in ended.err


BREAKS = """
from journeyman import Agent
from journeyman.experiments import Experiment

async def runner(agent, task, **_):
    raise RuntimeError("out of order")

experiment = Experiment(Agent(name="a", instruction="i"), {"a": {}, "b": {}}, ["1"], score=len, runner=runner)
"""


def test_runs_that_break_are_told_and_the_first_reason_shown(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "breaks.py").write_text(BREAKS)
    ended = cli("experiment", "run", "breaks.py")
    assert ended.code == 0
    assert "2 of 2 runs, 2 failed" in ended.err
    assert "RuntimeError: out of order" in ended.out
    assert "No winner" in ended.out


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("gone.py", None, "'gone.py' is not there"),
        ("notes.txt", "hello", "is no Python file"),
        ("empty.py", "", "defines no 'experiment'; write: experiment = Experiment("),
        ("other.py", "experiment = 3", "is a int; write"),
        (
            "raises.py",
            "x = 1\ny = x / 0",
            "cannot be imported: ZeroDivisionError: division by zero (raises.py, line 2)",
        ),
        ("typo.py", "x = 1\n\ndef", "cannot be imported: SyntaxError: invalid syntax (typo.py, line 3)"),
        ("named.py", BREAKS.replace("experiment =", "mine ="), "defines no 'experiment'; rename 'mine'"),
        ("json.py", "", "has the name of another module, 'json'"),
    ],
)
def test_a_file_without_an_experiment_says_what_to_do(
    cli: Cli, tmp_path: Path, name: str, text: str | None, problem: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    ended = cli("experiment", "run", name)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
    assert not list(tmp_path.glob("*.db"))


def test_an_experiment_that_is_not_there_says_where_to_look(cli: Cli, file: str) -> None:
    assert cli("experiment", "list").code == 2
    assert cli("db", "upgrade").code == 0
    nothing = cli("experiment", "list")
    assert (nothing.code, nothing.out, "no experiments" in nothing.err) == (0, "", True)
    ended = cli("experiment", "show", "exp_none")
    assert (ended.code, "no experiment 'exp_none'" in ended.err) == (1, True)

"""A gap as something to begin with: gram that loads, Python that runs with its test, whatever people wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import gram
from journeyman.app.gaps import as_gram, as_python, as_specification, tool_name
from journeyman.choosing import ToolGapReport
from journeyman.core.gaps import Gap


def gap(missing: str, task: str) -> Gap:
    report = ToolGapReport(missing_tools=(missing,), attempted_task=task)
    return Gap(key="k", missing=missing, times=1, people=1, first_at=0, last_at=0, report=report)


HOSTILE = 'Say """ and \\" and {name} and \u202e and \\N{BELL} \\x\nimport os'


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_whatever_was_asked_for_makes_a_tool_and_a_module(missing: str, task: str) -> None:
    found = gap(missing, task)
    [tool] = gram.load_tools(as_gram(found))
    assert tool == as_specification(found)
    for text in as_python(found).values():
        compile(text, "stub", "exec")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["Retrieve my stock portfolio performance for Q3 2024", HOSTILE])
def test_the_stub_runs_with_its_test(task: str, tmp_path: Path) -> None:
    for name, text in as_python(gap("retrieve stock portfolio performance", task)).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, "2 passed" in ended.stdout) == (0, True), ended.stdout


def test_tokens_stay_out_of_what_is_exported() -> None:
    secret = "sk-proj-" + "Ab3" * 16
    found = gap("deploy release", f"Deploy the release with {secret}")
    assert secret not in "".join((as_gram(found), *as_python(found).values()))


@pytest.mark.parametrize(
    ("missing", "name"), [("class", "class_tool"), ("予約", "new_tool"), ("finish", "finish_tool")]
)
def test_names_are_ones_that_a_tool_may_have(missing: str, name: str) -> None:
    assert tool_name(missing) == name

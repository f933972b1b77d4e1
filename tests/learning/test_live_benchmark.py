"""The live measurement runs, with a script in the place of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.learning.live import __main__ as live
from benchmarks.learning.live import templates
from benchmarks.learning.live.office import TOOLS


async def test_every_task_can_be_done_and_changes_something() -> None:
    assert len(TOOLS) >= 25
    assert len(templates.TEMPLATES) >= 12
    for task in templates.every():
        if task.instance % 5 == 0:
            assert await task.wanted() != task.office.state
    assert not set(templates.SPLITS["dev"]) & set(templates.SPLITS["test"])


@pytest.mark.slow
async def test_arms_are_paired_and_a_teacher_helps_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    arms = ["none", "teacher:form=turns", "wrong", "poisoned", "teacher:form=turns,closing=result,demonstrations=2"]
    assert await live.main(["--model", "pretender", "--tasks", "18", "--arms", *arms, "--json", str(file)]) == 0
    report = json.loads(file.read_text())
    assert list(report["summary"]) == arms
    assert {arm: found["tasks"] for arm, found in report["summary"].items()} == dict.fromkeys(arms, 18)
    assert report["summary"]["teacher:form=turns"]["difference"] > 0.2
    assert report["summary"]["wrong"]["success"] <= report["summary"]["none"]["success"]
    assert "| teacher:form=turns |" in capsys.readouterr().out

"""The live measurement runs, with a script in the place of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.learning.live import __main__ as live
from benchmarks.learning.live.measure import Hearing
from benchmarks.learning.live.told import counted
from benchmarks.learning.live.world import World
from journeyman.core.playbook import NEXT_STEP
from journeyman.core.protocols import ModelRequest
from journeyman.core.runs import Message, Role
from journeyman.testing import ScriptedModel, say


@pytest.mark.parametrize("world", live.WORLDS.values(), ids=lambda world: world.name)
async def test_every_task_can_be_done_and_changes_something(world: World) -> None:
    assert len(world.tools) >= 25
    assert len(world.templates) >= 18
    for task in world.every():
        if task.instance % 5 == 0:
            assert await task.wanted() != task.furnished().state
    assert not set(world.split("dev")) & set(world.split("test"))
    for name in world.templates:  # other words for the same task, and others with another seed
        assert len(world.wordings[name]) >= 3
        plain, other = world.task(name, 7), world.task(name, 7, reworded=True)
        assert plain.calls == other.calls
        assert plain.request != other.request
        assert world.task(name, 7, seed=1).calls != plain.calls


async def test_the_words_of_a_hint_are_told_from_the_values_in_it() -> None:
    model = Hearing(ScriptedModel([say("yes")]))
    hint = 'If this is like it, call send with name: "Anna Berg", title: from the user\'s request.'
    told = [Message.user("Do it"), Message(role=Role.USER, name=NEXT_STEP, content=hint)]
    await model.respond(ModelRequest(messages=told, tools=(), step=1))
    assert model.says("from the user's request")
    assert not any(map(model.says, ("Anna Berg", 7, "in other words")))


async def test_what_requests_in_other_words_are_told_is_counted_without_a_model() -> None:
    found = await counted(live.WORLDS["hotel"], "dev", words_alone=True)
    assert sum(found[name] for name in ("right strategy", "wrong strategy", "no strategy")) == 90
    assert found["right strategy"] >= 50
    assert (found["wrong strategy"], found["wrong call suggested"], found["wrong values"]) == (0, 0, 0)


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

"""Runs in memory: how ``run_sync`` ends whatever happens, and whose time counts."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref

import pytest

from journeyman import Approval, Approve, Limits, RunStatus, ToolLibrary, run, run_sync, tool
from journeyman.agent.state import RunState
from journeyman.app import assembly, direct
from journeyman.testing import FakeClock, ScriptedModel, call, say
from tests.playing import agent_with
from tests.waiting import WAIT_SECONDS


def test_run_sync_leaves_a_task_behind_that_swallows_its_cancellation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(direct, "SHUTDOWN_SECONDS", 0.01)
    ended: list[str] = []
    kept: list[object] = []

    async def stubborn() -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + WAIT_SECONDS
        while loop.time() < until:
            try:
                await asyncio.sleep(WAIT_SECONDS)
            except asyncio.CancelledError:
                continue
        ended.append("stubborn")

    async def polite() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("polite")

    @tool(risk="reversible")
    async def leave() -> str:
        """Leave something running."""
        kept.extend((asyncio.create_task(stubborn()), asyncio.create_task(polite())))
        await asyncio.sleep(0)
        return "left"

    model = ScriptedModel([call("leave"), say("done")])
    with caplog.at_level(logging.WARNING, "journeyman.app"):
        response = run_sync(agent_with(leave), "go", library=ToolLibrary([leave]), model=model)
    assert (response.answer, ended) == ("done", ["polite"])
    assert "left tasks behind" in caplog.text
    assert run_sync(agent_with(), "go", library=ToolLibrary(), model=ScriptedModel([say("again")])).answer == "again"


def test_run_sync_closes_its_loop_when_nothing_is_left() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @tool(risk="reversible")
    async def look() -> str:
        """Look."""
        loops.append(asyncio.get_running_loop())
        return "seen"

    model = ScriptedModel([call("look"), say("done")])
    run_sync(agent_with(look), "go", library=ToolLibrary([look]), model=model)
    assert loops[0].is_closed()


async def test_the_time_a_person_takes_is_not_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(assembly, "in_process", assembly.Executors(clock))

    @tool(risk="irreversible")
    async def delete() -> str:
        """Delete it."""
        clock.advance(2)
        return "gone"

    async def thinks(approval: Approval) -> Approve:
        clock.advance(200)
        return Approve()

    async def outcome(seconds: float) -> tuple[RunStatus, list[str]]:
        library, model = ToolLibrary([delete]), ScriptedModel([call("delete"), call("delete"), say("done")])
        limits = Limits(seconds=seconds)
        response = await run(agent_with(delete), "go", library=library, model=model, approver=thinks, limits=limits)
        return response.status, [record.status for record in response.tool_calls]

    assert await outcome(10) == (RunStatus.COMPLETED, ["success", "success"])
    assert await outcome(1) == (RunStatus.LIMIT_REACHED, ["success"])


async def test_a_limit_without_end_is_none() -> None:
    model = ScriptedModel([say("done")])
    limits = Limits(seconds=float("inf"))
    response = await run(agent_with(), "go", library=ToolLibrary(), model=model, limits=limits)
    assert response.status is RunStatus.COMPLETED
    assert model.requests[0].timeout is None


@tool(read_only=True)
async def double(x: int) -> int:
    """Twice a number."""
    return 2 * x


async def test_an_ended_run_is_freed_without_a_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection goes through every object of the process, and a run keeps many."""
    made: list[weakref.ref[RunState]] = []
    begin = RunState.__init__

    def noted(self: RunState, *, result_limit: int) -> None:
        begin(self, result_limit=result_limit)
        made.append(weakref.ref(self))

    monkeypatch.setattr(RunState, "__init__", noted)
    gc.collect()
    gc.disable()
    try:
        script = ScriptedModel([call("double", x=4), say("8")])
        assert (await run(agent_with(double), "Double 4.", model=script)).status is RunStatus.COMPLETED
        assert [state() for state in made] == [None]
    finally:
        gc.enable()

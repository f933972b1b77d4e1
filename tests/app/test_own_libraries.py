"""Agents with tools of their own: what is counted for one of them never holds for another."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Journeyman, Policy, RiskLevel, ToolLibrary, run, tool
from journeyman.app import assembly
from journeyman.app.assembly import in_process
from journeyman.core.policy import BreakerRule
from journeyman.testing import ScriptedModel, call, say

POLICY = Policy(breaker=BreakerRule(failures=1, rest_seconds=3_600))
DEAD = 50


def clerk(name: str, *, healthy: bool) -> Agent:
    @tool(risk=RiskLevel.REVERSIBLE)
    async def file_away(order: str) -> str:
        """File an order away."""
        if not healthy:
            raise ConnectionError("the cabinet is locked")
        return "filed"

    return Agent(name=name, instruction="File orders.", tools=[file_away])


def model() -> ScriptedModel:
    return ScriptedModel([call("file_away", order="one"), say("done")])


async def outcome(app: Journeyman, agent: Agent) -> Any:
    response = await (await app.start(agent, "File order one")).result()
    [record] = response.tool_calls
    return record


async def test_dead_agents_breakers_refuse_no_call_of_a_new_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "MOST_AGENTS", 1)  # of agents that runs were started with, so many are kept
    failing, dead = clerk("failing", healthy=False), []
    async with Journeyman(store=f"sqlite:///{tmp_path / 'store.db'}", policy=POLICY, model=model()) as app:
        for number in range(DEAD):
            agent = failing.model_copy(update={"name": f"failing {number}"})
            assert (await outcome(app, agent)).error.code == "TOOL_RAISED"
            dead.append(weakref.ref(agent.own_library))
        assert (await outcome(app, agent)).error.code == "CIRCUIT_OPEN"
        agent = clerk("healthy", healthy=True)
        assert (await outcome(app, agent)).success
        gc.collect()
        assert [library() for library in dead] == [None] * DEAD, "kept with the library of an agent that is gone"
        assert len(app._shared.executors._known) <= 2, "a new library at the same address would find its breaker"


async def test_what_direct_runs_share_goes_with_their_library() -> None:
    failing, dead, before = clerk("failing", healthy=False), [], len(in_process._known)
    for _ in range(DEAD):
        agent = failing.model_copy()
        await run(agent, "File order one", model=model(), policy=POLICY)
        dead.append(weakref.ref(agent.own_library))
    del agent
    gc.collect()
    assert [library() for library in dead] == [None] * DEAD
    assert len(in_process._known) <= before


async def test_runs_with_one_library_share_its_breaker(tmp_path: Path) -> None:
    [tools] = [clerk("failing", healthy=False).own_library]
    agents = [Agent(name=name, instruction="File.", tools=list(tools.specifications())) for name in ("ada", "ben")]
    app = Journeyman(
        store=f"sqlite:///{tmp_path / 'store.db'}", library=ToolLibrary(tools), policy=POLICY, model=model()
    )
    async with app:
        codes = [(await outcome(app, agent)).error.code for agent in agents]
    assert codes == ["TOOL_RAISED", "CIRCUIT_OPEN"]

"""Several tasks at once, and the files their traces are written to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from journeyman import Agent, Journeyman, TaskInput, ToolLibrary, run_batch, tool
from journeyman.core.errors import InvalidDataError
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.testing import ScriptedModel, say

AGENT = Agent(name="echo", instruction="Answer.")


class Echo:
    """Says the task again, and knows how many ask at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def respond(self, request: ModelRequest, deltas: object = None) -> ModelResponse:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return ModelResponse(text=request.messages[-1].content)


async def test_responses_come_in_the_order_of_the_tasks() -> None:
    model = Echo()
    tasks = [f"task {number}" for number in range(20)]
    responses = await run_batch(AGENT, tasks, model=model, concurrency=4)
    assert [response.answer for response in responses] == tasks
    assert len({response.task_id for response in responses}) == 20
    assert 1 < model.most <= 4


async def test_no_two_tasks_have_the_same_id() -> None:
    tasks = [TaskInput(task_id=name, description="x") for name in ("a", "b", "a")]
    with pytest.raises(InvalidDataError, match=r"tasks\[2\].task_id: 'a' is also the id of tasks\[0\]"):
        await run_batch(AGENT, tasks, model=Echo())
    with pytest.raises(InvalidDataError, match="concurrency: must be at least 1"):
        await run_batch(AGENT, tasks[:2], model=Echo(), concurrency=0)
    assert await run_batch(AGENT, [], model=Echo()) == []


async def test_a_run_that_fails_stops_none_of_the_others() -> None:
    @tool(read_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    class Moody:
        async def respond(self, request: ModelRequest, deltas: object = None) -> ModelResponse:
            if request.messages[-1].content == "bad":
                raise ValueError("no")
            return ModelResponse(text="fine")

    responses = await run_batch(AGENT, ["good", "bad", "good"], model=Moody(), library=ToolLibrary([look]))
    assert [response.status for response in responses] == ["completed", "failed", "completed"]


async def test_traces_do_not_overwrite_each_other(tmp_path: Path) -> None:
    ids = ["same", "same", "a/b", "a_b", "a b", "../a_b"]
    store, model = f"sqlite:///{tmp_path / 'store.db'}", ScriptedModel([say("ok")])
    async with Journeyman(library=ToolLibrary([]), store=store, model=model, traces=tmp_path / "t") as app:
        for task_id in ids:
            await (await app.start(AGENT, TaskInput(task_id=task_id, description="x"))).result()
    written = [json.loads(path.read_text()) for path in (tmp_path / "t").iterdir()]
    assert sorted(trace["task_id"] for trace in written) == sorted(ids)
    assert (tmp_path / "t" / "same.json").exists()

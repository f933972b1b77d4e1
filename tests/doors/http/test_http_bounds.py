"""What the HTTP door shows of large results and of runs that do not recover."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Principal, tool
from journeyman.core.runs import RunStatus, TaskInput
from journeyman.core.storing import RunOrder
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, call, say
from journeyman.tools.library import ToolLibrary
from tests.doors.http.serving import Running, served

ADA, BOB = "ada-token-0123456789", "bob-token-0123456789"
TOKENS = Tokens({ADA: Principal("ada"), BOB: Principal("bob")})
LINES = "".join(f"line {number}: grüße\n" for number in range(60_000))


@tool(read_only=True)
def read_lines() -> str:
    """Read a long text. Use when it is wanted."""
    return LINES


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_the_whole_of_a_large_result_is_read_by_whoever_may_see_its_run(tmp_path: Path) -> None:
    async with (
        served(tmp_path, tokens=TOKENS, library=ToolLibrary([read_lines])) as server,
        server.client(headers=headers(ADA)) as client,
        server.client(headers=headers(BOB)) as other,
    ):
        answer = (await client.post("/api/v1/tools/read_lines/call", json={"arguments": {}})).json()
        record = answer["record"]
        assert record["result"] is None
        assert record["artifact"]["chars"] == len(LINES)
        place = f"/api/v1/runs/{answer['run_id']}/artifacts/{record['artifact']['id']}"
        assert (await client.get(place)).text == LINES
        assert (await other.get(place)).status_code == 404
        missing = await client.get(f"/api/v1/runs/{answer['run_id']}/artifacts/nothing")
        assert (missing.status_code, missing.json()["code"]) == (404, "ARTIFACT_NOT_FOUND")
        chain = await client.post("/api/v1/chains", json={"steps": [{"tool": "read_lines", "args": {}}]})
        assert chain.json()["results"] == [LINES]


async def stuck(server: Running) -> None:
    """A run on which processes died, one after another."""
    runs = server.service.store.runs
    agent, task = server.service.default_agent, TaskInput(description="Go")
    await runs.create(
        RunOrder(run_id="deadly", agent=agent.snapshot, task=task, principal=Principal("ada"), created_at=1.0)
    )
    for number in range(6):
        assert await runs.claim("deadly", owner=f"gone-{number}", lease_seconds=-1)
    await server.service.app.runner.work_on("deadly")


async def test_a_stuck_run_says_why_and_is_tried_again_on_request(tmp_path: Path) -> None:
    library = ToolLibrary([read_lines])
    async with (
        served(tmp_path, tokens=TOKENS, library=library, model=ScriptedModel([say("Hello.")])) as server,
        server.client(headers=headers(ADA)) as client,
    ):
        await stuck(server)
        details = (await client.get("/api/v1/runs/deadly")).json()
        assert details["run"]["status"] == "stuck"
        assert "processes in a row died" in details["run"]["trouble"]
        assert "journeyman runs resume deadly" in details["response"]["error"]["user_guidance"]
        listed = (await client.get("/api/v1/runs", params={"status": "stuck"})).json()
        assert [run["id"] for run in listed["runs"]] == ["deadly"]
        assert (await client.post("/api/v1/runs/deadly/resume")).status_code == 200
        handle = await server.service.app.handle("deadly")
        assert await handle.wait() is not RunStatus.STUCK


SHAPES: dict[str, Any] = {
    "lists": [[] for _ in range(90_000)],
    "keys": {f"k{number}": number for number in range(60_000)},
    "numbers": list(range(100_000)),
    "records": [{"id": number, "name": "x"} for number in range(30_000)],
    "many, but not too many": [{"id": number} for number in range(9_000)],
}
MOST_CPU_SECONDS = 0.2
"""Of the event loop's thread in one go. It took up to 0.35 s; what is left takes a fifth of this."""


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_megabyte_of_small_values_is_refused_at_every_entrance(tmp_path: Path, shape: str) -> None:
    await sent(tmp_path, shape)


@pytest.mark.nightly
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_megabyte_of_small_values_does_not_hold_the_event_loop(tmp_path: Path, shape: str) -> None:
    gc.collect()
    gc.freeze()  # what other tests have left is not looked through here
    try:
        assert max(await sent(tmp_path, shape)) < MOST_CPU_SECONDS
    finally:
        gc.unfreeze()


async def sent(tmp_path: Path, shape: str) -> list[float]:
    """Send a shape to every entrance; the processor time of each turn of the event loop."""

    @tool(risk="reversible")
    def echo(data: Any) -> str:
        """Echo. Use when asked."""
        return "ok"

    async def watch() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            steps.append(now - before)
            before = now

    value, steps = SHAPES[shape], [0.0]
    requests: list[tuple[str, Any]] = [
        ("/api/v1/tools/echo/call", {"arguments": {"data": value}}),
        ("/api/v1/chains", {"steps": [{"tool": "echo", "args": {"data": value}}]}),
        ("/api/v1/tasks", {"title": "x", "metadata": {"data": value}}),
        ("/v1/chat/completions", {"model": "assistant", "messages": value}),
    ]
    bodies = [(path, json.dumps(body).encode()) for path, body in requests]
    model = ScriptedModel([call("echo", data=value), say("over")])
    agent = Agent(name="assistant", instruction="Help.", all_tools=True)
    async with (
        served(tmp_path, agents=[agent], library=ToolLibrary([echo]), model=model) as server,
        server.client(headers={"Content-Type": "application/json"}) as client,
    ):
        await client.get("/healthz")
        watching = asyncio.create_task(watch())
        try:
            codes = [(await client.post(path, content=body)).status_code for path, body in bodies]
            response = await (await server.service.app.start(agent, "Echo it.")).result()
        finally:
            watching.cancel()
    if "not too many" in shape:
        assert codes[:3] == [200, 200, 201]
        assert response.tool_calls[0].success
    else:
        assert codes == [422, 422, 422, 400]
        error = response.tool_calls[0].error
        assert error is not None
        assert error.code == "MALFORMED_ARGUMENTS"
    return steps

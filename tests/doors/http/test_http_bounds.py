"""What the HTTP door shows of large results and of runs that do not recover."""

from __future__ import annotations

from pathlib import Path

from journeyman import Principal, tool
from journeyman.core.runs import RunStatus, TaskInput
from journeyman.core.storing import RunOrder
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, say
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

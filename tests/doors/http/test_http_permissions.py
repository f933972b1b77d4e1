"""Who may change what: seeing is one permission, changing another, deciding a third."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import Running, served
from tests.doors.http.test_http_approvals import died_in_call

DELETES: list[Any] = [call("delete_task", task_id="milk"), say("That is settled.")]
NAMES = ("ada", "reader", "writer", "decider")
TOKENS = Tokens(
    {
        "ada-token-0123456789": Principal("ada", permissions={"tasks:write"}),
        "reader-token-0123456789": Principal("reader", permissions={"runs:read"}),
        "writer-token-0123456789": Principal("writer", permissions={"runs:write"}),
        "decider-token-0123456789": Principal("decider", permissions={"approvals:decide"}),
    }
)
ONE_ANSWER = {"Accept": "application/json"}


@asynccontextmanager
async def clients(tmp_path: Path) -> AsyncIterator[tuple[Running, dict[str, httpx.AsyncClient]]]:
    async with served(tmp_path, model=ScriptedModel(DELETES), tokens=TOKENS) as server:
        opened = {name: server.client(headers={"Authorization": f"Bearer {name}-token-0123456789"}) for name in NAMES}
        try:
            yield server, opened
        finally:
            for client in opened.values():
                await client.aclose()


async def waiting_run(client: httpx.AsyncClient) -> dict[str, Any]:
    await client.post("/api/v1/tasks", json={"title": "Buy milk"})
    body = {"message": "Delete", "session_id": "s1"}
    answer = await client.post("/api/v1/chat", json=body, headers=ONE_ANSWER)
    found: dict[str, Any] = answer.json()
    assert found["status"] == "awaiting_approval"
    return found


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/chat", {"message": "More", "session_id": "s1"}),
        ("POST", "/api/v1/chains", {"steps": [{"tool": "query_tasks"}], "session_id": "s1"}),
        ("POST", "/api/v1/tools/query_tasks/call", {"session_id": "s1"}),
        ("POST", "/api/v1/runs/RUN/cancel", None),
        ("POST", "/api/v1/runs/RUN/resume", None),
        ("DELETE", "/api/v1/sessions/s1", None),
    ],
)
async def test_who_only_sees_changes_nothing_of_others(tmp_path: Path, method: str, path: str, body: Any) -> None:
    async with clients(tmp_path) as (_, by):
        run_id = (await waiting_run(by["ada"]))["run_id"]
        path = path.replace("RUN", run_id)
        refused = await by["reader"].request(method, path, json=body, headers=ONE_ANSWER)
        assert (refused.status_code, refused.json()["code"]) == (403, "PERMISSION_MISSING")
        assert "'runs:write'" in refused.json()["error"]
        hidden = await by["decider"].request(method, path, json=body, headers=ONE_ANSWER)
        assert hidden.status_code == 404
        assert (await by["reader"].get(f"/api/v1/runs/{run_id}")).json()["run"]["status"] == "awaiting_approval"
        assert len((await by["reader"].get("/api/v1/runs")).json()["runs"]) == 1
        assert (await by["reader"].get("/api/v1/chat/history/s1")).status_code == 200


async def test_with_the_permission_to_write_others_runs_are_cancelled_and_their_sessions_deleted(
    tmp_path: Path,
) -> None:
    async with clients(tmp_path) as (_, by):
        run_id = (await waiting_run(by["ada"]))["run_id"]
        assert (await by["writer"].get(f"/api/v1/runs/{run_id}")).status_code == 200
        assert (await by["writer"].post(f"/api/v1/runs/{run_id}/resume")).status_code == 200
        said = {"message": "More", "session_id": "s1"}
        assert (await by["writer"].post("/api/v1/chat", json=said, headers=ONE_ANSWER)).json()["status"] == "queued"
        for run in (await by["writer"].get("/api/v1/runs")).json()["runs"]:
            assert (await by["writer"].post(f"/api/v1/runs/{run['id']}/cancel")).json()["status"] == "cancelled"
        assert (await by["writer"].delete("/api/v1/sessions/s1")).status_code == 204


async def test_another_ones_request_is_not_taken_up_by_who_only_sees(tmp_path: Path) -> None:
    async with clients(tmp_path) as (_, by):
        body = {"message": "Delete", "run_id": "a-run-of-ada"}
        assert (await by["ada"].post("/api/v1/chat", json=body, headers=ONE_ANSWER)).status_code == 200
        own = await by["reader"].post("/api/v1/chat", json=body, headers=ONE_ANSWER)
        assert own.status_code == 200
        assert (await by["reader"].get(f"/api/v1/runs/{own.json()['run_id']}")).json()["run"]["principal"] == "reader"


async def test_an_unknown_outcome_is_settled_by_who_may_decide_and_sees_nothing_else(tmp_path: Path) -> None:
    model = ScriptedModel([call("update_task", task_id="milk", status="completed"), say("Done.")])
    with_local = Tokens(
        {
            "local-token-0123456789": Principal("local", permissions={"*"}),
            "decider-token-0123456789": Principal("decider", permissions={"approvals:decide"}),
            "ada-token-0123456789": Principal("ada"),
        }
    )
    async with served(tmp_path, model=model, tokens=with_local) as server:
        local, decider, ada = (
            server.client(headers={"Authorization": f"Bearer {name}-token-0123456789"})
            for name in ("local", "decider", "ada")
        )
        async with local, decider, ada:
            run_id = await died_in_call(server, local)
            path = f"/api/v1/runs/{run_id}/calls/c1/resolve"
            assert (await ada.post(path, json={"action": "skip"})).status_code == 404
            assert (await decider.get(f"/api/v1/runs/{run_id}")).status_code == 404
            settled = await decider.post(path, json={"action": "skip"})
            assert (settled.status_code, settled.json()["id"]) == (200, run_id)
            missing = await decider.post("/api/v1/runs/none/calls/c1/resolve", json={"action": "skip"})
            assert missing.status_code == 404

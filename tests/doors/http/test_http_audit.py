"""Whatever somebody changes over HTTP is in the audit, with who it was and no content; it takes a permission."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import served

TOKENS = {
    "ada-token-0123456789": Principal("ada", permissions={"tasks:write", "approvals:decide", "audit:read"}),
    "bob-token-0123456789": Principal("bob", permissions={"tasks:read"}),
}
ADA, BOB = ({"Authorization": f"Bearer {token}"} for token in TOKENS)
ONE_ANSWER = {"Accept": "application/json"}
LINK = "https://example.com/a"


async def kinds(client: httpx.AsyncClient) -> list[str]:
    rows = (await client.get("/api/v1/audit?limit=200")).json()["rows"]
    assert {row["actor"] for row in rows if row["kind"] not in ("tokens_changed", "approval_superseded")} == {"ada"}
    return [row["kind"] for row in rows]


async def test_every_change_of_a_task_by_hand_is_in_the_audit(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=Tokens(TOKENS)) as server, server.client(headers=ADA) as client:
        task = (await client.post("/api/v1/tasks", json={"title": "The secret title"})).json()
        path = f"/api/v1/tasks/{task['id']}"
        await client.patch(path, json={"title": "Another secret", "status": "completed"})
        await client.patch(path, json={"status": "completed"})  # changes nothing
        attached = (await client.post(f"{path}/attachments", json={"reference": LINK})).json()
        await client.post(f"{path}/attachments", json={"reference": LINK})  # is there already
        await client.patch(f"/api/v1/attachments/{attached['id']}", json={"title": "secret"})
        await client.delete(f"/api/v1/attachments/{attached['id']}")
        await client.delete(f"/api/v1/attachments/{attached['id']}")
        await client.delete(path)
        await client.delete(path)
        changes = (await client.get("/api/v1/audit?actor=ada")).json()["rows"]
        assert [(row["kind"], row["subject"], row["details"]) for row in changes] == [
            ("task_created", task["id"], {}),
            ("task_updated", task["id"], {"fields": ["status", "title"]}),
            ("attachment_added", attached["id"], {"task_id": task["id"]}),
            ("attachment_updated", attached["id"], {"fields": ["title"], "task_id": task["id"]}),
            ("attachment_removed", attached["id"], {}),
            ("task_deleted", task["id"], {}),
        ]
        assert "secret" not in json.dumps(changes)
        assert await server.service.store.audit.verify() == 7


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/tasks", {"title": "Buy milk"}),
        ("PATCH", "/api/v1/tasks/TASK", {"title": "Buy tea"}),
        ("DELETE", "/api/v1/tasks/TASK", None),
        ("POST", "/api/v1/tasks/TASK/attachments", {"reference": "https://example.com/b"}),
        ("PATCH", "/api/v1/attachments/ATTACHMENT", {"title": "x"}),
        ("DELETE", "/api/v1/attachments/ATTACHMENT", None),
    ],
)
async def test_to_change_tasks_by_hand_takes_the_permission(tmp_path: Path, method: str, path: str, body: Any) -> None:
    async with served(tmp_path, tokens=Tokens(TOKENS)) as server, server.client() as client:
        task = (await client.post("/api/v1/tasks", json={"title": f"See {LINK}"}, headers=ADA)).json()
        path = path.replace("TASK", task["id"]).replace("ATTACHMENT", task["attachments"][0]["id"])
        refused = await client.request(method, path, json=body, headers=BOB)
        assert (refused.status_code, refused.json()["code"]) == (403, "PERMISSION_MISSING")
        assert "'tasks:write'" in refused.json()["error"]
        assert (await client.get(f"/api/v1/tasks/{task['id']}", headers=BOB)).json() == task
        assert len(await server.service.store.audit.list(kind="task_created")) == 1
        assert (await client.request(method, path, json=body, headers=ADA)).status_code < 300


async def test_decisions_cancellations_grants_and_deletions_are_in_the_audit(tmp_path: Path) -> None:
    model = ScriptedModel([call("delete_task", task_id="milk"), say("That is settled.")])
    async with served(tmp_path, model=model, tokens=Tokens(TOKENS)) as server, server.client(headers=ADA) as client:

        async def asked(session: str) -> dict[str, Any]:
            body = {"message": "Delete", "session_id": session}
            found: dict[str, Any] = (await client.post("/api/v1/chat", json=body, headers=ONE_ANSWER)).json()
            return found

        first = await asked("s1")
        approval = first["approvals"][0]["id"]
        await client.post(f"/api/v1/approvals/{approval}/approve", json={"for_session": True})
        await (await server.service.app.handle(first["run_id"])).result()
        second = await asked("s2")
        assert (await client.post(f"/api/v1/runs/{second['run_id']}/cancel")).json()["status"] == "cancelled"
        assert (await client.delete("/api/v1/sessions/s1")).status_code == 204
        found = [kind for kind in await kinds(client) if kind != "approval_superseded"]
        assert found == [
            "tokens_changed",
            "approval_approved",
            "grant_given",
            "call_started",
            "run_cancelled",
            "grant_revoked",
            "session_deleted",
        ]


async def test_who_has_access_is_in_the_audit_whenever_it_changes(tmp_path: Path) -> None:
    for tokens in (None, Tokens(TOKENS), Tokens(TOKENS), Tokens({"ada-token-9876543210": Principal("ada")}), None):
        async with served(tmp_path, tokens=tokens) as server:
            rows = await server.service.store.audit.list()
    assert [row.details["principals"] for row in rows] == [
        {"ada": ["approvals:decide", "audit:read", "tasks:write"], "bob": ["tasks:read"]},
        {"ada": []},
        {},
    ]
    assert not any(token in str(rows) for token in TOKENS)

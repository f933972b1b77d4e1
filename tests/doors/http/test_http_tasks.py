"""Tasks, attachments and search over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.doors.http.serving import served


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with served(tmp_path) as server, server.client(base_url=f"{server.url}/api/v1") as client:
        yield client


async def made(client: httpx.AsyncClient, title: str, **fields: Any) -> dict[str, Any]:
    response = await client.post("/tasks", json={"title": title, **fields})
    assert response.status_code == 201, response.text
    task: dict[str, Any] = response.json()
    assert response.headers["Location"] == f"/api/v1/tasks/{task['id']}"
    return task


async def test_a_task_lives_from_creation_to_deletion(client: httpx.AsyncClient) -> None:
    task = await made(client, "Buy milk", priority="high", eta="2027-01-31T17:00:00+01:00", tags=["home"])
    assert (task["status"], task["priority"], task["eta"]) == ("pending", "high", "2027-01-31T17:00:00+01:00")
    path = f"/tasks/{task['id']}"
    assert (await client.get(path)).json() == task
    changed = (await client.patch(path, json={"status": "completed", "eta": None})).json()
    assert (changed["status"], changed["eta"], changed["title"]) == ("completed", None, "Buy milk")
    assert (await client.delete(path)).status_code == 204
    gone = await client.get(path)
    assert (gone.status_code, gone.json()["code"]) == (404, "TASK_NOT_FOUND")
    assert (await client.delete(path)).status_code == 404
    assert (await client.patch(path, json={"title": "x"})).status_code == 404


async def test_a_task_is_addressed_by_its_id_and_never_by_its_title(client: httpx.AsyncClient) -> None:
    await made(client, "milk")
    for answer in (
        await client.get("/tasks/milk"),
        await client.patch("/tasks/milk", json={"title": "x"}),
        await client.delete("/tasks/milk"),
    ):
        assert answer.status_code == 404


async def test_tasks_are_filtered_and_paged_newest_first(client: httpx.AsyncClient) -> None:
    for number in range(7):
        await made(client, f"Task {number}", tags=["odd"] if number % 2 else [], eta=f"2027-01-0{number + 1}")
    page = (await client.get("/tasks", params={"limit": 3, "offset": 3})).json()
    assert [task["title"] for task in page["tasks"]] == ["Task 3", "Task 2", "Task 1"]
    assert (page["total"], page["page"], page["page_size"]) == (7, 2, 3)
    whole = (await client.get("/tasks")).json()
    assert (whole["page"], whole["page_size"], len(whole["tasks"])) == (1, 50, 7)
    odd = (await client.get("/tasks", params={"tags": "odd", "due_after": "2027-01-03"})).json()
    assert [task["title"] for task in odd["tasks"]] == ["Task 5", "Task 3"]
    early = (await client.get("/tasks", params={"due_before": "2027-01-02"})).json()
    assert early["total"] == 2


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({}, "VALIDATION_ERROR", "title"),
        ({"title": ""}, "VALIDATION_ERROR", "title"),
        ({"title": "   "}, "INVALID_TITLE", "title"),
        ({"title": "x", "priority": "urgent"}, "VALIDATION_ERROR", "priority"),
        ({"title": "x", "eta": "tomorrow"}, "INVALID_ETA", "eta"),
        ({"title": "x", "colour": "red"}, "VALIDATION_ERROR", "colour"),
        ({"title": "x", "metadata": {"a": "\ud800"}}, "VALIDATION_ERROR", "metadata.a"),
    ],
)
async def test_a_wrong_value_is_refused_by_its_field(
    client: httpx.AsyncClient, body: Any, code: str, field: str
) -> None:
    headers = {"Content-Type": "application/json"}
    response = await client.post("/tasks", content=json.dumps(body), headers=headers)
    assert (response.status_code, response.json()["code"]) == (422, code)
    assert response.json()["fields"][0]["field"] == field


async def test_a_title_cannot_be_removed(client: httpx.AsyncClient) -> None:
    task = await made(client, "Buy milk")
    refused = await client.patch(f"/tasks/{task['id']}", json={"title": None})
    assert (refused.status_code, refused.json()["fields"][0]["field"]) == (422, "title")
    empty = await client.patch(f"/tasks/{task['id']}", json={})
    assert (empty.status_code, empty.json()["code"]) == (422, "NOTHING_TO_CHANGE")


async def test_addresses_in_a_text_become_attachments_once(client: httpx.AsyncClient) -> None:
    task = await made(
        client,
        "Review https://github.com/Acme/Rocket/pull/7/files?utm_source=mail",
        description="See https://example.com/a?utm_medium=x&page=2 and again https://example.com/a?page=2",
    )
    assert [(item["type"], item["reference"]) for item in task["attachments"]] == [
        ("github", "https://github.com/acme/rocket/pull/7"),
        ("url", "https://example.com/a?page=2"),
    ]


async def test_an_attachment_is_unique_for_its_task_and_its_type_is_inferred(client: httpx.AsyncClient) -> None:
    task, other = await made(client, "One"), await made(client, "Two")
    path = f"/tasks/{task['id']}/attachments"
    first = await client.post(path, json={"reference": "https://github.com/acme/rocket/issues/3?utm_source=a"})
    assert (first.status_code, first.json()["type"]) == (201, "github")
    twice = await client.post(path, json={"reference": "https://github.com/Acme/rocket/issues/3"})
    assert (twice.status_code, twice.json()["code"]) == (409, "ATTACHMENT_EXISTS")
    elsewhere = await client.post(
        f"/tasks/{other['id']}/attachments", json={"reference": "https://github.com/acme/rocket/issues/3"}
    )
    assert elsewhere.status_code == 201
    bad = await client.post(path, json={"reference": "not an address"})
    assert (bad.status_code, bad.json()["code"]) == (422, "INVALID_REFERENCE")
    by_id = f"/attachments/{first.json()['id']}"
    changed = await client.patch(by_id, json={"title": "The bug"})
    assert changed.json()["title"] == "The bug"
    assert (await client.get(by_id)).json()["title"] == "The bug"
    assert (await client.get(path)).json()["total"] == 1
    assert (await client.delete(by_id)).status_code == 204
    gone = await client.get(by_id)
    assert (gone.status_code, gone.json()["code"]) == (404, "ATTACHMENT_NOT_FOUND")


async def test_search_finds_by_words_and_by_meaning(client: httpx.AsyncClient) -> None:
    await made(client, "Pay the electricity bill")
    await made(client, "Walk the dog")
    words = (await client.get("/search", params={"q": "electricity"})).json()
    assert [item["task"]["title"] for item in words["results"]] == ["Pay the electricity bill"]
    meaning = (await client.get("/search", params={"q": "pay a bill", "mode": "semantic"})).json()
    assert meaning["results"][0]["task"]["title"] == "Pay the electricity bill"
    assert meaning["results"][0]["score"] > 0


async def test_null_removes_what_a_task_can_do_without(client: httpx.AsyncClient) -> None:
    task = await made(client, "Buy milk", description="Two", eta="2027-01-31", tags=["home"], metadata={"shop": 1})
    changed = await client.patch(f"/tasks/{task['id']}", json=dict.fromkeys(("tags", "metadata", "description", "eta")))
    assert changed.status_code == 200
    found = (await client.get(f"/tasks/{task['id']}")).json()
    assert (found["tags"], found["metadata"], found["description"], found["eta"]) == ([], {}, None, None)
    for name in ("title", "status", "priority"):
        refused = await client.patch(f"/tasks/{task['id']}", json={name: None})
        assert (refused.status_code, [item["field"] for item in refused.json()["fields"]]) == (422, [name])


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/tasks/none", "Task not found"),
        ("/tasks/none/attachments", "Task not found"),
        ("/attachments/none", "Attachment not found"),
        ("/runs/none", "Run not found"),
        ("/runs/none/events", "Run not found"),
        ("/approvals/none", "Approval not found"),
        ("/chat/history/none", "Session not found"),
        ("/tools/none", "Tool not found"),
        ("/experiments/none", "Experiment not found"),
    ],
)
async def test_what_is_not_there_is_said_in_a_few_words(client: httpx.AsyncClient, path: str, text: str) -> None:
    response = await client.get(path)
    kind = text.removesuffix(" not found").upper()
    assert (response.status_code, response.json()["error"]) == (404, text)
    assert response.json()["code"] == f"{kind}_NOT_FOUND"

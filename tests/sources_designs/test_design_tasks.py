"""The design of the chat service's tools: definitions, task tools under its names, its sentences, versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman import Journeyman, ToolError, ToolLibrary, ToolSpecification, tool
from journeyman.app.service import task_library
from journeyman.stores.store import open_store
from journeyman.testing import call, say
from tests.doors.http.serving import served
from tests.playing import play

PARAMETERS = {
    "title": {"type": "string", "description": "Task title (1-255 characters)"},
    "priority": {"type": "string", "enum": ["low", "medium", "high", "critical"], "default": "medium"},
    "eta": {"type": "string", "description": "Due date/time (ISO 8601 format)"},
}


def test_a_definition_is_written_as_in_the_design() -> None:
    given = {"name": "args", "type": "object", "description": "Task creation parameters", "required": True}
    example = {"input": {"title": "Buy groceries"}, "output": {"id": "task-123", "status": "pending"}}
    made = ToolSpecification(
        name="create_task",
        description="Create a new task. Use when user asks to add, create, or capture a task.",
        parameters={**given, "properties": PARAMETERS},
        returns={"type": "object"},
        examples=[example],
    )
    assert made.parameters["properties"] == PARAMETERS
    assert (made.return_type, made.examples) == ("object", (example,))


def test_an_error_says_how_to_recover() -> None:
    error = ToolError(code="RATE_LIMITED", message="GitHub rate limit exceeded", retryable=True, recover_action="Wait")
    told = {"error": error.message, "code": "RATE_LIMITED", "retryable": True, "recover_action": "Wait"}
    assert error.to_dict() == told


@pytest.fixture
async def library(tmp_path: Path) -> Any:
    store = open_store(f"sqlite:///{tmp_path / 'tasks.db'}")
    await store.open()
    yield task_library(store)
    await store.close()


async def told(library: ToolLibrary, name: str, **arguments: Any) -> dict[str, Any]:
    played = await play(list(library), [call(name, **arguments), say("Done.")], library=library)
    answer: dict[str, Any] = json.loads(played.told[0])
    return answer


@pytest.mark.parametrize(
    ("given", "message", "recover"),
    [
        (
            {"title": "x" * 256},
            "Title too long: 256 characters (max 255)",
            "Truncate title to 255 characters",
        ),
        ({"title": "x", "priority": "urgent"}, "Invalid priority: urgent", "Use one of: low, medium, high, critical"),
    ],
)
async def test_the_designs_own_sentences(library: ToolLibrary, given: Any, message: str, recover: str) -> None:
    refused = await told(library, "create_task", **given)
    assert refused["error"] == message
    assert refused["recover_action"].startswith(recover)
    assert (await told(library, "create_task", title="x" * 255))["title"] == "x" * 255


async def test_tasks_are_listed_under_the_designs_names(library: ToolLibrary) -> None:
    made = await told(library, "create_task", title="Buy groceries", priority="high")
    assert made["status"] == "pending"
    for arguments in ({}, {"filters": {"status": "pending"}, "limit": 50, "format": "concise"}, {"status": "pending"}):
        assert [item["id"] for item in (await told(library, "list_tasks", **arguments))["tasks"]] == [made["id"]]
    assert (await told(library, "list_tasks", format="concise"))["tasks"] == [{"id": made["id"], "status": "pending"}]
    assert (await told(library, "get_task", task_id=made["id"]))["tasks"][0]["title"] == "Buy groceries"


async def test_a_tool_restores_what_update_task_changed(library: ToolLibrary) -> None:
    task_id = (await told(library, "create_task", title="Draft", tags=["a"]))["id"]
    assert (await told(library, "restore_task", task_id=task_id))["code"] == "VERSION_NOT_FOUND"
    await told(library, "update_task", task_id=task_id, title="Final", tags=["b"], eta="2027-01-31")
    await told(library, "update_task", task_id=task_id, status="completed")
    versions = (await told(library, "list_task_versions", task_id=task_id))["versions"]
    assert [(item["number"], item["task"]["title"]) for item in versions] == [(2, "Final"), (1, "Draft")]
    assert (await told(library, "restore_task", task_id=task_id))["status"] == "pending"
    first = await told(library, "restore_task", task_id=task_id, version=1)
    assert (first["title"], first["tags"], first["eta"]) == ("Draft", ["a"], None)
    assert first["previous"]["title"] == "Final"
    assert len((await told(library, "list_task_versions", task_id=task_id))["versions"]) == 4


async def test_http_restores_a_version(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client(base_url=f"{server.url}/api/v1") as client:
        task = (await client.post("/tasks", json={"title": "Draft"})).json()
        path = f"/tasks/{task['id']}"
        await client.patch(path, json={"title": "Final"})
        [version] = (await client.get(f"{path}/versions")).json()["versions"]
        back = await client.post(f"{path}/versions/{version['number']}")
        assert (back.status_code, back.json()["title"]) == (200, "Draft")
        missing: httpx.Response = await client.post(f"{path}/versions/99")
        assert (missing.status_code, missing.json()["code"]) == (404, "VERSION_NOT_FOUND")


async def test_the_designs_chain_runs(tmp_path: Path) -> None:
    @tool(read_only=True)
    def search_github_pr(query: str) -> dict[str, str]:
        """Search pull requests. Use for one without an address."""
        return {"pr_url": "https://github.com/acme/rocket/pull/123"}

    store = open_store(f"sqlite:///{tmp_path / 'chain.db'}")
    library = task_library(store)
    library.register(search_github_pr, replace=True)
    async with Journeyman(store=store, library=library) as app:
        results = await app.chain(
            [
                {"tool": "create_task", "args": {"title": "Review PR #123"}},
                {"tool": "search_github_pr", "args": {"query": "PR #123"}},
                {"tool": "add_attachment", "args": {"task_id": "$task_id", "url": "$pr_url"}},
                {"tool": "get_task", "args": {"task_id": "$task_id"}},
                {"tool": "update_task", "args": {"task_id": "$task_id", "status": "completed"}},
            ]
        )
    assert results[2]["reference"] == "https://github.com/acme/rocket/pull/123"
    assert results[-1]["status"] == "completed"

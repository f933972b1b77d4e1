"""One form for all of HTTP, checked on every route of the OpenAPI document, so that a new one cannot be forgotten."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import Running, chat, served

PARTS_OF_ONE = {
    "/api/v1/me": "what the caller may do",
    "/api/v1/configuration": "what is wrong with one file",
    "/api/v1/runs/{run_id}": "what one run waits for",
    "/api/v1/runs/{run_id}/diff": "how two runs differ",
    "/api/v1/runs/{run_id}/steps/{step}": "what one step saw",
    "/api/v1/runs/{run_id}/flow": "one run's calls, the latest 500",
    "/api/v1/approvals/{approval_id}": "what was done before the question",
    "/api/v1/tools/{name}": "one tool's tags and examples",
    "/api/v1/tasks/{task_id}": "one task's tags; its attachments are a list of their own",
    "/api/v1/playbooks/{domain}": "one playbook; its history is a list of its own",
    "/api/v1/playbooks/{domain}/diff": "how two versions differ",
    "/api/v1/gaps/{key}/export": "the files of one export",
    "/v1/models/{name}": "one agent's tools",
}
"""What returns one thing, of which some fields are lists. Every other GET with a list returns a part of it."""
FOR_PEOPLE = {"/", "/assets/{name}"}
"""Links to the page are passed on by programs that add parameters of their own; a person is to see it all the same."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as running:
        yield running


async def document(server: Running) -> dict[str, Any]:
    async with server.client() as client:
        found: dict[str, Any] = (await client.get("/openapi.json")).json()
        return found


def schema_of(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


async def test_every_list_is_told_in_parts_of_one_form(server: Running) -> None:
    told = await document(server)
    lists, single = set(), set()
    for method, path, operation in operations(told):
        answer = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
        schema = schema_of(told, answer.get("schema", {}))
        assert schema.get("type") != "array", f"{path}: a list without room for its total"
        fields = schema.get("properties", {})
        if method != "GET" or not any(schema_of(told, field).get("type") == "array" for field in fields.values()):
            continue
        if path in PARTS_OF_ONE:
            single.add(path)
            continue
        lists.add(path)
        taken = {item["name"] for item in operation["parameters"] if item["in"] == "query"}
        assert {"limit", "after"} <= taken, path
        assert {"total", "next_after"} <= fields.keys(), path
    assert single == PARTS_OF_ONE.keys()
    assert len(lists) >= 20


async def test_every_route_refuses_parameters_that_it_does_not_know(server: Running) -> None:
    routes = list(server_routes(await document(server)))
    accepted = {"Accept": "application/problem+json"}
    async with server.client() as client:
        for method, path in routes:
            answer = await client.request(method, f"{path}?wibble=1", json={} if method == "POST" else None)
            refused = 400 if path.startswith("/v1/") else 422  # OpenAI's clients know no 422
            assert answer.status_code == refused, (method, path, answer.text)
            assert "wibble" in answer.text, (method, path)
            problem = await client.request(method, f"{path}?wibble=1", headers=accepted)
            assert problem.headers["content-type"] == "application/problem+json", (method, path)
            told = problem.json()
            assert told["status"] == problem.status_code == 422, (method, path)
            assert {"type", "title", "detail", "instance", "code", "error"} <= told.keys(), (method, path)
        assert (await client.get("/?utm_source=mail")).status_code == 200


def server_routes(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for method, path, _ in operations(told):
        yield method, re.sub(r"\{(\w+)\}", lambda found: "1" if found[1] in ("step", "number") else "some", path)
    yield "GET", "/openapi.json"


def test_only_the_page_and_its_files_are_not_among_them() -> None:
    from journeyman.doors.http import web

    assert {getattr(route, "path", None) for route in web.router.routes} == FOR_PEOPLE


async def test_a_head_is_answered_where_health_is_asked_for_and_refused_with_what_is_allowed(server: Running) -> None:
    told = await document(server)
    paths = {re.sub(r"\{\w+\}", "some", path) for _, path, _ in operations(told)}
    async with server.client() as client:
        for path in paths:
            answer = await client.head(path)
            if path in ("/healthz", "/readyz"):
                assert (answer.status_code, answer.content) == (200, b"")
            else:
                assert answer.status_code == 405, path
                assert "HEAD" not in answer.headers["allow"].split(", "), path


async def test_events_have_times_like_everything_else(server: Running) -> None:
    async with server.client() as client:
        sent = [item.json for item in await chat(client, "Hello", session_id="s") if item.data != "[DONE]"]
        run_id = sent[0]["run_id"]
        events = f"/api/v1/runs/{run_id}/events"
        async with client.stream("GET", f"/api/v1/events?run={run_id}") as stream:
            many = [line.removeprefix("data: ") async for line in stream.aiter_lines() if line.startswith("data: {")]
        listed = (await client.get(events, headers={"Accept": "application/json"})).json()
        row = (await client.get(f"/api/v1/runs/{run_id}")).json()["run"]
    assert [item["seq"] for item in listed["events"]] == list(range(1, listed["total"] + 1))
    assert len(many) == listed["total"]
    begun = datetime.fromisoformat(row["created_at"])
    for event in (*sent, *listed["events"]):
        assert event["time"].endswith("Z"), event
        assert abs((datetime.fromisoformat(event["time"]) - begun).total_seconds()) < 3_600
    [message] = [event for event in listed["events"] if event["type"] == "message"]
    assert begun <= datetime.fromisoformat(message["started"]) <= datetime.fromisoformat(message["time"])


async def test_what_was_said_done_and_found_goes_on_where_it_stopped(server: Running) -> None:
    async with server.client() as client:
        for number in range(3):
            await chat(client, f"Hello {number}", session_id="s")
            await client.post("/api/v1/memory/documents", json={"text": f"The dentist moved visit {number}."})
            await client.post("/api/v1/tasks", json={"title": f"Call the dentist about {number}"})
        [run, *_] = (await client.get("/api/v1/runs")).json()["runs"]
        asked = {
            "/api/v1/chat/history/s": ("messages", {}),
            f"/api/v1/runs/{run['id']}/events": ("events", {}),
            "/api/v1/memory/search": ("results", {"q": "dentist"}),
            "/api/v1/search": ("results", {"q": "dentist"}),
            "/api/v1/search?mode=semantic": ("results", {"q": "dentist", "mode": "semantic"}),
        }
        for path, (rows, params) in asked.items():
            path = path.partition("?")[0]

            async def part(path: str = path, params: dict[str, Any] = params, **more: Any) -> dict[str, Any]:
                headers = {"Accept": "application/json"}
                answer = await client.get(path, params={**params, **more}, headers=headers)
                assert answer.status_code == 200, answer.text
                found: dict[str, Any] = answer.json()
                return found

            whole = await part()
            assert len(whole[rows]) == whole["total"] >= 3, path
            assert whole["next_after"] is None
            found: list[Any] = []
            after: dict[str, Any] = {}
            while True:
                page = await part(limit=2, **after)
                assert page["total"] == whole["total"]
                found += page[rows]
                if page["next_after"] is None:
                    break
                after = {"after": page["next_after"]}
            assert found == whole[rows], path
        latest = (await client.get("/api/v1/chat/history/s", params={"last": 1})).json()
        assert [item["role"] for item in latest["messages"]] == ["assistant"]
        assert (await client.get("/api/v1/chat/history/s", params={"after": "x"})).status_code == 422
        former = (await client.get("/api/v1/memory/search", params={"q": "dentist", "top_k": 1})).json()
        assert (len(former["results"]), former["total"]) == (1, 3)

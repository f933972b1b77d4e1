"""Bodies and headers that cannot be taken: each is refused by name, nothing breaks, nothing is changed silently."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from journeyman.app.operations.table import read_json
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import served
from tests.doors.http.test_http_approvals import died_in_call
from tests.waiting import WAIT_SECONDS

JSON = {"Content-Type": "application/json"}
MILK = {"role": "user", "content": "Milk"}
MANY_DIGITS = "9" * 5_000


def with_value(written: str) -> str:
    """A task whose metadata holds this, as it is written."""
    return f'{{"title": "x", "metadata": {{"a": {written}}}}}'


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/v1/chat", {"message": "Hi", "sesion_id": "s1"}),
        ("POST", "/api/v1/approvals/a1/approve", {"argments": {}}),
        ("POST", "/api/v1/approvals/a1/deny", {"because": "no"}),
        ("PATCH", "/api/v1/experiments/e1", {"stoped": True}),
        ("POST", "/api/v1/runs/r1/calls/c1/resolve", {"action": "rerun", "resutl": 1}),
        ("POST", "/api/v1/chains", {"steps": [{"tool": "query_tasks"}], "sesion_id": "s1"}),
        ("POST", "/api/v1/chains", {"steps": [{"tool": "query_tasks", "arguments": {}}]}),
        ("POST", "/api/v1/tools/query_tasks/call", {"args": {}}),
        ("POST", "/api/v1/tasks", {"title": "x", "colour": "red"}),
        ("PATCH", "/api/v1/tasks/t1", {"colour": "red"}),
        ("POST", "/api/v1/tasks/t1/attachments", {"reference": "https://example.com", "colour": "red"}),
        ("PATCH", "/api/v1/attachments/a1", {"colour": "red"}),
    ],
)
async def test_a_field_that_nobody_knows_is_refused(tmp_path: Path, method: str, path: str, body: Any) -> None:
    async with served(tmp_path, model=ScriptedModel([])) as server, server.client() as client:
        response = await client.request(method, path, json=body)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_ERROR")
        [field] = response.json()["fields"]
        assert field["message"] == "Extra inputs are not permitted"


async def test_front_ends_of_openai_may_send_fields_of_their_own(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as server, server.client() as client:
        body = {"model": "assistant", "messages": [{**MILK, "name": "ada"}], "temperature": 0, "user": "ada"}
        assert (await client.post("/v1/chat/completions", json=body)).status_code == 200


async def test_every_body_must_be_json_and_say_so(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([])) as server, server.client() as client:
        document = (await client.get("/openapi.json")).json()
        with_body = [
            (method, path.replace("{", "").replace("}", ""))
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if "requestBody" in operation
        ]
        assert len(with_body) >= 12
        for method, path in with_body:
            broken = await client.request(method, path, content=b'{"title": ', headers=JSON)
            assert broken.status_code == (422 if path.startswith("/api/") else 400)
            if path.startswith("/api/"):
                assert [item["field"] for item in broken.json()["fields"]] == ["body"]
            form = await client.request(method, path, data={"title": "x"})
            assert (form.status_code, "application/json" in form.text) == (415, True)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"title": "x", "tags": ["a", "b\\ud800"]}', "tags.1"),
        ('{"title": "x\\udfff"}', "title"),
        ('{"title": "x", "metadata": {"\\ud800": 1}}', "metadata"),
        (with_value("[NaN]"), "metadata.a.0"),
        (with_value("1e999"), "metadata.a"),
        (with_value("-Infinity"), "metadata.a"),
        (with_value(MANY_DIGITS), "body"),
        (with_value("[" * 300 + "]" * 300), "metadata"),
        (with_value("[" * 100_000 + "]" * 100_000), "body"),
    ],
)
async def test_what_could_not_be_kept_as_it_is_is_refused_by_its_place(tmp_path: Path, text: str, field: str) -> None:
    async with served(tmp_path) as server, server.client() as client:
        response = await client.post("/api/v1/tasks", content=text, headers=JSON)
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_ERROR")
        assert [item["field"] for item in response.json()["fields"]] == [field]
        assert (await client.get("/api/v1/tasks")).json()["total"] == 0


@pytest.mark.parametrize("content", ['"a\\ud800"', '[{"type": "text", "text": "\\udc00"}]'])
async def test_half_a_surrogate_pair_is_nothing_to_ask_an_agent(tmp_path: Path, content: str) -> None:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as server, server.client() as client:
        text = f'{{"model": "assistant", "messages": [{{"role": "user", "content": {content}}}]}}'
        response = await client.post("/v1/chat/completions", content=text, headers=JSON)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "VALIDATION_ERROR")
        assert "messages.0.content" in response.json()["error"]["message"]
        assert (await client.get("/api/v1/runs")).json()["runs"] == []


@pytest.mark.parametrize(("header", "value"), [("Host", "["), ("Host", "[::1"), ("Origin", "http://[")])
async def test_an_address_that_is_none_is_refused_like_a_foreign_one(tmp_path: Path, header: str, value: str) -> None:
    async with served(tmp_path) as server, server.client() as client:
        response = await client.get("/api/v1/tasks", headers={header: value})
        assert (response.status_code, response.json()["code"]) == (403, f"{header.upper()}_NOT_ALLOWED")


async def test_a_number_longer_than_any_is_no_pull_request_and_no_step(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        url = f"https://github.com/a/b/pull/{MANY_DIGITS}"
        made = await client.post("/api/v1/tasks", json={"title": "x", "description": url})
        assert (made.status_code, made.json()["attachments"]) == (201, [])
        short = await client.post("/api/v1/tasks", json={"title": "https://github.com/a/b/pull/" + "9" * 200})
        assert short.json()["attachments"][0]["metadata"] == {"owner": "a", "repository": "b"}
        steps = [{"tool": "query_tasks", "args": {"text": f"${MANY_DIGITS}"}}]
        refused = await client.post("/api/v1/chains", json={"steps": steps})
        assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_CHAIN")
        assert len(refused.json()["error"]) < 400


async def test_a_result_that_no_journal_can_hold_settles_nothing(tmp_path: Path) -> None:
    model = ScriptedModel([call("update_task", task_id="milk", status="completed"), say("Done.")])
    async with served(tmp_path, model=model) as server, server.client() as client:
        run_id = await died_in_call(server, client)
        deep: Any = 1
        for _ in range(300):
            deep = [deep]
        path = f"/api/v1/runs/{run_id}/calls/c1/resolve"
        refused = await client.post(path, json={"action": "done", "result": deep})
        assert (refused.status_code, refused.json()["fields"][0]["field"]) == (422, "result")
        assert (await client.get(f"/api/v1/runs/{run_id}")).json()["run"]["status"] == "awaiting_resolution"
        async with asyncio.timeout(WAIT_SECONDS):
            assert (await client.post(path, json={"action": "done", "result": 1})).status_code == 200


async def test_edited_arguments_that_do_not_fit_the_tool_are_refused_by_their_field(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        asked = await client.post("/api/v1/tools/delete_task/call", json={"arguments": {"task_id": "milk"}})
        [approval] = asked.json()["approvals"]
        path = f"/api/v1/approvals/{approval['id']}/approve"
        refused = await client.post(path, json={"arguments": {"colour": "red"}})
        assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_ARGUMENTS")
        assert [item["field"] for item in refused.json()["fields"]] == ["arguments"]
        assert (await client.get(f"/api/v1/approvals/{approval['id']}")).json()["status"] == "pending"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/v1/tasks?due_before=tomorrow", "due_before"),
        ("/api/v1/tasks?due_after=tomorrow", "due_after"),
        ("/api/v1/search?q=%20", "q"),
        ("/api/v1/search?q=%00", "q"),
        ("/api/v1/search?q=%20&mode=semantic", "q"),
    ],
)
async def test_a_wrong_parameter_is_refused_by_its_own_name(tmp_path: Path, path: str, field: str) -> None:
    async with served(tmp_path) as server, server.client() as client:
        response = await client.get(path)
        assert (response.status_code, response.json()["fields"][0]["field"]) == (422, field)


async def test_a_method_that_is_not_allowed_is_told_all_that_are(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        refused = await client.put("/api/v1/tasks")
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, POST")
        other = await client.put("/api/v1/tasks/task_1")
        assert (other.status_code, other.headers["Allow"]) == (405, "GET, PATCH, DELETE")


async def test_methods_that_nobody_knows_are_counted_as_one(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        for method in ("BREW", "WHEN"):
            await client.request(method, "/api/v1/tasks")
        metrics = (await client.get("/metrics")).text
        assert ("BREW" in metrics, "WHEN" in metrics, 'method="OTHER"' in metrics) == (False, False, True)


async def test_bodies_have_examples_in_the_openapi_document(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
    for schema, field in (("Resolution", "result"), ("AttachmentChange", "title"), ("CompletionRequest", "messages")):
        assert schemas[schema]["properties"][field]["examples"], schema


def test_a_whole_body_is_json_that_reads_back_the_same() -> None:
    value = {"a": [1, 2.5, "ü", None, True, {"b": "\U0001f600"}]}
    assert read_json(json.dumps(value).encode()) == value
    assert read_json(b'"\\ud83d\\ude00"') == "\U0001f600"


async def test_small_answers_do_not_wait_for_more_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    whole = H11Protocol.connection_made

    def looked_at(self: H11Protocol, transport: Any) -> None:
        found.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        whole(self, transport)

    monkeypatch.setattr(H11Protocol, "connection_made", looked_at)
    async with served(tmp_path) as server, server.client() as client:
        await client.get("/healthz")
    assert len(found) == 1
    assert found[0] != 0


async def test_problem_details_stand_beside_our_own_shape(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        plain = await client.get("/api/v1/tasks/nobody")
        assert plain.headers["content-type"] == "application/json"
        accepted = {"Accept": "application/problem+json, application/json"}
        for path, status in (("/api/v1/tasks/nobody", 404), ("/api/v1/runs?limit=0", 422), ("/nowhere", 404)):
            found = await client.get(path, headers=accepted)
            assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json")
            told = found.json()
            assert (told["status"], told["detail"]) == (status, told["error"])
            assert told["type"] == f"urn:journeyman:problem:{told['code']}"
            assert told["title"] in ("Not Found", "Unprocessable Entity", "Unprocessable Content")
            assert told["instance"].endswith(found.headers["x-request-id"])

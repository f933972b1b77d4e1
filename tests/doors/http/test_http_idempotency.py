"""Requests that come twice, and requests that wait behind others: nothing happens twice, nothing hangs silently."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest

from journeyman import ModelError, Principal
from journeyman.core.errors import ErrorCategory
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import chat, events_of, served
from tests.doors.http.test_http_approvals import died_in_call
from tests.waiting import WAIT_SECONDS

MILK: list[Any] = [call("create_task", title="Buy milk"), say("Noted: milk.")]
DELETES: list[Any] = [call("delete_task", task_id="milk"), say("Gone.")]
ONE_ANSWER = {"Accept": "application/json"}
ASKED: dict[str, Any] = {"model": "assistant", "messages": [{"role": "user", "content": "Remind me to buy milk"}]}


@pytest.mark.parametrize("category", [ErrorCategory.RATE_LIMIT, ErrorCategory.TIMEOUT, ErrorCategory.NETWORK])
async def test_the_openai_client_does_not_repeat_what_a_failed_run_has_done(
    tmp_path: Path, category: ErrorCategory
) -> None:
    broken = ModelError("MODEL_FAILED", "no more", category=category)
    model = ScriptedModel([call("create_task", title="Buy milk"), broken])
    async with served(tmp_path, model=model) as server:

        def whole() -> None:
            with openai.OpenAI(
                base_url=f"{server.url}/v1", api_key="ignored", max_retries=2, timeout=WAIT_SECONDS
            ) as client:
                client.chat.completions.create(**ASKED)

        with pytest.raises(openai.APIStatusError, match="no more") as caught:
            await asyncio.to_thread(whole)
        assert caught.value.response.headers["x-should-retry"] == "false"
        assert (await server.service.tasks.query()).total == 1
        [run] = await server.service.store.runs.list()
        assert caught.value.response.headers["x-run-id"] == run.id


async def test_a_completion_with_the_same_key_is_answered_by_the_same_run(tmp_path: Path) -> None:
    tokens = Tokens({"ada-token-0123456789": Principal("ada"), "bob-token-0123456789": Principal("bob")})
    async with served(tmp_path, model=ScriptedModel(MILK), tokens=tokens) as server, server.client() as client:
        ada = {"Authorization": "Bearer ada-token-0123456789", "Idempotency-Key": "order 66/ü".encode().hex()}
        first = (await client.post("/v1/chat/completions", json=ASKED, headers=ada)).json()
        again = (await client.post("/v1/chat/completions", json=ASKED, headers=ada)).json()
        assert (again["id"], again["choices"]) == (first["id"], first["choices"])
        async with client.stream("POST", "/v1/chat/completions", json={**ASKED, "stream": True}, headers=ada) as answer:
            streamed = [event.data async for event in events_of(answer)]
        assert first["id"] in streamed[0]
        assert (await server.service.tasks.query()).total == 1
        other: dict[str, Any] = {**ASKED, "messages": [{"role": "user", "content": "Something else"}]}
        clash = await client.post("/v1/chat/completions", json=other, headers=ada)
        assert (clash.status_code, clash.headers["x-should-retry"]) == (409, "false")
        bob = {**ada, "Authorization": "Bearer bob-token-0123456789"}
        assert (await client.post("/v1/chat/completions", json=ASKED, headers=bob)).json()["id"] != first["id"]


async def test_a_stream_that_is_asked_for_again_tells_what_was_decided_since(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(DELETES)) as server, server.client() as client:
        await client.post("/api/v1/tasks", json={"title": "Buy milk"})
        headers = {"Idempotency-Key": "k"}
        first = await client.post("/v1/chat/completions", json=ASKED, headers=headers)
        assert "waits for a person" in first.text
        [approval] = (await client.get("/api/v1/approvals")).json()["approvals"]
        await client.post(f"/api/v1/approvals/{approval['id']}/approve", json={})
        handle = await server.service.app.handle(first.headers["X-Run-ID"])
        assert (await handle.result()).status == "completed"
        again = await client.post("/v1/chat/completions", json={**ASKED, "stream": True}, headers=headers)
        assert ("waits for a person" in again.text, "Gone." in again.text) == (False, True)


async def test_a_chat_with_the_same_key_is_answered_by_the_same_run(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server, server.client() as client:
        headers = {**ONE_ANSWER, "Idempotency-Key": "k"}
        answers = await asyncio.gather(
            *(client.post("/api/v1/chat", json={"message": "Milk"}, headers=headers) for _ in range(5))
        )
        bodies = [answer.json() for answer in answers]
        assert {(body["run_id"], body["session_id"], body["answer"]) for body in bodies} == {
            (bodies[0]["run_id"], bodies[0]["session_id"], "Noted: milk.")
        }
        assert (await server.service.tasks.query()).total == 1
        clash = await client.post("/api/v1/chat", json={"message": "Bread"}, headers=headers)
        assert (clash.status_code, clash.json()["code"]) == (409, "RUN_EXISTS")


async def test_a_chat_that_comes_back_to_its_session_goes_on_with_its_run(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server, server.client() as client:
        whole = await chat(client, "Milk", session_id="s1")
        body = {"message": "Milk", "session_id": "s1"}
        async with client.stream("POST", "/api/v1/chat", json=body, headers={"Last-Event-ID": "4"}) as response:
            rest = [event async for event in events_of(response)]
        facts = [event for event in whole if event.id is not None]
        assert [event for event in rest if event.id is not None] == facts[4:]
        assert len(await server.service.store.runs.list()) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"message": "Milk"},
        {"message": "Bread", "session_id": "s1"},
        {"message": "Milk", "session_id": "s2"},
        {"message": "Milk", "session_id": "s1", "run_id": "not-begun-yet"},
    ],
)
async def test_a_last_event_of_nothing_that_was_begun_starts_nothing(tmp_path: Path, body: dict[str, str]) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server, server.client() as client:
        await chat(client, "Milk", session_id="s1")
        refused = await client.post("/api/v1/chat", json=body, headers={"Last-Event-ID": "4"})
        assert (refused.status_code, refused.json()["code"]) == (422, "NOTHING_TO_RESUME")
        assert "/api/v1/runs/{id}/events" in refused.json()["recover_action"]
        assert len(await server.service.store.runs.list()) == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/v1/chat", {"message": "And bread"}, 200),
        ("/api/v1/chains", {"steps": [{"tool": "query_tasks"}]}, 202),
        ("/api/v1/tools/query_tasks/call", {}, 202),
    ],
)
async def test_what_waits_behind_a_question_to_a_person_says_so_at_once(
    tmp_path: Path, path: str, body: dict[str, Any], status: int
) -> None:
    async with served(tmp_path, model=ScriptedModel(DELETES)) as server, server.client() as client:
        await client.post("/api/v1/tasks", json={"title": "Buy milk"})
        said = {"message": "Delete", "session_id": "s1"}
        first = (await client.post("/api/v1/chat", json=said, headers=ONE_ANSWER)).json()
        behind = await client.post(path, json={**body, "session_id": "s1"}, headers=ONE_ANSWER)
        told = behind.json()
        assert (behind.status_code, told["status"], told["blocked_by"]) == (status, "queued", first["run_id"])
        assert told["approvals"] == first["approvals"]
        await client.post(f"/api/v1/approvals/{first['approvals'][0]['id']}/deny", json={})
        handle = await server.service.app.handle(told["run_id"])
        async with asyncio.timeout(WAIT_SECONDS):
            assert await handle.wait() in ("completed", "awaiting_approval")


async def test_what_comes_behind_a_run_that_ends_by_itself_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")])) as server, server.client() as client:
        said = {"message": "Hi", "session_id": "s1"}
        answers = await asyncio.gather(*(client.post("/api/v1/chat", json=said, headers=ONE_ANSWER) for _ in range(4)))
        assert [answer.json()["status"] for answer in answers] == ["completed"] * 4


async def test_a_run_that_awaits_a_resolution_names_the_calls(tmp_path: Path) -> None:
    model = ScriptedModel([call("update_task", task_id="milk", status="completed"), say("Done.")])
    async with served(tmp_path, model=model) as server, server.client() as client:
        await died_in_call(server, client, session_id="s1")
        again = {"message": "Mark it", "session_id": "s1", "run_id": "run-unknown"}
        told = (await client.post("/api/v1/chat", json=again, headers=ONE_ANSWER)).json()
        assert (told["status"], [item["call_id"] for item in told["unknown"]]) == ("awaiting_resolution", ["c1"])
        behind = {"message": "More", "session_id": "s1"}
        told = (await client.post("/api/v1/chat", json=behind, headers=ONE_ANSWER)).json()
        assert (told["status"], told["blocked_by"]) == ("queued", "run-unknown")
        assert [item["call_id"] for item in told["unknown"]] == ["c1"]


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 0, 1)])
async def test_attempts_of_one_request_that_arrive_at_once_are_one_run(tmp_path: Path, order: tuple[int, ...]) -> None:
    async with served(tmp_path, model=ScriptedModel(MILK)) as server, server.client() as client:

        async def attempt(number: int) -> str:
            headers = {"X-Stainless-Retry-Count": str(number)}
            return str((await client.post("/v1/chat/completions", json=ASKED, headers=headers)).json()["id"])

        assert len(set(await asyncio.gather(*map(attempt, order)))) == 1
        assert (await server.service.tasks.query()).total == 1


async def test_the_same_asked_anew_is_another_request(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([*MILK, *MILK])) as server, server.client() as client:
        headers = {"X-Stainless-Retry-Count": "0"}
        posts = [client.post("/v1/chat/completions", json=ASKED, headers=headers) for _ in range(2)]
        assert len({answer.json()["id"] for answer in await asyncio.gather(*posts)}) == 2


@pytest.mark.parametrize("chain", [False, True])
async def test_a_call_with_the_same_key_is_made_once(tmp_path: Path, chain: bool) -> None:
    def asked(title: str) -> tuple[str, dict[str, Any]]:
        if chain:
            return "/api/v1/chains", {"steps": [{"tool": "create_task", "args": {"title": title}}]}
        return "/api/v1/tools/create_task/call", {"arguments": {"title": title}}

    async with served(tmp_path) as server, server.client(headers={"Idempotency-Key": "k1"}) as client:
        path, body = asked("Buy milk")
        posts = [client.post(path, json=body) for _ in range(3)]
        first, *others = [answer.json() for answer in await asyncio.gather(*posts)]
        others.append((await client.post(path, json=body)).json())
        assert all(other == first for other in others)
        assert (await server.service.tasks.query()).total == 1
        clash = await client.post(path, json=asked("Buy bread")[1])
        assert (clash.status_code, clash.json()["code"]) == (409, "RUN_EXISTS")
        assert (await client.post(path, json=body, headers={"Idempotency-Key": "k2"})).json() != first

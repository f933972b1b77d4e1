"""What belongs to one principal is nobody else's: sessions begun at one moment, names of runs, keys, pages, counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman import Principal
from journeyman.core.data import digest
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import Running, served

NAMES = ("ada", "bob", "reader")
TOKENS = Tokens(
    {
        "ada-token-0123456789": Principal("ada"),
        "bob-token-0123456789": Principal("bob"),
        "reader-token-0123456789": Principal("reader", permissions={"runs:read", "approvals:decide"}),
    }
)
ONE_ANSWER = {"Accept": "application/json"}
HELLO: list[Any] = [say("Hello.")]
DELETES: list[Any] = [call("delete_task", task_id="milk"), say("That is settled.")]
ROUNDS = 20


@asynccontextmanager
async def clients(
    tmp_path: Path, script: list[Any], *, store: str | None = None
) -> AsyncIterator[tuple[Running, dict[str, httpx.AsyncClient]]]:
    parts: dict[str, Any] = {} if store is None else {"store": store}
    async with served(tmp_path, model=ScriptedModel(script), tokens=TOKENS, **parts) as server:
        opened = {name: server.client(headers={"Authorization": f"Bearer {name}-token-0123456789"}) for name in NAMES}
        try:
            yield server, opened
        finally:
            for client in opened.values():
                await client.aclose()


async def ask(client: httpx.AsyncClient, message: str, **body: Any) -> httpx.Response:
    headers = {**ONE_ANSWER, **body.pop("headers", {})}
    return await client.post("/api/v1/chat", json={"message": message, **body}, headers=headers)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
async def test_of_two_who_begin_one_session_at_once_one_is_let_in(
    tmp_path: Path, request: pytest.FixtureRequest, database: str
) -> None:
    store = request.getfixturevalue("postgres_url") if database == "postgresql" else None
    async with clients(tmp_path, HELLO, store=store) as (_, by):
        for number in range(ROUNDS):
            session = f"s-{number}"
            ada, bob = await asyncio.gather(
                ask(by["ada"], "I am Ada", session_id=session),
                by["bob"].post("/api/v1/tools/query_tasks/call", json={"session_id": session}, headers=ONE_ANSWER)
                if number % 2
                else ask(by["bob"], "I am Bob", session_id=session),
            )
            assert sorted((ada.status_code, bob.status_code)) == [200, 404]
            refused = ada if ada.status_code == 404 else bob
            assert refused.json()["code"] == "SESSION_NOT_FOUND"
            seen = [(await by[name].get(f"/api/v1/chat/history/{session}")).status_code for name in ("ada", "bob")]
            assert seen == [ada.status_code, bob.status_code]


async def test_each_has_a_run_of_their_own_by_a_name_that_both_use(tmp_path: Path) -> None:
    async with clients(tmp_path, HELLO) as (server, by):
        first = (await ask(by["ada"], "Ada's secret", run_id="order-0001")).json()
        second = (await ask(by["bob"], "Something else", run_id="order-0001")).json()
        assert second["status"] == "completed"
        assert first["run_id"] != second["run_id"]
        assert len(await server.service.store.runs.list()) == 2
        for name, own in (("ada", first), ("bob", second)):
            again = await ask(by[name], "Ada's secret" if name == "ada" else "Something else", run_id="order-0001")
            assert again.json()["run_id"] == own["run_id"]
            shown = (await by[name].get("/api/v1/runs/order-0001")).json()
            assert (shown["run"]["id"], shown["run"]["principal"]) == (own["run_id"], name)
            events = await by[name].get("/api/v1/runs/order-0001/events", headers=ONE_ANSWER)
            assert {event["run_id"] for event in events.json()["events"]} == {own["run_id"]}
            clash = await ask(by[name], "Another question", run_id="order-0001")
            assert (clash.status_code, clash.json()["code"]) == (409, "RUN_EXISTS")
        assert (await by["bob"].get(f"/api/v1/runs/{first['run_id']}")).status_code == 404
        by_id = await ask(by["ada"], "Ada's secret", run_id=first["run_id"])
        assert by_id.json()["run_id"] == first["run_id"], "its id is as good as its name"


@pytest.mark.parametrize("path", ["/api/v1/chat", "/v1/chat/completions"])
async def test_nobody_takes_another_ones_idempotency_key(tmp_path: Path, path: str) -> None:
    asked: dict[str, Any] = {"message": "Hi"}
    if path.startswith("/v1"):
        asked = {"model": "assistant", "messages": [{"role": "user", "content": "Hi"}]}
    door = "chat" if path.endswith("/chat") else "completions"
    async with clients(tmp_path, HELLO) as (server, by):
        headers = {**ONE_ANSWER, "Idempotency-Key": "k"}
        # The id that ada's key will stand for is no secret; who names a run so has a run of their own all the same.
        taken = f"run_{digest('idempotency', door, 'ada', 'k')}"
        assert (await ask(by["bob"], "Bob's words", run_id=taken)).status_code == 200
        answers = [await by[name].post(path, json=asked, headers=headers) for name in ("ada", "bob", "ada")]
        assert [answer.status_code for answer in answers] == [200] * 3
        ada, bob, again = (answer.headers["X-Run-ID"] for answer in answers)
        assert (ada == again, ada == bob) == (True, False)
        rows = {row.id: row.principal_id for row in await server.service.store.runs.list()}
        assert (rows[ada], rows[bob], len(rows)) == ("ada", "bob", 3)


async def test_names_used_at_one_moment_are_kept_apart(tmp_path: Path) -> None:
    async with clients(tmp_path, HELLO) as (server, by):
        answers = await asyncio.gather(
            *(ask(by[name], f"I am {name}", run_id="run-of-mine") for name in ("ada", "bob") * 4)
        )
        assert [answer.status_code for answer in answers] == [200] * 8
        rows = await server.service.store.runs.list()
        assert sorted(row.principal_id or "" for row in rows) == ["ada", "bob"]
        assert len(await server.service.store.conversations.list()) == 2, "and nothing is left of what came twice"


async def test_many_of_one_hide_nothing_of_another(tmp_path: Path) -> None:
    async with clients(tmp_path, DELETES) as (_, by):
        mine = (await ask(by["ada"], "Delete", session_id="ada-1")).json()
        for number in range(60):  # more than a page
            await ask(by["bob"], "Delete", session_id=f"bob-{number}")
        for path, key in (("runs", "runs"), ("approvals", "approvals"), ("sessions", "sessions")):
            page = (await by["ada"].get(f"/api/v1/{path}?limit=1")).json()[key]
            assert len(page) == 1
            assert mine["run_id"] in (page[0].get("run_id"), page[0]["id"]) or page[0]["id"] == "ada-1"
        counted = {name: (await by[name].get("/metrics")).text for name in NAMES}
        assert "journeyman_approvals_pending 1\n" in counted["ada"]
        assert "journeyman_approvals_pending 60\n" in counted["bob"]
        assert "journeyman_approvals_pending 61\n" in counted["reader"]


async def test_to_come_back_to_a_session_is_to_come_back_to_ones_own_run(tmp_path: Path) -> None:
    tokens = Tokens(
        {
            "ada-token-0123456789": Principal("ada"),
            "helper-token-0123456789": Principal("helper", permissions={"runs:write"}),
        }
    )
    async with served(tmp_path, model=ScriptedModel(HELLO), tokens=tokens) as server:
        ada, helper = (
            server.client(headers={"Authorization": f"Bearer {name}-token-0123456789"}) for name in ("ada", "helper")
        )
        async with ada, helper:
            first = (await ask(ada, "Hi", session_id="s")).json()
            assert (await ask(helper, "Hi", session_id="s")).status_code == 200
            again = await ask(ada, "Hi", session_id="s", headers={"Last-Event-ID": "1"})
            assert again.json()["run_id"] == first["run_id"]

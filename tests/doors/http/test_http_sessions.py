"""Conversations over HTTP: titled, searched, paged, renamed and deleted by their owner, and who the caller is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from journeyman.core.policy import Principal
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import chat, served

TOKENS = Tokens(
    {"a-token-for-ada-1": Principal("ada", permissions={"audit:read"}), "a-token-for-bob-1": Principal("bob")}
)
ADA, BOB = ({"Authorization": f"Bearer a-token-for-{name}-1"} for name in ("ada", "bob"))


async def titles(client: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get("/api/v1/sessions", params=query)
    assert answer.status_code == 200, answer.text
    return [session["title"] for session in answer.json()["sessions"]]


async def test_conversations_are_titled_by_how_they_began_and_found_by_what_was_said(tmp_path: Path) -> None:
    said = {"W": "Jupiter is the ÄUSSERSTE answer.", "A": "100% sure", "c": "fine"}
    model = ScriptedModel([lambda request: say(said[request.messages[-1].content.strip()[0]])])
    async with served(tmp_path, model=model) as server, server.client() as client:
        await chat(client, "  Which planet\n is largest?", session_id="s1")
        await chat(client, "Are you sure?", session_id="s2")
        await chat(client, "content role user", session_id="s3")
        assert await titles(client) == ["content role user", "Are you sure?", "Which planet is largest?"]
        assert await titles(client, q="PLANET largest") == ["Which planet is largest?"]
        assert await titles(client, q="jupiter äusserste") == ["Which planet is largest?"]
        assert await titles(client, q="100%") == ["Are you sure?"]
        assert await titles(client, q="content") == ["content role user"]
        assert await titles(client, q="planet sure") == []
        assert (await client.get("/api/v1/sessions", params={"q": "a\0b"})).status_code == 422


async def test_every_conversation_is_reached_by_paging_although_some_are_used_meanwhile(tmp_path: Path) -> None:
    model = ScriptedModel([say("ok")] * 8)
    async with served(tmp_path, model=model) as server, server.client() as client:
        for number in range(7):
            await chat(client, f"Number {number}", session_id=f"s{number}")
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = (await client.get("/api/v1/sessions", params={"limit": 3, **cursor})).json()
            seen += [session["id"] for session in page["sessions"]]
            if len(seen) == 3:
                await chat(client, "Again", session_id="s0")  # now the newest
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert seen == ["s6", "s5", "s4", "s3", "s2", "s1"]
        assert await titles(client, limit=1) == ["Number 0"]
        for wrong in ("x", "1.0", "nan~s1", "inf~s1", "1~", "~s1", "1~a\0"):
            assert (await client.get("/api/v1/sessions", params={"cursor": wrong})).status_code == 422, wrong


async def test_a_conversation_is_renamed_and_deleted_by_its_owner_alone(tmp_path: Path) -> None:
    model = ScriptedModel([say("ok")] * 2)
    async with (
        served(tmp_path, model=model, tokens=TOKENS) as server,
        server.client(headers=ADA) as ada,
        server.client(headers=BOB) as bob,
    ):
        await chat(ada, "Secret plans", session_id="s1", run_id="my-own-run-1")
        for method, body in (("GET", None), ("PATCH", {"title": "Mine"}), ("DELETE", None)):
            refused = await bob.request(method, "/api/v1/sessions/s1", json=body)
            assert (refused.status_code, refused.json()["code"]) == (404, "SESSION_NOT_FOUND"), method
        renamed = await ada.patch("/api/v1/sessions/s1", json={"title": "  World\n peace "})
        assert renamed.json()["title"] == "World peace"
        assert await titles(ada, q="world PEACE") == ["World peace"]
        for wrong in ("", "  ", "x" * 201, "a\0b"):
            assert (await ada.patch("/api/v1/sessions/s1", json={"title": wrong})).status_code == 422, wrong

        assert (await ada.delete("/api/v1/sessions/s1")).status_code == 204
        for path in ("/sessions/s1", "/chat/history/s1", "/runs/my-own-run-1", "/runs/my-own-run-1/events"):
            assert (await ada.get(f"/api/v1{path}")).status_code == 404, path
        assert await titles(ada) == []


async def test_the_caller_is_told_what_they_may_do(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=TOKENS) as server, server.client() as client:
        me = (await client.get("/api/v1/me", headers=ADA)).json()
        assert (me["id"], me["permissions"]) == ("ada", ["audit:read"])
        assert (me["can_decide"], me["can_read_audit"], me["message_limit"]) == (False, True, 2_000)
        assert (me["can_change_tasks"], me["can_change_experiments"]) == (False, False)
        assert (await client.get("/api/v1/me")).status_code == 401
    async with served(tmp_path) as server, server.client() as client:
        me = (await client.get("/api/v1/me")).json()
        assert all(value is True for name, value in me.items() if name.startswith("can_"))


async def test_agents_say_which_model_answers_and_how_one_could_begin(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([say("ok")])) as server, server.client() as client:
        [agent] = (await client.get("/api/v1/agents")).json()["agents"]
        assert (agent["model"], agent["model_name"]) == ("auto", ScriptedModel([]).name)
        assert len(agent["starters"]) >= 2


async def test_a_model_without_a_name_is_called_as_its_agent_calls_it(tmp_path: Path) -> None:
    class Nameless:
        async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
            return say("ok")

    async with served(tmp_path, model=Nameless()) as server, server.client() as client:
        [agent] = (await client.get("/api/v1/agents")).json()["agents"]
        assert agent["model_name"] == "auto"

"""Lists of runs, approvals and sessions: one's own are on the first page, however much others have."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.stores.store import SqlStore
from tests.doors.http.serving import served
from tests.stores.samples import order, question

ADA, GRACE = "ada-token-0123456789", "grace-token-0123456789"
TOKENS = Tokens({ADA: Principal("ada"), GRACE: Principal("grace", permissions={"runs:read"})})
FOREIGN = 2_000
OWN = 5


async def fill(store: SqlStore) -> None:
    """A few of ada's, and after and before each of them many of bob's."""
    now = time.time()

    async def add(number: int, principal: str) -> None:
        name = f"{principal}-{number}"
        await store.runs.create(order(name, session=f"s-{name}", at=number, principal=principal))
        asked = question(f"a-{name}", run_id=name, principal=principal, at=number, expires_at=now + 3_600)
        await store.approvals.ask(asked)

    own = range(FOREIGN // 10, FOREIGN, FOREIGN // OWN)
    await asyncio.gather(*(add(number, "ada" if number in own else "bob") for number in range(FOREIGN + OWN)))


async def pages(client: httpx.AsyncClient, name: str, **params: Any) -> list[str]:
    """The ids of all pages, none of which may be shorter than asked for but the last."""
    found: list[str] = []
    while True:
        answer = (await client.get(f"/api/v1/{name}", params={"limit": 2, "offset": len(found), **params})).json()
        found += [item["id"] for item in answer[name]]
        if len(answer[name]) < 2:
            return found


async def test_one_s_own_are_on_the_first_page_and_pages_have_no_holes(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=TOKENS) as server:
        await fill(server.service.store)
        ada, grace = (server.client(headers={"Authorization": f"Bearer {token}"}) for token in (ADA, GRACE))
        async with ada, grace:
            own = [f"ada-{number}" for number in range(FOREIGN // 10, FOREIGN, FOREIGN // OWN)]
            for name, params, expected in (
                ("runs", {}, own[::-1]),
                ("runs", {"status": "queued"}, own[::-1]),
                ("approvals", {}, [f"a-{name}" for name in own]),
                ("approvals", {"status": "all"}, [f"a-{name}" for name in own]),
                ("sessions", {}, [f"s-{name}" for name in own[::-1]]),
            ):
                first = (await ada.get(f"/api/v1/{name}", params=params)).json()
                assert [item["id"] for item in first[name]] == expected
                assert await pages(ada, name, **params) == expected
                everybody = (
                    await grace.get(f"/api/v1/{name}", params={"limit": 200, "offset": 1_900, **params})
                ).json()
                assert len(everybody[name]) == FOREIGN + OWN - 1_900


async def test_runs_of_a_session_are_listed_by_turn(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        for run_id, at in (("first", 9.0), ("second", 1.0), ("third", 5.0)):
            await server.service.store.runs.create(order(run_id, session="s", at=at, principal="local"))
        found = (await client.get("/api/v1/runs", params={"session_id": "s"})).json()["runs"]
        assert [item["id"] for item in found] == ["third", "second", "first"]


async def test_runs_are_found_by_what_was_asked_and_when(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        for number, words in enumerate(("Refund Ada", "Refund Grace", "Buy stamps")):
            placed = order(f"r{number}", at=1_000.0 + number, principal="local", description=words)
            await server.service.store.runs.create(placed)

        async def found(**params: str) -> list[str]:
            answer = (await client.get("/api/v1/runs", params=params)).json()
            assert answer["total"] == len(answer["runs"])
            return [item["request"] for item in answer["runs"]]

        assert await found(q="refund") == ["Refund Grace", "Refund Ada"]
        assert await found(q="refund", until="1970-01-01T00:16:41Z") == ["Refund Ada"]
        assert await found(since="1970-01-01T00:16:42Z") == ["Buy stamps"]
        assert await found(agent="support", tool="pay") == []
        assert await found(outcome="not") == []
        for wrong in ({"since": "yesterday"}, {"since": "2026-01-01T00:00:00"}, {"outcome": "good"}, {"who": "ada"}):
            assert (await client.get("/api/v1/runs", params=wrong)).status_code == 422, wrong


async def test_short_lists_are_told_whole_or_in_parts(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        made = (await client.post("/api/v1/tasks", json={"title": "See https://a.example https://b.example"})).json()
        for title in ("Second", "Third"):
            await client.patch(f"/api/v1/tasks/{made['id']}", json={"title": title})
        told = (await client.post("/api/v1/tools/query_tasks/call", json={})).json()
        run = f"runs/{told['run_id']}"
        await client.post(f"/api/v1/{run}/rating", json={"rating": "good"})
        short = {
            "tools": ("tools", 2),
            "agents": ("agents", 1),
            "playbooks": ("domains", 0),
            "intents/types": ("types", 2),
            "health/tools": ("tools", 1),
            f"tasks/{made['id']}/versions": ("versions", 2),
            f"tasks/{made['id']}/attachments": ("attachments", 2),
            f"{run}/labels": ("labels", 1),
        }
        for name, (rows, least) in short.items():
            whole = (await client.get(f"/api/v1/{name}")).json()
            assert (len(whole[rows]), whole["next_after"]) == (whole["total"], None), name
            assert whole["total"] >= least, name
            if whole["total"] > 1:
                first = (await client.get(f"/api/v1/{name}", params={"limit": 1})).json()
                rest = (await client.get(f"/api/v1/{name}", params={"after": first["next_after"]})).json()
                assert first[rows] + rest[rows] == whole[rows]
                assert first["total"] == rest["total"] == whole["total"]
            assert (await client.get(f"/api/v1/{name}", params={"limit": 0})).status_code == 422
        (label,) = (await client.get(f"/api/v1/{run}/labels")).json()["labels"]
        assert label["time"].endswith("Z")
        assert all(
            step["timestamp"].endswith("Z")
            for step in (await client.get(f"/api/v1/{run}")).json()["response"]["structured_trace"]
        )

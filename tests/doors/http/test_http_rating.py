"""Rating runs over HTTP: by their owner or by permission, replaceable, harmless to repeat, audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import Running, served

TOKENS = Tokens(
    {
        "ada-token-0123456789": Principal("ada", permissions={"tasks:write", "audit:read"}),
        "bob-token-0123456789": Principal("bob"),
        "reader-token-0123456789": Principal("reader", permissions={"runs:read"}),
        "root-token-0123456789": Principal("root", permissions={"runs:read", "runs:write"}),
    }
)


def client_of(server: Running, name: str) -> httpx.AsyncClient:
    return server.client(headers={"Authorization": f"Bearer {name}-token-0123456789"})


async def asked(client: httpx.AsyncClient) -> str:
    answer = await client.post("/api/v1/chat", json={"message": "Hello"}, headers={"Accept": "application/json"})
    return str(answer.json()["run_id"])


async def rate(client: httpx.AsyncClient, run_id: str, rating: Any = "good", **body: Any) -> httpx.Response:
    return await client.post(f"/api/v1/runs/{run_id}/rating", json={"rating": rating, **body})


async def test_the_owner_rates_a_run_and_may_change_their_mind(tmp_path: Path) -> None:
    async with (
        served(tmp_path, model=ScriptedModel([say("Hello.")]), tokens=TOKENS) as server,
        client_of(server, "ada") as ada,
    ):
        run_id = await asked(ada)
        first = await rate(ada, run_id, "bad", note="rude")
        assert (first.status_code, first.json()["value"], first.json()["by"]) == (200, "bad", "ada")
        assert (await rate(ada, run_id, "good")).status_code == 200
        assert (await rate(ada, run_id, "good")).status_code == 200
        shown = (await ada.get(f"/api/v1/runs/{run_id}")).json()["response"]
        assert (shown["outcome"], shown["outcome_source"]) == ("achieved", "rating")
        [label] = (await ada.get(f"/api/v1/runs/{run_id}/labels")).json()["labels"]
        assert (label["source"], label["value"], label["note"]) == ("rating", "good", "")
        rows = (await ada.get("/api/v1/audit")).json()["rows"]
        rated = [row["details"]["value"] for row in rows if row["kind"] == "run_rated"]
        assert sorted(rated) == ["bad", "good"]


async def test_others_cannot_rate_it_without_the_permission(tmp_path: Path) -> None:
    async with served(tmp_path, model=ScriptedModel([say("Hello.")]), tokens=TOKENS) as server:
        async with client_of(server, "ada") as ada:
            run_id = await asked(ada)
        for name, code in (("bob", 404), ("reader", 403), ("root", 200)):
            async with client_of(server, name) as client:
                assert (await rate(client, run_id)).status_code == code


async def test_bad_ratings_are_refused_by_name(tmp_path: Path) -> None:
    script: list[Any] = [call("delete_task", task_id="milk"), say("Done.")]
    async with served(tmp_path, model=ScriptedModel(script), tokens=TOKENS) as server, client_of(server, "ada") as ada:
        await ada.post("/api/v1/tasks", json={"title": "Buy milk"})
        run_id = await asked(ada)
        early = await rate(ada, run_id)
        assert (early.status_code, early.json()["code"]) == (409, "RUN_NOT_ENDED")
        assert (await rate(ada, run_id, "fine")).status_code == 422
        assert (await rate(ada, run_id, note="x" * 2_001)).status_code == 422
        assert (await rate(ada, "run_none")).status_code == 404

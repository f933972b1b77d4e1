"""Memory over HTTP: each caller's own documents, kept, found, listed and forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeyman import Principal
from journeyman.doors.http import Tokens
from tests.doors.http.serving import Running, served

NAMES = ("ada", "bob", "all", "looker")
TOKENS = Tokens(
    {
        "ada-token-0123456789": Principal("ada", permissions={"memory:write"}),
        "bob-token-0123456789": Principal("bob", permissions={"memory:write"}),
        "all-token-0123456789": Principal("all", permissions={"*"}),
        "looker-token-0123456789": Principal("looker"),
    }
)
DOCUMENTS = "/api/v1/memory/documents"
SEARCH = "/api/v1/memory/search"


@asynccontextmanager
async def clients(tmp_path: Path) -> AsyncIterator[tuple[Running, dict[str, httpx.AsyncClient]]]:
    async with served(tmp_path, tokens=TOKENS) as server:
        opened = {name: server.client(headers={"Authorization": f"Bearer {name}-token-0123456789"}) for name in NAMES}
        try:
            yield server, opened
        finally:
            for client in opened.values():
                await client.aclose()


async def kept(client: httpx.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post(DOCUMENTS, json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["Location"] == f"{DOCUMENTS}/{found['id']}"
    return found


async def test_a_document_lives_from_storing_to_forgetting(tmp_path: Path) -> None:
    async with clients(tmp_path) as (server, by):
        ada = by["ada"]
        note = await kept(ada, "The dentist moved to Thursday.", metadata={"topic": "health"}, id="dentist")
        assert (note["id"], note["principal_id"]) == ("dentist", "ada")
        order = await kept(ada, "Order W-17 was sent on Monday.")
        [hit] = (await ada.get(SEARCH, params={"q": "Where is W-17?", "top_k": 1})).json()["results"]
        assert (hit["document"]["id"], hit["excerpt"]) == (order["id"], "Order W-17 was sent on Monday.")
        health = {"metadata": json.dumps({"topic": "health"})}
        page = (await ada.get(DOCUMENTS, params=health)).json()
        assert ([row["id"] for row in page["documents"]], page["total"]) == (["dentist"], 1)
        first = (await ada.get(DOCUMENTS, params={"limit": 1})).json()
        assert (len(first["documents"]), first["total"]) == (1, 2)
        later = (datetime.fromisoformat(order["created_at"]) + timedelta(seconds=1)).isoformat()
        late = (await ada.get(DOCUMENTS, params={"since": later})).json()
        assert (late["documents"], late["total"]) == ([], 0)
        await kept(ada, "The dentist moved to Friday.", id="dentist")
        assert (await ada.get(f"{DOCUMENTS}/dentist")).json()["text"] == "The dentist moved to Friday."
        assert (await ada.delete(f"{DOCUMENTS}/dentist")).status_code == 204
        gone = await ada.get(f"{DOCUMENTS}/dentist")
        assert (gone.status_code, gone.json()["code"]) == (404, "DOCUMENT_NOT_FOUND")
        assert (await ada.delete(f"{DOCUMENTS}/dentist")).status_code == 404
        left = (await ada.get(SEARCH, params={"q": "dentist"})).json()["results"]
        assert "dentist" not in [hit["document"]["id"] for hit in left]
        rows = await server.service.store.audit.list(actor="ada")
        assert [row.kind for row in rows] == ["memory_added"] * 3 + ["memory_deleted"]
        assert "Friday" not in repr(rows)


async def test_nobody_sees_or_deletes_anothers_whatever_their_permissions(tmp_path: Path) -> None:
    async with clients(tmp_path) as (_, by):
        mine = await kept(by["ada"], "the secret plan", id="plan")
        for stranger in (by["bob"], by["all"], by["looker"]):
            assert (await stranger.get(f"{DOCUMENTS}/{mine['id']}")).status_code == 404
            assert (await stranger.get(DOCUMENTS)).json()["total"] == 0
            assert (await stranger.get(SEARCH, params={"q": "secret plan"})).json()["results"] == []
        assert (await by["all"].delete(f"{DOCUMENTS}/plan")).status_code == 404
        await kept(by["bob"], "another plan", id="plan")  # which replaces nothing of hers
        assert (await by["ada"].get(f"{DOCUMENTS}/plan")).json()["text"] == "the secret plan"


async def test_changing_needs_the_permission_and_looking_does_not(tmp_path: Path) -> None:
    async with clients(tmp_path) as (_, by):
        for refused in (
            await by["looker"].post(DOCUMENTS, json={"text": "x"}),
            await by["looker"].delete(f"{DOCUMENTS}/x"),
        ):
            assert (refused.status_code, "'memory:write'" in refused.json()["error"]) == (403, True)
        assert (await by["looker"].get(DOCUMENTS)).status_code == 200
        assert (await by["looker"].get("/api/v1/me")).json()["can_change_memory"] is False


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": "  "}, "text"),
        ({"text": "x", "colour": "red"}, "colour"),
        ({"text": "x", "id": "a/b"}, "id"),
        ({"text": "x", "metadata": {"k": "v" * 30_000}}, "metadata"),
        ({"text": "x", "metadata": []}, "metadata"),
    ],
)
async def test_what_cannot_be_kept_is_refused_by_its_field(tmp_path: Path, body: Any, field: str) -> None:
    async with clients(tmp_path) as (_, by):
        answer = await by["ada"].post(DOCUMENTS, json=body)
        assert (answer.status_code, [item["field"] for item in answer.json()["fields"]]) == (422, [field])


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"q": " "}, "q"),
        ({"q": "x", "top_k": 51}, "top_k"),
        ({"q": "x", "limit": 201}, "limit"),
        ({"q": "x", "metadata": "[]"}, "metadata"),
        ({"q": "x", "metadata": "{"}, "metadata"),
    ],
)
async def test_a_search_that_cannot_be_meant_is_refused(tmp_path: Path, params: Any, field: str) -> None:
    async with clients(tmp_path) as (_, by):
        answer = await by["ada"].get(SEARCH, params=params)
        assert (answer.status_code, [item["field"] for item in answer.json()["fields"]]) == (422, [field])

"""The token of a service on this machine: a link that leaves a cookie, and no way in for a program without it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from journeyman import Principal
from journeyman.core.data import LOG_FIELDS
from journeyman.doors.http import ServeOptions, Tokens
from journeyman.doors.http.auth import read_tokens
from tests.doors.http.serving import Running, served

TOKEN = "token-of-this-machine-0123456789"
HERE = Tokens.for_this_machine(TOKEN)


def origin_of(server: Running) -> dict[str, str]:
    return {"Origin": server.url}


async def test_without_the_token_only_health_and_the_page_answer(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=HERE) as server, server.client() as client:
        for path in ("/healthz", "/readyz", "/", "/openapi.json"):
            assert (await client.get(path)).status_code == 200, path
        for path in ("/api/v1/approvals", "/api/v1/tasks", "/v1/models", "/metrics"):
            assert (await client.get(path)).status_code == 401, path
        for path in ("/api/v1/approvals/a/approve", "/api/v1/runs/r/calls/c/resolve", "/api/v1/chat"):
            assert (await client.post(path, json={})).status_code == 401, path
        with_it = await client.get("/api/v1/approvals", headers={"Authorization": f"Bearer {TOKEN}"})
        assert with_it.status_code == 200


async def test_the_link_leaves_a_cookie_and_no_token_in_the_address(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=HERE) as server, server.client() as client:
        code = HERE.code_for(TOKEN)
        answer = await client.get("/", params={"code": code})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
        cookie = answer.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
        assert server.url.rpartition(":")[2] in cookie.partition("=")[0]  # services on other ports have their own
        assert (await client.get("/api/v1/approvals")).status_code == 200
        made = await client.post("/api/v1/tasks", json={"title": "Buy milk"}, headers=origin_of(server))
        assert made.status_code == 201
        assert code not in cookie
        async with server.client() as another:
            assert "set-cookie" not in (await another.get("/", params={"code": code})).headers  # it works once


async def test_a_link_on_another_page_does_not_change_who_is_signed_in(tmp_path: Path) -> None:
    tokens = Tokens({"ada-token-0123456789": Principal("ada"), "eve-token-0123456789": Principal("eve")})
    async with served(tmp_path, tokens=tokens) as server, server.client() as client:
        await client.get("/", params={"code": tokens.code_for("ada-token-0123456789")})
        answer = await client.get(
            "/", params={"code": tokens.code_for("eve-token-0123456789")}, headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert "set-cookie" not in answer.headers
        assert (await client.get("/api/v1/me")).json()["id"] == "ada"


async def test_spans_of_the_framework_carry_no_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    async with served(tmp_path, tokens=HERE) as server, server.client() as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/api/v1/tasks", params={"q": "private words"}, headers=headers)).status_code == 200
    assert spans.get_finished_spans()
    assert all("private" not in str(dict(span.attributes or {})) for span in spans.get_finished_spans())


async def test_a_wrong_link_leaves_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=HERE) as server, server.client() as client:
        answer = await client.get("/", params={"code": TOKEN})
        assert (answer.status_code, "set-cookie" in answer.headers) == (303, False)
        assert (await client.get("/api/v1/approvals")).status_code == 401


@pytest.mark.parametrize("origin", [None, "http://127.0.0.1:1", "https://evil.example", "null"])
async def test_a_write_by_cookie_must_say_that_it_comes_from_the_page(tmp_path: Path, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    async with served(tmp_path, tokens=HERE) as server, server.client() as client:
        await client.get("/", params={"code": HERE.code_for(TOKEN)})
        refused = await client.post("/api/v1/tasks", json={"title": "Buy milk"}, headers=headers)
        assert refused.status_code in (401, 403)
        assert (await client.get("/api/v1/tasks")).json()["tasks"] == []


async def test_another_name_for_this_machine_is_refused_with_the_token_too(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=HERE) as server, server.client() as client:
        headers = {"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}
        assert (await client.get("/api/v1/tasks", headers=headers)).status_code == 403


async def test_the_link_works_for_tokens_of_a_file_and_their_principals(tmp_path: Path) -> None:
    tokens = Tokens({"ada;token=0123,456": Principal("ada", permissions={"runs:read"})})
    async with served(tmp_path, tokens=tokens) as server, server.client() as client:
        assert (await client.get("/", params={"code": tokens.code_for("ada;token=0123,456")})).status_code == 303
        assert (await client.get("/api/v1/runs")).status_code == 200
        assert (await client.get("/api/v1/audit")).status_code == 403


async def test_no_token_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with served(tmp_path, tokens=HERE) as server, server.client() as client:
            await client.get("/", params={"code": HERE.code_for(TOKEN)})
            await client.get("/api/v1/approvals")
            await client.get("/api/v1/approvals", headers={"Authorization": f"Bearer {TOKEN}"})
    ours = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert ours
    assert all(TOKEN not in f"{record.getMessage()} {getattr(record, LOG_FIELDS, '')}" for record in ours)


def test_a_principal_is_who_the_tokens_say_by_now(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(
        '{"ada-token-0123456789": {"id": "ada", "permissions": ["a:read"]},'
        ' "ada-other-0123456789": {"id": "ada", "permissions": ["b:write"]}}'
    )
    tokens = read_tokens(file)
    now = tokens.now(Principal("ada", permissions={"*"}))
    assert now == Principal("ada", permissions={"a:read", "b:write"})
    assert tokens.now(Principal("mallory", permissions={"*"})) is None


async def test_guessing_tokens_by_link_is_slowed_down(tmp_path: Path) -> None:
    options = ServeOptions(requests_per_minute=3)
    async with served(tmp_path, tokens=HERE, options=options) as server, server.client() as client:
        found = [(await client.get("/", params={"code": f"guess-{n}"})).status_code for n in range(6)]
    assert 429 in found

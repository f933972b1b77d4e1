"""What stands before every route: tokens, origins, sizes, rates, request ids, one shape of errors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from journeyman import ConfigurationError, Principal
from journeyman.doors.http import ServeOptions, Tokens, read_tokens, serve
from tests.doors.http.serving import served

TOKEN = "a-token-of-sufficient-length"
TOKENS = Tokens({TOKEN: Principal("ada")})
GUARDED = ["/api/v1/tasks", "/api/v1/tools", "/api/v1/runs", "/v1/models", "/metrics", "/api/v1/none"]


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize(
    "header", [None, "Bearer wrong-token-of-some-length", "Basic YTpi", "Bearer", f"bearer {TOKEN}x", TOKEN]
)
async def test_without_a_known_token_nothing_is_answered(tmp_path: Path, path: str, header: str | None) -> None:
    async with served(tmp_path, tokens=TOKENS) as server, server.client() as client:
        response = await client.get(path, headers={"Authorization": header} if header else {})
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert "UNAUTHENTICATED" in response.text


async def test_a_known_token_is_let_in_and_health_needs_none(tmp_path: Path) -> None:
    async with served(tmp_path, tokens=TOKENS) as server, server.client() as client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        statuses = [(await client.get(path, headers=headers)).status_code for path in GUARDED]
        assert statuses == [200, 200, 200, 200, 200, 404]
        assert [(await client.get(path)).status_code for path in ("/healthz", "/readyz", "/openapi.json")] == [200] * 3


async def test_without_tokens_any_bearer_token_is_ignored(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        response = await client.get("/api/v1/tasks", headers={"Authorization": "Bearer whatever"})
        assert response.status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "example.com", "::"])
async def test_a_service_others_can_reach_needs_tokens(tmp_path: Path, host: str) -> None:
    async with served(tmp_path) as server:
        with pytest.raises(ConfigurationError, match="needs tokens"):
            await serve(server.service, host=host, port=0)


async def test_a_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        with pytest.raises(ConfigurationError, match="cannot listen"):
            await serve(server.service, port=int(server.url.rpartition(":")[2]))


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_pages_of_other_origins_are_refused(tmp_path: Path, origin: str) -> None:
    async with served(tmp_path) as server, server.client() as client:
        response = await client.post("/api/v1/tasks", json={"title": "x"}, headers={"Origin": origin})
        assert (response.status_code, response.json()["code"]) == (403, "ORIGIN_NOT_ALLOWED")
        assert "access-control-allow-origin" not in response.headers
        own = await client.post("/api/v1/tasks", json={"title": "x"}, headers={"Origin": server.url})
        assert own.status_code == 201


async def test_a_foreign_name_for_this_machine_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        response = await client.get("/api/v1/tasks", headers={"Host": "rebound.example"})
        assert (response.status_code, response.json()["code"]) == (403, "HOST_NOT_ALLOWED")


async def test_a_body_that_is_too_large_is_refused_announced_or_not(tmp_path: Path) -> None:
    async with served(tmp_path, options=ServeOptions(body_bytes=1_000)) as server, server.client() as client:
        body = json.dumps({"title": "x", "description": "y" * 2_000}).encode()

        async def pieces() -> Any:
            for at in range(0, len(body), 100):
                yield body[at : at + 100]

        headers = {"Content-Type": "application/json"}
        for content in (body, pieces()):
            response = await client.post("/api/v1/tasks", content=content, headers=headers)
            assert (response.status_code, response.json()["code"]) == (413, "BODY_TOO_LARGE")


async def test_too_many_requests_are_told_when_to_come_back(tmp_path: Path) -> None:
    options = ServeOptions(requests_per_minute=3)
    async with served(tmp_path, options=options) as server, server.client() as client:
        statuses = [(await client.get("/api/v1/tasks")).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        refused = await client.get("/api/v1/tasks")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert (await client.get("/healthz")).status_code == 200


async def test_one_principal_does_not_use_up_anothers_requests(tmp_path: Path) -> None:
    other = "another-token-of-some-length"
    tokens = Tokens({TOKEN: Principal("ada"), other: Principal("bob")})
    options = ServeOptions(requests_per_minute=2)
    async with served(tmp_path, tokens=tokens, options=options) as server, server.client() as client:
        for token, expected in ((TOKEN, [200, 200, 429]), (other, [200, 200, 429])):
            headers = {"Authorization": f"Bearer {token}"}
            assert [(await client.get("/api/v1/tasks", headers=headers)).status_code for _ in range(3)] == expected


async def test_request_ids_are_echoed_or_made(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        given = await client.get("/api/v1/none", headers={"X-Request-ID": "abc-123"})
        assert given.headers["X-Request-ID"] == given.json()["request_id"] == "abc-123"
        for bad in ("a b", "x" * 200, "<script>"):
            made = await client.get("/healthz", headers={"X-Request-ID": bad})
            assert made.headers["X-Request-ID"].startswith("req_")


async def test_every_error_has_one_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path) as server, server.client() as client:

        async def breaks(*_: Any, **__: Any) -> None:
            raise RuntimeError("a secret detail")

        monkeypatch.setattr(type(server.service.tasks), "search", breaks)
        responses = [
            await client.get("/api/v1/none"),
            await client.put("/api/v1/tasks"),
            await client.get("/api/v1/tasks/none"),
            await client.post("/api/v1/tasks", content=b"{", headers={"Content-Type": "application/json"}),
            await client.get("/api/v1/search?q=x&mode=semantic"),
        ]
        assert [response.status_code for response in responses] == [404, 405, 404, 422, 500]
        for response in responses:
            assert {"error", "code", "request_id"} <= response.json().keys()
            assert "secret" not in response.text


async def test_an_address_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        person = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        page = await client.get("/task<s>", headers=person)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "There is nothing at /task&lt;s&gt;" in page.text
        assert 'href="/"' in page.text
        for path, headers in (("/tasks", {}), ("/api/v1/none", person)):
            program = await client.get(path, headers=headers)
            assert (program.status_code, program.json()["error"]) == (404, f"There is nothing at {path}")
            assert "/openapi.json" in program.json()["recover_action"]


def test_a_token_file_may_hold_hashes_and_its_errors_show_no_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    hashed = "sha256:" + hashlib.sha256(TOKEN.encode()).hexdigest()
    file.write_text(json.dumps({hashed: {"id": "ada", "permissions": ["tasks:*"]}}))
    assert read_tokens(file).principal(TOKEN) == Principal("ada", permissions={"tasks:*"})
    for content in ("{", "[]", "{}", json.dumps({TOKEN: {"id": ""}}), json.dumps({"short": {"id": "ada"}})):
        file.write_text(content)
        with pytest.raises(ConfigurationError) as caught:
            read_tokens(file)
        assert TOKEN not in str(caught.value)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_tokens(tmp_path / "none.json")


# --- proxies


@pytest.mark.parametrize(
    ("trusted", "expected"),
    [((), [401, 401, 429, 429]), (("10.9.9.9",), [401, 401, 429, 429]), (("127.0.0.1",), [401, 401, 401, 401])],
)
async def test_who_is_counted_is_what_a_trusted_proxy_says_and_nobody_else(
    tmp_path: Path, trusted: tuple[str, ...], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # uvicorn's own switch must not reopen the door
    options = ServeOptions(requests_per_minute=2, forwarded_allow_ips=trusted)
    async with served(tmp_path, tokens=TOKENS, options=options) as server, server.client() as client:
        statuses = []
        for number in range(4):
            said = f"203.0.113.{number}"
            headers = {"X-Forwarded-For": said, "Forwarded": f"for={said}", "X-Real-IP": said}
            statuses.append((await client.get("/api/v1/tasks", headers=headers)).status_code)
    assert statuses == expected


@pytest.mark.parametrize("proxy", ["*", "proxy.example", "10.0.0.1/8/8", ""])
def test_a_proxy_is_named_by_its_address(proxy: str) -> None:
    with pytest.raises(ConfigurationError, match="a trusted proxy is an address"):
        ServeOptions(forwarded_allow_ips=(proxy,))

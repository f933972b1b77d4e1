"""Behind a proxy, and for pages of other origins that the operator has named."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman import ConfigurationError, Principal
from journeyman.doors.http import ServeOptions, Tokens
from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import chat, served

TOKEN = "a-token-of-sufficient-length"
TOKENS = Tokens({TOKEN: Principal("ada", permissions={"*"})})
HOME = "https://app.example.com"


# --- a root path


@pytest.mark.parametrize("passed_on", [True, False])
async def test_a_proxy_may_show_it_anywhere(tmp_path: Path, passed_on: bool) -> None:
    options, before = ServeOptions(root_path="/tools/jm"), "/tools/jm" if passed_on else ""
    model = ScriptedModel([say("Hello.")])
    async with served(tmp_path, options=options, model=model) as server, server.client() as client:
        client.base_url = f"{server.url}{before}"
        made = await client.post("/api/v1/tasks", json={"title": "Buy milk"})
        assert made.status_code == 201
        assert made.headers["location"] == f"/tools/jm/api/v1/tasks/{made.json()['id']}"
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/api/v1/none")).json()["code"] == "NOT_FOUND"
        assert (await client.put("/api/v1/tasks")).headers["allow"] == "GET, POST"
        assert "error" in (await client.get("/v1/none")).json()
        events = await chat(client, "Hello")
        assert [event.event for event in events][-2:] == ["run_finished", None]
        page = await client.get("/")
        assert 'src="/tools/jm/assets/app.js?v=' in page.text
        assert (await client.get("/assets/app.js")).status_code == 200


async def test_the_root_path_itself_leads_to_the_page(tmp_path: Path) -> None:
    async with served(tmp_path, options=ServeOptions(root_path="/jm")) as server, server.client() as client:
        response = await client.get("/jm")
        assert (response.status_code, response.headers["location"]) == (307, "/jm/")


@pytest.mark.parametrize("before", ["", "/jm"])
async def test_a_root_path_opens_no_way_around_the_token(tmp_path: Path, before: str) -> None:
    options = ServeOptions(root_path="/jm")
    async with served(tmp_path, tokens=TOKENS, options=options) as server, server.client() as client:
        for path in ("/api/v1/tasks", "/v1/models", "/metrics", "/jm/api/v1/tasks"):
            response = await client.get(before + path)
            assert response.status_code in (401, 404), path
            assert "tasks" not in response.json()
        assert (await client.get(f"{before}/api/v1/tasks")).status_code == 401


@pytest.mark.parametrize("root", ["/", "jm", "/jm/", "/api", "/v1/x", "/metrics", "/j m", "//", "/jm?x"])
def test_what_can_be_no_root_path_is_refused(root: str) -> None:
    with pytest.raises(ConfigurationError, match="root path"):
        ServeOptions(root_path=root)


# --- other origins


async def test_a_page_of_a_named_origin_may_use_it(tmp_path: Path) -> None:
    options = ServeOptions(origins=frozenset({HOME}))
    async with served(tmp_path, tokens=TOKENS, options=options) as server, server.client() as client:
        asks = {
            "Origin": HOME,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization",
        }
        asked = await client.options("/api/v1/tasks", headers=asks)
        assert asked.status_code == 204
        assert asked.headers["access-control-allow-origin"] == HOME
        assert "Authorization" in asked.headers["access-control-allow-headers"]
        headers = {"Origin": HOME, "Authorization": f"Bearer {TOKEN}"}
        made = await client.post("/api/v1/tasks", json={"title": "Buy milk"}, headers=headers)
        assert (made.status_code, made.headers["access-control-allow-origin"]) == (201, HOME)
        assert "origin" in made.headers["vary"].lower()
        # Errors can be read as well, or a page could not say what is wrong.
        refused = await client.get("/api/v1/tasks", headers={"Origin": HOME})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, HOME)


@pytest.mark.parametrize(
    "origin", ["https://evil.example", f"{HOME}.evil.example", f"{HOME}:444", "null", "http://app.example.com"]
)
async def test_others_may_not(tmp_path: Path, origin: str) -> None:
    options = ServeOptions(origins=frozenset({HOME}))
    async with served(tmp_path, options=options) as server, server.client() as client:
        for method in ("GET", "OPTIONS"):
            headers = {"Origin": origin, "Access-Control-Request-Method": "GET"}
            response = await client.request(method, "/api/v1/tasks", headers=headers)
            assert response.status_code == 403
            assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("origin", ["app.example.com", "https://app.example.com/", "*", "null", "ftp://a"])
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(ConfigurationError, match="origin"):
        ServeOptions(origins=frozenset({origin}))

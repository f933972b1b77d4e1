"""Gaps over HTTP: a chat that nothing was done in says so, demand is listed as far as one may see, and exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import served

ADA, BOB, GRACE = "ada-token-0123456789", "bob-token-0123456789", "grace-token-0123456789"
TOKENS = Tokens({ADA: Principal("ada"), BOB: Principal("bob"), GRACE: Principal("grace", permissions={"gaps:write"})})
PORTFOLIO = "Retrieve my stock portfolio performance for Q3 2024"
MODEL = ScriptedModel([say("I don't have a tool for that.")])


async def test_a_chat_reports_the_gap_and_each_sees_what_they_may(tmp_path: Path) -> None:
    async with served(tmp_path, model=MODEL, tokens=TOKENS) as server, server.client() as client:
        as_ada, as_bob, as_grace = ({"Authorization": f"Bearer {token}"} for token in (ADA, BOB, GRACE))
        asked = {"message": PORTFOLIO, "session_id": "s1"}
        answer = await client.post("/api/v1/chat", json=asked, headers={**as_ada, "Accept": "application/json"})
        assert answer.json()["gap"]["missing_tools"] == ["retrieve stock portfolio performance"]
        thanks = {"message": "Thanks!", "session_id": "s1"}
        answer = await client.post("/api/v1/chat", json=thanks, headers={**as_ada, "Accept": "application/json"})
        assert answer.json()["gap"] is None
        [found] = (await client.get("/api/v1/gaps", headers=as_ada)).json()["gaps"]
        assert (found["missing"], found["times"]) == ("retrieve stock portfolio performance", 1)
        path = f"/api/v1/gaps/{found['key']}"
        assert (await client.get("/api/v1/gaps", headers=as_bob)).json()["gaps"] == []
        assert (await client.get(path, headers=as_bob)).status_code == 404
        assert (await client.get(f"{path}/export", headers=as_bob)).status_code == 404
        assert (await client.get("/api/v1/gaps")).status_code == 401
        assert (await client.post(f"{path}/dismiss", headers=as_ada)).status_code == 403
        shown = (await client.get(path, headers=as_grace)).json()
        assert shown["report"]["attempted_task"] == PORTFOLIO
        [file] = (await client.get(f"{path}/export", headers=as_grace)).json()["files"]
        assert "retrieve_stock_portfolio_performance:Tool" in file["text"]
        module, test = (await client.get(f"{path}/export", params={"as": "python"}, headers=as_ada)).json()["files"]
        assert (module["name"], test["name"]) == (
            "retrieve_stock_portfolio_performance.py",
            "test_retrieve_stock_portfolio_performance.py",
        )
        assert (await client.post(f"{path}/dismiss", headers=as_grace)).json()["dismissed_by"] == "grace"
        assert (await client.get("/api/v1/gaps", headers=as_ada)).json()["gaps"] == []
        listed = await client.get("/api/v1/gaps", params={"dismissed": True}, headers=as_ada)
        assert len(listed.json()["gaps"]) == 1


@pytest.mark.parametrize("path", ["/api/v1/gaps/nothing", "/api/v1/gaps/nothing/export"])
async def test_a_gap_that_is_not_there_is_not_found(tmp_path: Path, path: str) -> None:
    async with served(tmp_path, model=MODEL) as server, server.client() as client:
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, "GAP_NOT_FOUND")

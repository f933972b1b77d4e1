"""Intents over HTTP: what a request asks for is told to whoever may use the tools, and nothing is kept."""

from __future__ import annotations

from pathlib import Path

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import served

ADA = "ada-token-0123456789"
TOKENS = Tokens({ADA: Principal("ada")})


async def test_a_request_is_read_and_types_are_listed(tmp_path: Path) -> None:
    model = ScriptedModel([say("I would rather talk.")])
    async with served(tmp_path, model=model, tokens=TOKENS) as server, server.client() as client:
        as_ada = {"Authorization": f"Bearer {ADA}"}
        body = {"text": "Show me all overdue tasks with high priority", "offline": True}
        found = (await client.post("/api/v1/intents", json=body, headers=as_ada)).json()["intent"]
        assert (found["intent_type"], found["suggested_tools"][0]) == ("fetch", "query_tasks")
        assert found["parameters"] == {"overdue": True, "priority": "high"}
        asked = (await client.post("/api/v1/intents", json={**body, "offline": False}, headers=as_ada)).json()["intent"]
        assert asked["confidence"] < found["confidence"]
        thanks = await client.post("/api/v1/intents", json={"text": "Thanks!"}, headers=as_ada)
        assert thanks.json() == {"intent": None}
        types = (await client.get("/api/v1/intents/types", headers=as_ada)).json()["types"]
        assert [kind["name"] for kind in types][:4] == ["summarize", "analyze", "fetch", "explain"]
        assert (await client.post("/api/v1/intents", json=body)).status_code == 401
        assert (await client.post("/api/v1/intents", json={"text": ""}, headers=as_ada)).status_code == 422

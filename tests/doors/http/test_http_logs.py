"""No prompt, argument, result or token in logs at the default level."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from journeyman import Principal
from journeyman.doors.http import Tokens
from journeyman.telemetry.logs import JsonFormatter
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import served

TOKEN = "canary-token-0123456789"
CANARIES = ["canary-prompt", "canary-argument", "canary-answer", "canary-search", "canary-note", "canary-reason", TOKEN]


class Collecting(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def set_level(request: pytest.FixtureRequest, name: str, level: int) -> None:
    # Not the attribute alone: loggers below remember what their level is, and must forget it.
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    request.addfinalizer(lambda: logger.setLevel(before))


async def test_logs_have_what_happened_and_nothing_of_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    handler = Collecting()
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    for name in ("journeyman", "uvicorn", "fastapi", "asyncio"):
        set_level(request, name, logging.INFO)
    set_level(request, "httpx", logging.WARNING)  # the test's own client
    model = ScriptedModel(
        [call("create_task", title="canary-argument"), call("delete_task", task_id="canary-x"), say("canary-answer")]
    )
    tokens = Tokens({TOKEN: Principal("ada", permissions={"*"})})
    async with served(tmp_path, model=model, tokens=tokens) as server:
        async with server.client(headers={"Authorization": f"Bearer {TOKEN}"}) as client:
            answer = await client.post(
                "/api/v1/chat", json={"message": "canary-prompt"}, headers={"Accept": "application/json"}
            )
            approval = answer.json()["approvals"][0]["id"]
            await client.post(f"/api/v1/approvals/{approval}/deny", json={"reason": "canary-reason"})
            await (await server.service.app.handle(answer.json()["run_id"])).result()
            await client.get("/api/v1/search", params={"q": "canary-search"})
            await client.post("/api/v1/tasks", json={"title": "x", "description": "canary-note", "eta": "canary-note"})
            await client.get("/api/v1/tasks/canary-note")
            await client.post("/api/v1/chat", json={"message": "canary-prompt" * 1_000})

            async def breaks(*_: object, **__: object) -> None:
                raise RuntimeError("canary-argument")

            monkeypatch.setattr(type(server.service.tasks), "search", breaks)
            failed = await client.get("/api/v1/search", params={"q": "canary-search", "mode": "semantic"})
            assert failed.status_code == 500
        async with server.client(headers={"Authorization": f"Bearer {TOKEN}wrong"}) as client:
            assert (await client.get("/api/v1/tasks")).status_code == 401
    text = "\n".join(handler.lines)
    assert '"route": "/api/v1/search"' in text
    assert "run finished" in text
    assert "RuntimeError" in text
    assert [canary for canary in CANARIES if canary in text] == []

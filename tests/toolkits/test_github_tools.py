"""GitHub over real HTTP, against a GitHub on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from journeyman import ToolCallRecord
from journeyman.app.chains import literal, start_chain
from journeyman.app.service import Service, open_service

PULL = {
    "title": "Fix the engine",
    "state": "closed",
    "merged": True,
    "user": {"login": "ada"},
    "html_url": "https://github.com/acme/rocket/pull/7",
    "labels": [{"name": "bug"}],
    "created_at": "2027-01-01T00:00:00Z",
    "updated_at": "2027-01-02T00:00:00Z",
    "body": "It was upside down.",
    "additions": 10,
    "draft": False,
}


class Loopback:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.body: Any = PULL
        self.asked: list[tuple[str, str | None]] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append((request.path, request.headers.get("Authorization")))
        body = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return web.Response(status=self.status, headers=self.headers, text=body, content_type="application/json")


@pytest.fixture
async def github() -> AsyncIterator[Loopback]:
    server = Loopback()
    runner = web.ServerRunner(web.Server(server.handle), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


@pytest.fixture
async def service(tmp_path: Path, github: Loopback) -> AsyncIterator[Service]:
    async with open_service(store=f"sqlite:///{tmp_path / 'github.db'}", github_url=github.url) as found:
        yield found


async def called(service: Service, name: str, **arguments: Any) -> ToolCallRecord:
    handle = await start_chain(service.app, [{"tool": name, "args": literal(arguments)}])
    [record] = (await handle.result()).tool_calls
    return record


@pytest.mark.parametrize(
    "reference", ["acme/rocket#7", "https://github.com/acme/rocket/pull/7", "github.com/acme/rocket/pull/7/files"]
)
async def test_a_pull_request_is_read(service: Service, github: Loopback, reference: str) -> None:
    record = await called(service, "fetch_github_pr", reference=reference)
    assert (record.result["title"], record.result["state"], record.result["author"]) == (
        "Fix the engine",
        "merged",
        "ada",
    )
    assert github.asked == [("/repos/acme/rocket/pulls/7", None)]


async def test_an_issue_is_read_from_its_own_place(service: Service, github: Loopback) -> None:
    await called(service, "fetch_github_pr", reference="https://github.com/acme/rocket/issues/3")
    assert github.asked == [("/repos/acme/rocket/issues/3", None)]


async def test_the_token_is_sent_and_never_shown(
    service: Service, github: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNEYMAN_SECRET_GITHUB_TOKEN", "ghp_canary")
    github.body = {**PULL, "body": "ghp_canary"}
    record = await called(service, "fetch_github_pr", reference="acme/rocket#7")
    assert github.asked[0][1] == "Bearer ghp_canary"
    assert "ghp_canary" not in record.model_dump_json()


@pytest.mark.parametrize(
    ("status", "headers", "code", "category", "advice"),
    [
        (403, {}, "GITHUB_FORBIDDEN", "permission", "access is missing"),
        (403, {"X-RateLimit-Remaining": "0"}, "GITHUB_RATE_LIMITED", "rate_limit", "try again later"),
        (429, {"Retry-After": "17"}, "GITHUB_RATE_LIMITED", "rate_limit", "try again in 17 s"),
        (404, {}, "GITHUB_NOT_FOUND", "invalid_input", "Check owner, repository and number"),
        (301, {"Location": "http://127.0.0.1:1/"}, "GITHUB_NOT_FOUND", "invalid_input", "Check owner"),
        (401, {}, "GITHUB_TOKEN_REFUSED", "authentication", "must be renewed"),
        (418, {}, "GITHUB_FAILED", "network", "Go on without it"),
    ],
)
async def test_every_refusal_becomes_advice(
    service: Service, github: Loopback, status: int, headers: dict[str, str], code: str, category: str, advice: str
) -> None:
    github.status, github.headers = status, headers
    record = await called(service, "fetch_github_pr", reference="acme/rocket#7")
    assert record.error is not None
    assert (record.error.code, record.error.category.value) == (code, category)
    assert advice in (record.error.recover_action or "")


async def test_an_answer_that_is_no_json_and_a_server_that_is_away_are_told_apart(
    service: Service, github: Loopback, tmp_path: Path
) -> None:
    github.body = "<html>"
    record = await called(service, "fetch_github_pr", reference="acme/rocket#7")
    assert record.error is not None
    assert record.error.code == "GITHUB_BAD_ANSWER"
    async with open_service(store=f"sqlite:///{tmp_path / 'b.db'}", github_url="http://127.0.0.1:1") as away:
        record = await called(away, "fetch_github_pr", reference="acme/rocket#7")
        assert record.error is not None
        assert record.error.code == "GITHUB_UNREACHABLE"


async def test_an_attachment_is_brought_up_to_date(service: Service, github: Loopback) -> None:
    task = await service.tasks.create("Review https://github.com/acme/rocket/pull/7")
    record = await called(service, "refresh_attachment", attachment_id=task.attachments[0].id)
    assert record.result["title"] == "Fix the engine"
    [kept] = (await service.tasks.get(task.id)).attachments
    assert (kept.id, kept.title, kept.content) == (task.attachments[0].id, "Fix the engine", "It was upside down.")
    assert kept.metadata["state"] == "merged"
    by_words = await called(service, "refresh_attachment", attachment_id="engine", task_id="review")
    assert by_words.success


async def test_an_address_that_is_not_githubs_is_never_fetched(service: Service, github: Loopback) -> None:
    task = await service.tasks.create(f"See {github.url}/secret")
    record = await called(service, "refresh_attachment", attachment_id=task.attachments[0].id)
    assert record.error is not None
    assert record.error.code == "NOT_REFRESHABLE"
    assert github.asked == []

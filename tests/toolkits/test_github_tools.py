"""GitHub over real HTTP, against a GitHub on the loopback interface."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver

from journeyman import ConfigurationError, ToolCallRecord, ToolError
from journeyman.app.chains import literal, start_chain
from journeyman.app.service import Service, open_service
from journeyman.sensitive.fetching import AddressRefusedError, guarded_connector
from journeyman.toolkits.github import GitHub, PullOrIssue

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


async def test_a_pull_request_is_named_by_its_parts(service: Service, github: Loopback) -> None:
    assert (await called(service, "fetch_github_pr", owner="acme", repo="rocket", number=7)).success
    assert github.asked == [("/repos/acme/rocket/pulls/7", None)]
    away = await called(service, "fetch_github_pr", owner="acme/../../user", repo="rocket", number=7)
    assert away.error is not None
    assert away.error.code == "INVALID_REFERENCE"
    assert len(github.asked) == 1


async def test_a_pull_request_is_found_and_attached_in_one_chain(service: Service, github: Loopback) -> None:
    github.body = {"items": [PULL, PULL]}
    chain = [
        {"tool": "create_task", "args": {"title": "Review PR #123"}},
        {"tool": "search_github_pr", "args": {"query": "PR #123 repo:other/secret", "limit": 1}},
        {"tool": "add_attachment", "args": {"task_id": "$task_id", "url": "$pr_url"}},
    ]
    results = await service.app.chain(chain)
    assert results[-1]["reference"] == "https://github.com/acme/rocket/pull/7"
    assert results[1]["pull_requests"] == [
        {name: results[1]["pull_requests"][0][name] for name in ("title", "state", "author", "url", "updated_at")}
    ]
    assert github.asked[0][0] == "/search/issues"
    github.body = {"items": []}
    assert (await called(service, "search_github_pr", query="nothing")).error is not None
    wrong = await called(service, "search_github_pr", query="x", repository="acme/rocket is:issue")
    assert wrong.error is not None
    assert wrong.error.code == "INVALID_REFERENCE"


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
        (403, {}, "FORBIDDEN", "permission", "access is missing"),
        (403, {"X-RateLimit-Remaining": "0"}, "RATE_LIMITED", "rate_limit", "try again later"),
        (429, {"Retry-After": "17"}, "RATE_LIMITED", "rate_limit", "try again in 17 s"),
        (404, {}, "GITHUB_NOT_FOUND", "invalid_input", "Check owner, repository and number"),
        (301, {"Location": "http://127.0.0.1:1/"}, "GITHUB_NOT_FOUND", "invalid_input", "Check owner"),
        (401, {}, "GITHUB_TOKEN_REFUSED", "authentication", "must be renewed"),
        (418, {}, "FETCH_FAILED", "network", "Go on without it"),
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
    assert record.error.code == "FETCH_FAILED"
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


# --- only where it is meant to go


@pytest.mark.parametrize(
    "reference",
    [
        "../repos#7",
        "acme/..#7",
        "acme/.#7",
        "..%2f/rocket#7",
        "acme/rocket%2e%2e#7",
        "acme/rocket/../x#7",
        "acme/rocket?x=1#7",
        "acme/rocket#7#8",
        "acme\\x/rocket#7",
        "acme/rocket#0",
        "acme/rock et#7",
        "acmé/rocket#7",
        "https://github.com/../user/pull/7",
        "https://github.com/acme/%2e%2e/pull/7",
        "https://github.com.evil.example/acme/rocket/pull/7",
        "https://evil.example/github.com/acme/rocket/pull/7",
        "acme/rocket#٧",
    ],
)
async def test_a_reference_cannot_leave_its_path(service: Service, github: Loopback, reference: str) -> None:
    record = await called(service, "fetch_github_pr", reference=reference)
    assert record.error is not None
    assert record.error.code == "INVALID_REFERENCE"
    assert github.asked == []


@pytest.mark.parametrize(
    ("owner", "repo"), [("..", "user"), ("acme", ".."), ("acme/x", "y"), ("acme", "x%2e"), ("a", "x?")]
)
async def test_parts_cannot_leave_it_either(service: Service, github: Loopback, owner: str, repo: str) -> None:
    record = await called(service, "fetch_github_pr", owner=owner, repo=repo, number=7)
    assert record.error is not None
    assert (record.error.code, github.asked) == ("INVALID_REFERENCE", [])


@pytest.mark.parametrize(
    ("owner", "repository", "number"),
    [("..", "x", 1), ("a", "..", 1), ("a/b", "x", 1), ("a", "x?", 1), ("a", "x#", 1), ("a", "x%2e", 1), ("a", "x", 0)],
)
def test_no_other_way_makes_one_either(owner: str, repository: str, number: int) -> None:
    with pytest.raises(ToolError) as refused:
        PullOrIssue(owner, repository, number)
    assert refused.value.code == "INVALID_REFERENCE"


class Names(AbstractResolver):
    """Resolves every name to one address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> Any:
        found = {"hostname": host, "host": self._address, "port": port, "family": family, "proto": 0, "flags": 0}
        return [found]

    async def close(self) -> None:
        pass


PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "192.168.0.1",
    "172.16.0.1",
    "::1",
    "fc00::1",
    "100.64.0.1",
    "0.0.0.0",
    "::ffff:10.0.0.1",
]
METADATA = ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]


@pytest.mark.parametrize("address", PRIVATE + METADATA)
async def test_a_name_that_resolves_to_a_private_address_is_not_fetched(address: str) -> None:
    async with aiohttp.ClientSession(connector=guarded_connector(resolver=Names(address))) as session:
        with pytest.raises(AddressRefusedError):
            await session.get("http://github.example/x")


@pytest.mark.parametrize("address", METADATA)
async def test_metadata_is_not_fetched_even_inside_ones_own_network(address: str) -> None:
    async with aiohttp.ClientSession(connector=guarded_connector(private=True, resolver=Names(address))) as session:
        with pytest.raises(AddressRefusedError):
            await session.get("http://github.example/x")


@pytest.mark.parametrize("host", ["169.254.169.254", "0xA9FEA9FE", "[fd00:ec2::254]", "metadata.google.internal."])
def test_an_address_that_is_metadata_cannot_be_githubs(host: str) -> None:
    with pytest.raises(ConfigurationError, match="no address that a tool may fetch from"):
        GitHub(base_url=f"http://{host}/api")

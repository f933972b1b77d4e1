"""The OpenAPI document, and schemathesis over all of it that does not stream."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Unsatisfiable

from journeyman import Principal
from journeyman.app.service import open_service
from journeyman.doors.http import ServeOptions, Tokens, serve
from journeyman.learning import ToolCallingStrategy
from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import served
from tests.marking import daily
from tests.waiting import WAIT_SECONDS

NOTHING_TO_GET_WRONG = {"/healthz", "/readyz"}
TOKEN = "a-token-of-sufficient-length"
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
STRATEGY = ToolCallingStrategy(id="strategy_1", content="Look.", tool_sequence=("look",), state="active")
REFUSED = "RejectedPositiveData"
EXPECTED = {
    (
        REFUSED,
        "POST /api/v1/tasks",
    ): "no schema says which characters are printable",
    (REFUSED, "PATCH /api/v1/tasks/{task_id}"): "the same for a change",
    (REFUSED, "GET /api/v1/tasks"): "a schema's dates and times go further than those of a calendar",
    (REFUSED, "POST /api/v1/tasks/{task_id}/attachments"): "what is a web address to attach is the toolkit's business",
    (
        REFUSED,
        "POST /api/v1/chains",
    ): "which tools there are is not in the document",
    (REFUSED, "GET /api/v1/sessions"): "a cursor is what an earlier page gave, and nothing else",
    (REFUSED, "GET /api/v1/runs"): "what is looked for has no NUL, and times are those of a calendar",
    (REFUSED, "GET /api/v1/approvals"): "what is looked for has no NUL",
    (REFUSED, "GET /api/v1/memory/documents"): "metadata is a text that holds a JSON object",
    (REFUSED, "GET /api/v1/memory/search"): "the same for a search",
    (REFUSED, "GET /api/v1/events"): "Last-Event-ID has a number for each of the runs that are asked for",
    (REFUSED, "POST /api/v1/approvals/{approval_id}/approve"): "arguments_json is a text that holds a JSON object",
    (REFUSED, "POST /api/v1/chat"): "Last-Event-ID must be of a run that the request has begun before",
    (REFUSED, "POST /api/v1/playbooks/{domain}/rollback"): "which versions there are is not in the document",
    (REFUSED, "POST /api/v1/runs/replay"): "which fields a policy has is not in the document",
    (REFUSED, "POST /api/v1/runs/{run_id}/fork"): "which steps a run has is not in the document",
    (REFUSED, "POST /v1/chat/completions"): "the last message must be the user's, and say something",
}
"""What schemathesis reports and is meant to be so: the kind of failure, the operation, and the reason."""


@pytest.mark.slow
async def test_every_operation_has_a_summary_and_describes_its_errors(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        document = (await client.get("/openapi.json")).json()
    open_to_all = {"/healthz", "/readyz"}
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) >= 35
    for path, method, operation in operations:
        assert operation["summary"], (method, path)
        if path not in open_to_all:
            assert {"401", "422", "429"} <= operation["responses"].keys(), (method, path)
            assert operation["security"], (method, path)
    schemas = document["components"]["schemas"]
    assert schemas["ErrorBody"]["required"] == ["error", "code", "request_id"]
    assert schemas["NewTask"]["properties"]["title"]["examples"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/v1/audit?actor=ada&actor=", "actor"),
        ("/api/v1/tasks?limit=1&limit=2", "limit"),
        ("/api/v1/me?verbose=1", "verbose"),
        ("/api/v1/events?run=r1&since=5", "since"),
    ],
)
async def test_no_parameter_is_dropped_unseen(tmp_path: Path, path: str, field: str) -> None:
    async with served(tmp_path) as server, server.client() as client:
        answer = await client.get(path)
        assert (answer.status_code, [item["field"] for item in answer.json()["fields"]]) == (422, [field])
        assert (await client.get("/api/v1/tasks?tags=a&tags=b")).status_code == 200  # these may be repeated
        assert (await client.get("/api/v1/runs?status=running&status=queued")).status_code == 200


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server in a thread of its own, for a client that knows no event loop."""
    folder = tmp_path_factory.mktemp("openapi")
    ready, found = threading.Event(), []
    holder: dict[str, Any] = {}

    async def whole() -> None:
        holder["loop"], holder["stop"] = asyncio.get_running_loop(), asyncio.Event()
        options = ServeOptions(requests_per_minute=10_000_000)
        url = f"sqlite:///{folder / 'store.db'}"
        async with open_service(store=url, model=ScriptedModel([say("Hello.")])) as service:
            await service.app.playbooks["shop"].put([STRATEGY])

            def tell(port: int) -> None:
                found.append(port)
                ready.set()

            tokens = Tokens({TOKEN: Principal("ada", permissions={"*"})})
            serving = asyncio.create_task(serve(service, port=0, tokens=tokens, options=options, ready=tell))
            await holder["stop"].wait()
            serving.cancel()
            await asyncio.wait((serving,))

    thread = threading.Thread(target=lambda: asyncio.run(whole()), daemon=True)
    thread.start()
    assert ready.wait(WAIT_SECONDS)
    yield f"http://127.0.0.1:{found[0]}"
    holder["loop"].call_soon_threadsafe(holder["stop"].set)
    thread.join(WAIT_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("examples", daily(6, nightly=200))
def test_no_request_makes_the_service_break_its_word(address: str, examples: int) -> None:
    """With every check there is. What is reported all the same must be listed above, with a reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis
        from schemathesis.checks import CHECKS
        from schemathesis.core.failures import FailureGroup
        from schemathesis.core.result import Ok

    made = httpx.post(f"{address}/api/v1/tasks", json={"title": "See https://example.com"}, headers=AUTHORISED)
    task = made.json()
    known = {"task_id": task["id"], "attachment_id": task["attachments"][0]["id"]}
    known.update(run_id=an_ended_run(address), domain="shop", strategy_id=STRATEGY.id)
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    checks = list(CHECKS.get_all())  # those of OpenAPI are known from now on
    assert len(checks) >= 14
    tried: dict[str, int] = {}
    broken: dict[tuple[str, str], str] = {}
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        name = f"{operation.method.upper()} {operation.path}"
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):

            def one(case: Any, name: str = name, sound: bool = mode is schemathesis.GenerationMode.POSITIVE) -> None:
                tried[name] = tried.get(name, 0) + 1
                if tried[name] % 3 == 0 and sound and case.method != "DELETE":  # else hardly any would find something
                    case.path_parameters.update({key: known[key] for key in case.path_parameters if key in known})
                response = case.call(headers=AUTHORISED, timeout=WAIT_SECONDS)
                if response.status_code == 413:
                    return  # which is neither an acceptance nor, to schemathesis, a refusal
                if not sound and response.status_code < 300 and lost_on_the_way(case.query or {}, response.request.url):
                    return
                try:
                    case.validate_response(response, checks=checks)
                except FailureGroup as failures:
                    for failure in failures.exceptions:
                        asked = f"{response.request.method} {response.request.url}"
                        text = f"{failure}\n{asked[:500]}\n{response.status_code} {response.text[:500]}"
                        broken.setdefault((type(failure).__name__, name), text)

            try:
                run_examples(operation.as_strategy(generation_mode=mode), one, examples)
            except Unsatisfiable:
                assert operation.path in NOTHING_TO_GET_WRONG
    unexpected = [f"{key}: {text}" for key, text in broken.items() if key not in EXPECTED]
    assert not unexpected, "\n\n".join(unexpected)
    assert len(tried) >= 35
    few = {name for name, count in tried.items() if count < examples}
    assert few <= {f"GET {path}" for path in NOTHING_TO_GET_WRONG}


def an_ended_run(address: str) -> str:
    headers = {**AUTHORISED, "Accept": "application/json"}
    answer = httpx.post(f"{address}/api/v1/chat", json={"message": "Hello"}, headers=headers, timeout=WAIT_SECONDS)
    return str(answer.json()["run_id"])


def lost_on_the_way(query: dict[str, Any], url: str | None) -> bool:
    """Whether what was wrong with a query was not sent: of an empty list nothing is, of a list of one its item."""
    sent = parse_qs(urlsplit(url or "").query, keep_blank_values=True)
    return any(name not in sent or (isinstance(value, list) and len(value) == 1) for name, value in query.items())


def run_examples(strategy: Any, one: Any, most: int) -> None:
    from hypothesis import given

    quiet = settings(
        max_examples=most,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet(given(case=strategy)(lambda case: one(case)))()

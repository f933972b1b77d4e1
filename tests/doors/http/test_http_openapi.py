"""The OpenAPI document, and schemathesis over all of it that does not stream."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Unsatisfiable

from journeyman.app.service import open_service
from journeyman.doors.http import ServeOptions, serve
from journeyman.testing import ScriptedModel, say
from tests.doors.http.serving import served
from tests.marking import daily
from tests.waiting import WAIT_SECONDS

NOTHING_TO_GET_WRONG = {"/healthz", "/readyz"}
STREAMING = {("POST", "/api/v1/chat"), ("GET", "/api/v1/runs/{run_id}/events"), ("POST", "/v1/chat/completions")}


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

            def tell(port: int) -> None:
                found.append(port)
                ready.set()

            serving = asyncio.create_task(serve(service, port=0, options=options, ready=tell))
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
@pytest.mark.parametrize("examples", daily(12, nightly=200))
def test_no_request_makes_the_service_break_its_word(address: str, examples: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis
        from schemathesis.checks import not_a_server_error
        from schemathesis.core.result import Ok
        from schemathesis.specs.openapi.checks import (
            content_type_conformance,
            response_schema_conformance,
            status_code_conformance,
        )

    checks = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
    task = httpx.post(f"{address}/api/v1/tasks", json={"title": "See https://example.com"}).json()
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    tried: dict[str, int] = {}
    broken: list[str] = []
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        if (operation.method.upper(), operation.path) in STREAMING:
            continue
        name = f"{operation.method.upper()} {operation.path}"

        def one(case: Any, name: str = name) -> None:
            tried[name] = tried.get(name, 0) + 1
            if tried[name] % 3 == 0:  # else hardly any would find something that is there
                for parameter in ("task_id", "attachment_id"):
                    if parameter in (case.path_parameters or {}) and case.method != "DELETE":
                        known = task["id"] if parameter == "task_id" else task["attachments"][0]["id"]
                        case.path_parameters[parameter] = known
            case.call_and_validate(checks=checks, timeout=WAIT_SECONDS)

        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            strategy = operation.as_strategy(generation_mode=mode)
            try:
                run_examples(strategy, one, examples)
            except Unsatisfiable:
                assert operation.path in NOTHING_TO_GET_WRONG
            except Exception as error:
                broken.append(f"{name}: {error}")
    assert broken == []
    assert len(tried) >= 32
    few = {name for name, count in tried.items() if count < examples}
    assert few <= {f"GET {path}" for path in NOTHING_TO_GET_WRONG}


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

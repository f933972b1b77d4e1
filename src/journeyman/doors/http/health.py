"""For whoever watches the service: is it alive, is it ready, and its metrics in Prometheus' text format."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from journeyman.app.service import Service
from journeyman.doors.http.auth import AUTHENTICATED
from journeyman.doors.http.errors import ErrorBody, Problem, answers
from journeyman.doors.http.operated import DeskDep, JsonRoute

router = APIRouter(tags=["health"], route_class=JsonRoute)

READY_SECONDS = 0.75
"""How long the store may take to answer when it is asked whether it is there."""
BOUNDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """What this process has counted since it began. Names and counts only."""

    def __init__(self) -> None:
        self._streams = 0
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._sums: dict[str, float] = defaultdict(float)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        bucket = next((number for number, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        self._seconds[route][bucket] += 1
        self._sums[route] += seconds

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Counts an event stream as open."""
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def text(self, *, gauges: Mapping[str, float], tools: Iterable[tuple[str, int, int]]) -> str:
        lines = ["# TYPE journeyman_http_requests_total counter"]
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{_quoted(method)}",route="{_quoted(route)}",status="{status}"'
            lines.append(f"journeyman_http_requests_total{{{labels}}} {count}")
        lines.append("# TYPE journeyman_http_request_seconds histogram")
        for route, counts in sorted(self._seconds.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                total += count
                lines.append(f'journeyman_http_request_seconds_bucket{{route="{_quoted(route)}",le="{bound}"}} {total}')
            lines.append(f'journeyman_http_request_seconds_sum{{route="{_quoted(route)}"}} {self._sums[route]:.6f}')
            lines.append(f'journeyman_http_request_seconds_count{{route="{_quoted(route)}"}} {total}')
        lines.append("# TYPE journeyman_tool_calls_total counter")
        for name, successes, failures in tools:
            for outcome, count in (("success", successes), ("failure", failures)):
                lines.append(f'journeyman_tool_calls_total{{tool="{_quoted(name)}",outcome="{outcome}"}} {count}')
        for name, value in {"event_streams": float(self._streams), **gauges}.items():
            lines += [f"# TYPE journeyman_{name} gauge", f"journeyman_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Readiness:
    """Whether the service can work, found out by one look at the store at a time, however many ask."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._looking: asyncio.Task[Ready] | None = None

    async def check(self) -> Ready:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            async with asyncio.timeout(READY_SECONDS):
                # A look goes on when whoever asked has been told: the store waits out a fault for longer.
                return await asyncio.shield(self._looking)
        except TimeoutError:
            raise Problem(503, "STORE_AWAY", "the store does not answer", recover_action="Try again later") from None

    async def _look(self) -> Ready:
        version, workers = await self._service.schema_version(), await self._service.workers()
        if workers == 0:
            raise Problem(
                503,
                "NO_WORKER",
                "no process carries out runs",
                recover_action="Start 'journeyman worker' with the same store",
            )
        followed = self._service.app.configuration
        state = None if followed is None else "refused" if followed.problems else "current"
        return Ready(schema_version=version, workers=workers, configuration=state)


class Alive(BaseModel):
    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    schema_version: int
    workers: int | None = Field(description="Processes that carry out runs; null where this one does.")
    configuration: Literal["current", "refused"] | None = Field(
        description="'refused': the configuration file was edited and cannot be used; null where there is none."
    )


@router.get("/healthz", summary="The process is alive")
async def alive() -> Alive:
    return Alive()


@router.get(
    "/readyz",
    summary="The service can work",
    responses={503: {"model": ErrorBody, "description": "The store is away, or nobody carries out runs"}},
)
async def ready(request: Request) -> Ready:
    """Says so within a second. A language model is not asked for: without one everything but chat works."""
    readiness: Readiness = request.app.state.readiness
    return await readiness.check()


for path, asked in (("/healthz", alive), ("/readyz", ready)):
    router.head(path, include_in_schema=False)(asked)


@router.get("/openapi.json", include_in_schema=False)
async def document(request: Request) -> JSONResponse:
    api: FastAPI = request.app
    root = request.scope.get("root_path", "")
    return JSONResponse({**api.openapi(), **({"servers": [{"url": root}]} if root else {})})


# As JSON, although the answer itself is text.
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": answer["description"],
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
    }
    for status, answer in answers().items()
}


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="For Prometheus",
    responses=_ERRORS,
    dependencies=AUTHENTICATED,
)
async def metrics(request: Request, desk: DeskDep) -> PlainTextResponse:
    """Runs and approvals are counted as far as you may see them: all with the permission 'runs:read'."""
    at_work, waiting = await desk.counts()
    library = desk.app.library
    tools = [(name, library.counts(name).success_count, library.counts(name).failure_count) for name in library.names()]
    counted: Metrics = request.app.state.metrics
    text = counted.text(gauges={"approvals_pending": waiting, "runs_unfinished": at_work}, tools=tools)
    instruments: Callable[[], str] | None = request.app.state.instruments
    if instruments is not None:
        text += await asyncio.to_thread(instruments)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

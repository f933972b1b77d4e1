"""For whoever watches the service: is it alive, is it ready, and its metrics in Prometheus' text format."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.runs import RunStatus
from journeyman.doors.http.auth import AUTHENTICATED
from journeyman.doors.http.common import ServiceDep
from journeyman.doors.http.errors import ErrorBody, answers

router = APIRouter(tags=["health"])

MOST_COUNTED = 1_000
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


async def _metrics(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


MetricsDep = Annotated[Metrics, Depends(_metrics)]


class Alive(BaseModel):
    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    schema_version: int


@router.get("/healthz", summary="The process is alive")
async def alive() -> Alive:
    return Alive()


@router.get(
    "/readyz", summary="The service can work", responses={503: {"model": ErrorBody, "description": "The store is away"}}
)
async def ready(service: ServiceDep) -> Ready:
    """A language model is not asked for: without one everything but chat works."""
    return Ready(schema_version=await service.store.schema_version())


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="For Prometheus",
    responses=answers(),
    dependencies=AUTHENTICATED,
)
async def metrics(service: ServiceDep, counted: MetricsDep) -> PlainTextResponse:
    store = service.store
    waiting = await store.approvals.list(status=ApprovalStatus.PENDING, limit=MOST_COUNTED)
    at_work = await store.runs.list(statuses={RunStatus.RUNNING, RunStatus.QUEUED}, limit=MOST_COUNTED)
    library = service.app.library
    tools = [(name, library.counts(name).success_count, library.counts(name).failure_count) for name in library.names()]
    text = counted.text(gauges={"approvals_pending": len(waiting), "runs_unfinished": len(at_work)}, tools=tools)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

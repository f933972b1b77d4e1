"""For whoever watches the service: is it alive, is it ready, what has it counted."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.errors import StoreError
from journeyman.core.runs import RunStatus
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.common import Counted, Here
from journeyman.doors.http.errors import ErrorBody, Problem, answers

router = APIRouter(tags=["health"])

MOST_COUNTED = 1_000


class Alive(BaseModel):
    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    schema_version: int


@router.get("/healthz", summary="The process is alive")
async def alive() -> Alive:
    return Alive()


@router.get(
    "/readyz",
    summary="The service can work",
    responses={503: {"model": ErrorBody, "description": "The store is away"}},
)
async def ready(service: Here) -> Ready:
    """A language model is not asked for: without one everything but chat works."""
    try:
        return Ready(schema_version=await service.store.schema_version())
    except StoreError:
        raise Problem(503, "STORE_AWAY", "the store cannot be used right now") from None


@router.get("/metrics", response_class=PlainTextResponse, summary="For Prometheus", responses=answers())
async def metrics(service: Here, counted: Counted, principal: Caller) -> PlainTextResponse:
    store = service.store
    waiting = await store.approvals.list(status=ApprovalStatus.PENDING, limit=MOST_COUNTED)
    at_work = await store.runs.list(statuses={RunStatus.RUNNING, RunStatus.QUEUED}, limit=MOST_COUNTED)
    library = service.app.library
    tools = [(name, library.counts(name).success_count, library.counts(name).failure_count) for name in library.names()]
    text = counted.text(gauges={"approvals_pending": len(waiting), "runs_unfinished": len(at_work)}, tools=tools)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

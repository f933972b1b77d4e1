"""Runs: how they stand, what they did, their events, and what a person does about them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, Field

from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.principals import Principal
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.doors.http.auth import DECIDE, Caller, must_hold, sees
from journeyman.doors.http.bodies import Body, JsonRoute
from journeyman.doors.http.chat import wants_json
from journeyman.doors.http.common import (
    PAGE_SIZE,
    Counted,
    Here,
    Id,
    Limit,
    Offset,
    Page,
    RunView,
    Storable,
    handle_of,
    own_run,
    page_of,
    pending,
    run_of,
    visible,
)
from journeyman.doors.http.errors import Problem, answers
from journeyman.doors.http.sse import last_event_id, shown, stream_run

router = APIRouter(prefix="/api/v1/runs", tags=["runs"], route_class=JsonRoute)

MOST_EVENTS = 1_000


class Runs(Page):
    runs: list[RunView]


class RunDetails(BaseModel):
    """One run, as it stands."""

    run: RunView
    task: str = Field(description="What was asked.")
    experiment: dict[str, str] | None = Field(description="Which arm of which live experiment it belongs to.")
    response: AgentResponse | None = Field(description="What it amounts to so far; null before it has begun.")
    approvals: list[Approval] = Field(description="What waits for a person.")
    unknown: list[ToolCallRecord] = Field(description="Calls that were under way when their process died.")


class Events(BaseModel):
    """Facts of a run, each once and in order."""

    events: list[dict[str, Any]]
    last_seq: int = Field(description="Give it as 'after' to get what comes next.")


class Resolution(Body):
    """What became of a call of which nobody knows whether it happened."""

    action: Literal["rerun", "done", "skip"] = Field(examples=["done"])
    result: Storable = Field(
        default=None, description="What a call that is done has returned.", examples=[{"id": "task_1"}]
    )


@router.get("", summary="Runs, newest first", responses=answers())
async def list_runs(
    service: Here,
    principal: Caller,
    status: Annotated[list[RunStatus] | None, Query(description="Only these. May be repeated.")] = None,
    session_id: Annotated[str | None, Query(max_length=128)] = None,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Runs:
    wanted = frozenset(status) if status else None
    runs = service.store.runs
    rows = await visible(
        lambda size, at: runs.list(statuses=wanted, session_id=session_id, limit=size, offset=at),
        lambda row: sees(principal, row.principal_id),
        limit=limit,
        offset=offset,
    )
    return Runs(runs=[RunView.of(row) for row in rows], **page_of(limit, offset))


@router.get("/{run_id}", summary="One run with its trace", responses=answers(404))
async def show_run(run_id: Id, service: Here, principal: Caller) -> RunDetails:
    row = await run_of(service, run_id, principal)
    handle = await service.app.handle(run_id)
    order = await service.store.runs.order(run_id)
    return RunDetails(
        run=RunView.of(row),
        task="" if order is None else order.task.description,
        experiment=None if order is None else order.task.metadata.get("experiment"),
        response=await handle.so_far(),
        approvals=await pending(service, run_id),
        unknown=list(await handle.unknown()),
    )


@router.get(
    "/{run_id}/events",
    summary="A run's events, from any point on",
    response_model=Events,
    responses={
        **answers(404),
        200: {
            "description": "A stream to the end of the run; with 'Accept: application/json' the facts so far.",
            "model": Events,
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
    },
)
async def run_events(
    run_id: Id,
    service: Here,
    principal: Caller,
    metrics: Counted,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="The last event you have.")] = 0,
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
) -> Any:
    handle = await handle_of(service, run_id, principal)
    after = max(after, last_event_id(last))
    if not wants_json(accept):
        return stream_run(handle, after=after, metrics=metrics, headers={"X-Run-ID": run_id})
    facts = await service.store.runs.facts(run_id, after=after, limit=MOST_EVENTS)
    return Events(events=[shown(fact) for fact in facts], last_seq=facts[-1].seq or after if facts else after)


@router.post("/{run_id}/cancel", summary="End a run, wherever it is worked on", responses=answers(404, 409))
async def cancel_run(run_id: Id, service: Here, principal: Caller) -> RunView:
    await _must_be_unfinished(service, run_id, principal)
    await (await service.app.handle(run_id)).cancel()
    return RunView.of(await run_of(service, run_id, principal))


@router.post("/{run_id}/resume", summary="Take a run up again here", responses=answers(404, 409))
async def resume_run(run_id: Id, service: Here, principal: Caller) -> RunView:
    """For a run that nobody works on. One that waits for a person goes on waiting."""
    await _must_be_unfinished(service, run_id, principal)
    await service.app.resume(run_id)
    return RunView.of(await run_of(service, run_id, principal))


@router.post(
    "/{run_id}/calls/{call_id}/resolve",
    summary="Say what became of a call whose outcome is unknown",
    responses=answers(404, 409),
)
async def resolve_call(run_id: Id, call_id: Id, said: Resolution, service: Here, principal: Caller) -> RunView:
    """Needs the permission 'approvals:decide': like an approval, it is a person's word."""
    await run_of(service, run_id, principal, also=DECIDE)
    must_hold(principal, DECIDE)
    handle = await service.app.handle(run_id)
    if call_id not in [record.call_id for record in await handle.unknown()]:
        raise Problem(409, "CALL_NOT_UNKNOWN", f"call {call_id!r} of run {run_id!r} has no unknown outcome")
    await handle.resolve(call_id, said.action, result=said.result, by=principal.id)
    await service.app.resume(run_id)
    return RunView.of(await run_of(service, run_id, principal, also=DECIDE))


async def _must_be_unfinished(service: Service, run_id: str, principal: Principal) -> None:
    row = await own_run(service, run_id, principal)
    if row.status.ended:
        raise Problem(409, "RUN_ENDED", f"run {run_id!r} is {row.status.value} already")

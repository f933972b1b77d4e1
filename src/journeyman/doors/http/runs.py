"""Runs: how they stand, what they did, their events, and what a person does about them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from journeyman.app.desk import Desk, NotFoundError
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.labels import LONGEST_NOTE, Label, Rating
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.http.common import PAGE_SIZE, Body, DeskDep, Id, JsonRoute, Limit, Offset, Page, Storable, page_of
from journeyman.doors.http.errors import answers
from journeyman.doors.http.health import MetricsDep
from journeyman.doors.http.sse import EVENTS, LastEventId, last_event_id, shown, stream_run, wants_json

router = APIRouter(prefix="/api/v1/runs", tags=["runs"], route_class=JsonRoute)

MOST_EVENTS = 1_000
ARTIFACT_CHARS = 262_144
"""Of a large result, read at a time."""
MOST_STEPS = 500
"""Of one run in one answer, the latest ones. Writing tens of thousands would hold up everybody else."""


class RunView(BaseModel):
    """Where a run stands."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    task_id: str
    agent: str = Field(validation_alias="agent_name")
    session_id: str | None
    principal: str | None = Field(validation_alias="principal_id")
    status: RunStatus
    last_seq: int = Field(description="The number of its latest fact.")
    created_at: float = Field(description="Seconds since the epoch.")
    updated_at: float
    position: int | None = Field(
        default=None, description="For a queued run that has not begun: its place in the queue, 1 being the next."
    )
    deaths: int = Field(description="How many processes in a row have died while they worked on it.")
    trouble: str | None = Field(description="Why it is stuck, or why no process that tried can go on with it.")


class Runs(Page):
    runs: list[RunView]


class RunDetails(BaseModel):
    """One run, as it stands."""

    run: RunView
    task: str = Field(description="What was asked.")
    experiment: dict[str, str] | None = Field(description="Which arm of which live experiment it belongs to.")
    response: AgentResponse | None = Field(description="What it amounts to so far; null before it has begun.")
    steps_left_out: int = Field(description="Earlier steps that 'response' leaves out; the events have them all.")
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


class Labels(BaseModel):
    """What is said of a run."""

    labels: list[Label]


class RatingBody(Body):
    """Whether a run did what was asked."""

    rating: Rating = Field(examples=["good"])
    note: str = Field(default="", max_length=LONGEST_NOTE, description="What was right or wrong with it.")


async def _view(row: RunRow, desk: Desk) -> RunView:
    view = RunView.model_validate(row)
    if row.status is RunStatus.QUEUED:
        view.position = await desk.app.runner.position(row.id)
    return view


def _latest(response: AgentResponse) -> AgentResponse:
    if response.total_iterations <= MOST_STEPS:
        return response
    kept = {
        "structured_trace": response.structured_trace[-MOST_STEPS:],
        "messages": response.messages[-2 * MOST_STEPS :],
    }
    return response.model_copy(update=kept)


@router.get("", summary="Runs, newest first", responses=answers())
async def list_runs(
    desk: DeskDep,
    status: Annotated[list[RunStatus] | None, Query(description="Only these. May be repeated.")] = None,
    session_id: Annotated[str | None, Query(max_length=128)] = None,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Runs:
    rows = await desk.runs(statuses=status or None, session_id=session_id, limit=limit, offset=offset)
    return Runs(runs=[await _view(row, desk) for row in rows], **page_of(limit, offset))


@router.get("/{run_id}", summary="One run with its trace", responses=answers(404))
async def show_run(run_id: Id, desk: DeskDep) -> RunDetails:
    row = await desk.run(run_id)
    handle = await desk.app.handle(row.id)
    order = await desk.app.store.runs.order(row.id)
    response = await handle.so_far()
    return RunDetails(
        run=await _view(row, desk),
        task="" if order is None else order.task.description,
        experiment=None if order is None else order.task.metadata.get("experiment"),
        response=None if response is None else _latest(response),
        steps_left_out=0 if response is None else max(0, response.total_iterations - MOST_STEPS),
        approvals=list(await desk.app.approvals.pending(run_id=row.id)),
        unknown=list(await handle.unknown()),
    )


@router.get(
    "/{run_id}/events",
    summary="A run's events, from any point on",
    response_model=Events,
    responses={
        **answers(404),
        204: {"description": "For a client that comes back with Last-Event-ID to a run that has nothing more to tell."},
        200: {
            "description": "A stream to the end of the run; with 'Accept: application/json' the facts so far.",
            "model": Events,
            "content": {"text/event-stream": {"schema": EVENTS}},
        },
    },
)
async def run_events(
    run_id: Id,
    desk: DeskDep,
    metrics: MetricsDep,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="The last event you have.")] = 0,
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    last: LastEventId = "",
) -> Any:
    row = await desk.run(run_id)
    run_id = row.id
    after = max(after, last_event_id(last))
    if not wants_json(accept):
        if last and row.status.ended and row.last_seq <= after:
            return Response(status_code=204)
        return stream_run(await desk.app.handle(run_id), after=after, metrics=metrics, headers={"X-Run-ID": run_id})
    facts = await desk.app.store.runs.facts(run_id, after=after, limit=MOST_EVENTS)
    return Events(events=[shown(fact) for fact in facts], last_seq=facts[-1].seq or after if facts else after)


@router.get(
    "/{run_id}/artifacts/{artifact_id}",
    summary="The whole of a result that is kept apart",
    response_class=StreamingResponse,
    responses={**answers(404), 200: {"description": "Its text.", "content": {"text/plain": {}}}},
)
async def read_artifact(run_id: Id, artifact_id: Id, desk: DeskDep) -> StreamingResponse:
    """Records of calls name it as their 'artifact', with its first and last characters."""
    await desk.run(run_id)
    read = desk.app.store.artifacts.read
    first = await read(run_id, artifact_id, length=ARTIFACT_CHARS)
    if first is None:
        raise NotFoundError("artifact", artifact_id)

    async def parts(part: str, offset: int = 0) -> AsyncIterator[bytes]:
        while part:
            yield part.encode()
            offset += len(part)
            part = await read(run_id, artifact_id, offset=offset, length=ARTIFACT_CHARS) or ""

    return StreamingResponse(parts(first), media_type="text/plain; charset=utf-8")


@router.post("/{run_id}/cancel", summary="End a run, wherever it is worked on", responses=answers(404, 409))
async def cancel_run(run_id: Id, desk: DeskDep) -> RunView:
    return await _view(await desk.cancel(run_id), desk)


@router.post("/{run_id}/resume", summary="Take a run up again here", responses=answers(404, 409))
async def resume_run(run_id: Id, desk: DeskDep) -> RunView:
    """For a run that nobody works on. One that waits for a person goes on waiting; one that is stuck is tried again."""
    return await _view(await desk.resume(run_id), desk)


@router.post(
    "/{run_id}/calls/{call_id}/resolve",
    summary="Say what became of a call whose outcome is unknown",
    responses=answers(404, 409),
)
async def resolve_call(run_id: Id, call_id: Id, body: Resolution, desk: DeskDep) -> RunView:
    """Needs the permission 'approvals:decide': like an approval, it is a person's word."""
    return await _view(await desk.resolve(run_id, call_id, body.action, result=body.result), desk)


@router.get("/{run_id}/labels", summary="What people and the verifier say of a run", responses=answers(404))
async def run_labels(run_id: Id, desk: DeskDep) -> Labels:
    """Ratings, the verdict of the agent's 'verify', decisions on its calls: the most reliable first."""
    handle = await desk.app.handle((await desk.run(run_id)).id)
    return Labels(labels=list(await handle.labels()))


@router.post("/{run_id}/rating", summary="Say whether an ended run did what was asked", responses=answers(404, 409))
async def rate_run(run_id: Id, body: RatingBody, desk: DeskDep) -> Label:
    """For whoever it was asked for, or with the permission 'runs:write'. A second rating by the same person replaces
    the first, and the same one again changes nothing."""
    return await desk.rate(run_id, body.rating, note=body.note)

"""Chains of calls, and single calls, which are chains of one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from journeyman.app.chains import MOST_STEPS, literal, start_chain
from journeyman.app.durable import Handle
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import ConfigurationError, ErrorInfo
from journeyman.core.principals import Principal
from journeyman.core.runs import RunStatus
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.bodies import Body, JsonRoute
from journeyman.doors.http.common import Here, Object, SessionId, must_own_session
from journeyman.doors.http.errors import FieldError, Problem, answers
from journeyman.doors.http.waiting import outcome

router = APIRouter(prefix="/api/v1", tags=["tools"], route_class=JsonRoute)

WAITING: dict[int | str, dict[str, Any]] = {202: {"description": "It waits for a person"}}


class Step(Body):
    """One call. '$NAME' is a field of the latest result that has it, '$N.path' one of step N's, '$$' a dollar sign."""

    tool: str = Field(min_length=1, max_length=128, examples=["create_task"])
    args: Object = Field(default_factory=dict, examples=[{"title": "Review", "description": "costs $$5"}])


class ChainRequest(Body):
    steps: list[Step] = Field(min_length=1, max_length=MOST_STEPS)
    session_id: SessionId | None = Field(default=None, description="What was allowed for this session holds.")


class ChainAnswer(BaseModel):
    """How far a chain has come. It is a run: everything about it is under /api/v1/runs."""

    run_id: str
    status: RunStatus
    results: list[Any] = Field(description="Of the steps that are done, in order.")
    error: ErrorInfo | None
    approvals: list[Approval] = Field(description="What must be decided before it goes on.")
    unknown: list[ToolCallRecord] = Field(description="Calls whose outcome must be told before it goes on.")
    blocked_by: str | None = Field(description="For 'queued': the earlier run of the session that these belong to.")


class CallRequest(Body):
    arguments: Object = Field(default_factory=dict, examples=[{"title": "Buy milk"}])
    session_id: SessionId | None = Field(default=None, description="What was allowed for this session holds.")


class CallAnswer(BaseModel):
    """What became of a call."""

    run_id: str
    status: RunStatus
    record: ToolCallRecord | None = Field(description="Null as long as it waits for a person.")
    approvals: list[Approval] = Field(description="What must be decided before it goes on.")
    unknown: list[ToolCallRecord] = Field(description="Calls whose outcome must be told before it goes on.")
    blocked_by: str | None = Field(description="For 'queued': the earlier run of the session that these belong to.")


@router.post("/chains", summary="Call tools one after another", responses={**answers(404, 409), **WAITING})
async def run_chain(said: ChainRequest, response: Response, service: Here, principal: Caller) -> ChainAnswer:
    """Answers when the chain has ended (200) or needs a person (202)."""
    handle = await _started(service, said.steps, principal, said.session_id)
    found = await outcome(service, handle, said.session_id)
    response.status_code = 200 if found.status.ended else 202
    return ChainAnswer(
        run_id=handle.run_id,
        status=found.status,
        results=[record.result for record in found.calls if record.success],
        error=None if found.response is None else found.response.error,
        approvals=found.approvals,
        unknown=found.unknown,
        blocked_by=found.blocked_by,
    )


@router.post("/tools/{name}/call", summary="Call one tool", responses={**answers(404, 409), **WAITING})
async def call_tool(name: str, said: CallRequest, response: Response, service: Here, principal: Caller) -> CallAnswer:
    """Governed like any other call. Answers when it has ended (200), well or not, or needs a person (202)."""
    if name not in service.app.library:
        raise tool_not_found(service, name)
    handle = await _started(service, [Step(tool=name, args=literal(said.arguments))], principal, said.session_id)
    found = await outcome(service, handle, said.session_id)
    response.status_code = 200 if found.status.ended else 202
    return CallAnswer(
        run_id=handle.run_id,
        status=found.status,
        record=next(iter(found.calls), None),
        approvals=found.approvals,
        unknown=found.unknown,
        blocked_by=found.blocked_by,
    )


def tool_not_found(service: Service, name: str) -> Problem:
    near = service.app.library.nearest(name)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
    return Problem(404, "TOOL_NOT_FOUND", f"there is no tool {name!r}{hint}")


async def _started(service: Service, steps: list[Step], principal: Principal, session_id: str | None) -> Handle:
    if session_id is not None:
        await must_own_session(service, session_id, principal, new=True)
    try:
        return await start_chain(
            service.app, [step.model_dump() for step in steps], principal=principal, session_id=session_id
        )
    except ConfigurationError as error:
        fields = [FieldError(field="steps", message=str(error))]
        raise Problem(422, "INVALID_CHAIN", str(error), fields=fields) from None

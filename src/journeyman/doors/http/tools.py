"""Calling tools, one by one or in chains."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from fastapi import APIRouter, Response
from pydantic import Field

from journeyman.app.chains import MOST_STEPS, literal, start_chain
from journeyman.app.desk import Desk, InvalidInputError, Outcome
from journeyman.app.operations.service import unknown_tool
from journeyman.app.operations.table import Body, Object, SessionId
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import ConfigurationError, ErrorInfo
from journeyman.core.storing import ChainStep, RunOrder
from journeyman.doors.http.common import DeskDep, IdempotencyKey, JsonRoute, RunAnswer, answer_fields
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1", tags=["tools"], route_class=JsonRoute)

WAITING: dict[int | str, dict[str, Any]] = {202: {"description": "It waits for a person"}}


class Step(Body):
    """One call. '$NAME' is a field of the latest result that has it, '$N.path' one of step N's, '$$' a dollar sign."""

    tool: str = Field(min_length=1, max_length=128, examples=["create_task"])
    args: Object = Field(default_factory=dict, examples=[{"title": "Review", "description": "costs $$5"}])


class ChainRequest(Body):
    steps: list[Step] = Field(min_length=1, max_length=MOST_STEPS)
    session_id: SessionId | None = Field(default=None, description="What was allowed for this session holds.")


class ChainAnswer(RunAnswer):
    """How far a chain has come. It is a run: everything about it is under /api/v1/runs."""

    results: list[Any] = Field(description="Of the steps that are done, in order.")
    error: ErrorInfo | None


class CallRequest(Body):
    arguments: Object = Field(default_factory=dict, examples=[{"title": "Buy milk"}])
    session_id: SessionId | None = Field(default=None, description="What was allowed for this session holds.")


class CallAnswer(RunAnswer):
    """What became of a call."""

    record: ToolCallRecord | None = Field(description="Null as long as it waits for a person.")


@router.post("/chains", summary="Call tools one after another", responses={**answers(404, 409), **WAITING})
async def run_chain(body: ChainRequest, response: Response, desk: DeskDep, key: IdempotencyKey = None) -> ChainAnswer:
    """Answers when the chain has ended (200) or needs a person (202)."""
    run_id, outcome = await _carried_out(desk, body.steps, body.session_id, key=key)
    response.status_code = 202 if outcome.kind == "waiting" else 200
    handle = await desk.app.handle(run_id)
    return ChainAnswer(
        **answer_fields(run_id, outcome),
        results=[await handle.whole(record) for record in outcome.calls if record.success],
        error=None if outcome.response is None else outcome.response.error,
    )


@router.post("/tools/{name}/call", summary="Call one tool", responses={**answers(404, 409), **WAITING})
async def call_tool(
    name: str, body: CallRequest, response: Response, desk: DeskDep, key: IdempotencyKey = None
) -> CallAnswer:
    """Governed like any other call. Answers when it has ended (200), well or not, or needs a person (202)."""
    if name not in desk.app.library:
        raise unknown_tool(desk, name)
    step = Step(tool=name, args=literal(body.arguments))
    run_id, outcome = await _carried_out(desk, [step], body.session_id, key=key)
    response.status_code = 202 if outcome.kind == "waiting" else 200
    return CallAnswer(**answer_fields(run_id, outcome), record=next(iter(outcome.calls), None))


async def _carried_out(
    desk: Desk, steps: list[Step], session_id: str | None, *, key: str | None
) -> tuple[str, Outcome]:
    chain = [ChainStep(tool=step.tool, args=step.args) for step in steps]
    run_id = desk.run_id_for("chains", key)

    def same(order: RunOrder) -> bool:
        return list(order.chain) == chain and order.task.session_id == session_id

    if run_id is not None and await desk.begun_before(run_id, same=same) is not None:
        return run_id, await desk.outcome(await desk.app.handle(run_id), session_id=session_id)
    try:
        async with nullcontext() if session_id is None else desk.begins_in(session_id):
            handle = await start_chain(desk.app, chain, principal=desk.principal, session_id=session_id, run_id=run_id)
    except ConfigurationError as error:
        raise InvalidInputError("INVALID_CHAIN", "steps", str(error)) from None
    if run_id is not None:  # the key may have come with another call at the same time
        await desk.begun_before(run_id, same=same)
    return handle.run_id, await desk.outcome(handle, session_id=session_id)

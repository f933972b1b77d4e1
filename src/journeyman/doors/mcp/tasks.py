"""Calls as tasks (the extension ``io.modelcontextprotocol/tasks``): a task is the run of its call, under the same id.

So it is durable, survives this process, and is seen by its principal only. What it waits for is told where the client
can answer it: a tool's questions, and approvals where its user may decide. Other people decide elsewhere meanwhile.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import Field, ValidationError

from journeyman.app.desk import Desk, DeskError
from journeyman.app.handles import Handle
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.mcp.asking import Context, missing_capability
from journeyman.doors.mcp.calls import DOOR, TASKS, Calls, knows_tasks, question, task_fields

CRASHED = "TOOL_RAISED"
"""The code of a call whose function failed in a way that it does not tell of itself: a fault of the server."""


class TaskParams(types.RequestParams):
    """Of the requests about a task."""

    task_id: str
    input_responses: dict[str, Any] = Field(default_factory=dict)


class Tasks:
    """Answers requests about tasks."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def get(self, ctx: Context, desk: Desk, params: TaskParams) -> dict[str, Any]:
        """How a task stands, with its result or with what it waits for."""
        row, handle = await self._task(ctx, desk, params)
        if row.status.ended:
            return await self._ended(desk, row, handle)
        asking = self._calls.asking.get(row.id)
        asked = {} if asking is None else {f"{asking.question}.{key}": each for key, each in asking.requests.items()}
        blockers = await desk.blockers(row)
        if blockers.unattended:  # its process is gone
            await desk.app.resume(row.id)
        for approval in blockers.approvals:
            if self._calls.may_ask(ctx, desk, approval):
                asked[approval.id] = types.ElicitRequest(params=question(approval))
        if asked:
            requests = {key: _wire(each) for key, each in asked.items()}
            return {**task_fields(row, "input_required"), "inputRequests": requests}
        fields = task_fields(row, "working")
        if row.status.waiting:
            fields["statusMessage"] = self._calls.waiting(row.id, await desk.outcome(handle, session_id=None))
        return fields

    async def _ended(self, desk: Desk, row: RunRow, handle: Handle) -> dict[str, Any]:
        if row.status is RunStatus.CANCELLED:
            return task_fields(row, "cancelled")
        outcome = await desk.outcome(handle, session_id=None)
        record = next(iter(outcome.calls), None)
        if record is not None and (record.error is None or record.error.code != CRASHED):
            try:
                result = await self._calls.result(desk, handle, outcome, None)
                return {**task_fields(row, "completed"), "result": _wire(result)}
            except MCPError as error:
                code, why = error.code, error.message
        else:
            failed = None if outcome.response is None else outcome.response.error
            error_of = failed if record is None else record.error
            code, why = types.INTERNAL_ERROR, "the call was not made" if error_of is None else error_of.message
        return {**task_fields(row, "failed"), "error": {"code": code, "message": why}}

    async def update(self, ctx: Context, desk: Desk, params: TaskParams) -> dict[str, Any]:
        """Take the user's answers; what is not asked is ignored."""
        row, _ = await self._task(ctx, desk, params)
        asking = self._calls.asking.get(row.id)
        if asking is not None and asking.asked.is_set():
            start = f"{asking.question}."
            asking.answer(
                {key.removeprefix(start): each for key, each in params.input_responses.items() if start in key}
            )
        for approval in await desk.approvals(run_id=row.id):
            if (given := params.input_responses.get(approval.id)) is None or not self._calls.may_ask(
                ctx, desk, approval
            ):
                continue
            with suppress(ValidationError):
                given = types.ElicitResult.model_validate(given, by_name=False)
            await self._calls.decide(desk, approval.id, given)
        return {}

    async def cancel(self, ctx: Context, desk: Desk, params: TaskParams) -> dict[str, Any]:
        """End a task; one that has ended stays as it is."""
        row, _ = await self._task(ctx, desk, params)
        with suppress(DeskError):
            await desk.cancel(row.id)
        return {}

    async def _task(self, ctx: Context, desk: Desk, params: TaskParams) -> tuple[RunRow, Handle]:
        if not knows_tasks(ctx):
            raise missing_capability({"extensions": {TASKS: {}}}, "the client has not said that it knows tasks")
        named = None if ctx.request is None else ctx.request.headers.get("mcp-name", "")
        if named is not None and named.strip() != params.task_id:
            raise MCPError(types.HEADER_MISMATCH, "the header Mcp-Name must be the task's id")
        order, row = await desk.own_order(params.task_id), await desk.own_run(params.task_id)
        if order is None or row is None or DOOR not in order.task.metadata:
            raise MCPError(types.INVALID_PARAMS, f"there is no task {params.task_id[:100]!r}")
        return row, await desk.app.handle(row.id)


def _wire(entity: Any) -> Any:
    return entity.model_dump(by_alias=True, mode="json", exclude_none=True)

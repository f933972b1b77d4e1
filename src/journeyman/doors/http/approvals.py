"""Approvals: what waits for a person, their decisions, and what they allowed for a whole session."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from journeyman.app.desk import DECIDE
from journeyman.core.approvals import Approval, Grant
from journeyman.core.audit import AuditRow
from journeyman.core.data import storable_json
from journeyman.doors.http.common import (
    PAGE_SIZE,
    Body,
    DeskDep,
    Id,
    JsonRoute,
    Limit,
    Object,
    Offset,
    Page,
    page_of,
    read_json,
    refused,
)
from journeyman.doors.http.errors import answers, not_found

router = APIRouter(prefix="/api/v1", tags=["approvals"], route_class=JsonRoute)


class Approvals(Page):
    approvals: list[Approval]


class Approving(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "properties": {"arguments": {"type": "object"}, "arguments_json": {"type": "string"}},
                "required": ["arguments", "arguments_json"],
            }
        }
    )

    arguments: Object | None = Field(
        default=None, description="Run the tool with these instead.", examples=[{"task_id": "task_1"}]
    )
    arguments_json: str | None = Field(
        default=None,
        description="The same as JSON text, for programs that cannot keep every digit of a number: one of the two.",
        json_schema_extra={"contentMediaType": "application/json"},
        examples=['{"task_id":"task_1"}'],
    )
    for_session: bool = Field(
        default=False,
        description="Also allow this tool in its session, as often and as long as the approval's `grant` says.",
    )

    def edited(self) -> dict[str, Any] | None:
        """What to run instead. Raises a Problem."""
        if self.arguments_json is None:
            return self.arguments
        if self.arguments is not None:
            raise refused("arguments_json", "give it or 'arguments', not both")
        value = read_json(self.arguments_json.encode("utf-8", "surrogatepass"), place="arguments_json", once=True)
        if not isinstance(value, dict):
            raise refused("arguments_json", "it is not a JSON object")
        try:
            storable_json(value)
        except ValueError as error:
            raise refused("arguments_json", str(error)) from None
        return value


class Denying(Body):
    reason: str = Field(default="", max_length=2_000, description="The model sees it.", examples=["Not on a Friday"])


class Grants(BaseModel):
    grants: list[Grant]


class Audit(BaseModel):
    rows: list[AuditRow]


@router.get("/approvals", summary="What waits for a person, oldest first", responses=answers())
async def list_approvals(
    desk: DeskDep,
    status: Annotated[Literal["pending", "all"], Query(description="Only what waits, or everything.")] = "pending",
    run_id: Annotated[str | None, Query(max_length=128)] = None,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Approvals:
    found = await desk.approvals(pending=status == "pending", run_id=run_id, limit=limit, offset=offset)
    return Approvals(approvals=list(found), **page_of(limit, offset))


@router.get("/approvals/{approval_id}", summary="One approval", responses=answers(404))
async def show_approval(approval_id: Id, desk: DeskDep) -> Approval:
    return await desk.approval(approval_id)


@router.post("/approvals/{approval_id}/approve", summary="Allow exactly this call", responses=answers(404, 409))
async def approve(approval_id: Id, body: Approving, desk: DeskDep) -> Approval:
    """Needs the permission 'approvals:decide'. Decided once: of two people who decide at once, one wins."""
    return await desk.approve(approval_id, arguments=body.edited(), for_session=body.for_session)


@router.post("/approvals/{approval_id}/deny", summary="Refuse this call", responses=answers(404, 409))
async def deny(approval_id: Id, body: Denying, desk: DeskDep) -> Approval:
    """Needs the permission 'approvals:decide'."""
    return await desk.deny(approval_id, reason=body.reason)


@router.get("/grants", summary="What is allowed without asking, by session", responses=answers())
async def list_grants(desk: DeskDep, session_id: Annotated[str | None, Query(max_length=128)] = None) -> Grants:
    desk.must_hold(DECIDE)
    return Grants(grants=list(await desk.app.approvals.grants(session_id=session_id)))


@router.delete("/grants/{grant_id}", status_code=204, summary="Ask again from now on", responses=answers(404))
async def revoke_grant(grant_id: Id, desk: DeskDep) -> None:
    desk.must_hold(DECIDE)
    if not await desk.app.approvals.revoke(grant_id, by=desk.principal.id):
        raise not_found("grant", recover_action="It may have been used up or revoked; list those in force")


@router.get("/audit", summary="Who decided or was refused what, oldest first", responses=answers())
async def list_audit(
    desk: DeskDep,
    after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    actor: Annotated[str | None, Query(max_length=255, description="Only what this principal did.")] = None,
    kind: Annotated[str | None, Query(max_length=64, description="Only rows of this kind.")] = None,
    limit: Limit = PAGE_SIZE,
) -> Audit:
    """Needs the permission 'audit:read'. Each row's hash covers the row and the hash before it; its mac, where there is
    a key, that hash and the mac before it."""
    desk.must_hold("audit:read")
    return Audit(rows=list(await desk.app.store.audit.list(after=after, limit=limit, actor=actor, kind=kind)))

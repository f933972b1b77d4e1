"""Approvals: what waits for a person, their decisions, and what they allowed for a whole session."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from journeyman.app.service import Service
from journeyman.core.approvals import Approval, Grant
from journeyman.core.audit import AuditRow
from journeyman.core.principals import Principal
from journeyman.doors.http.auth import DECIDE, Caller, must_hold, sees
from journeyman.doors.http.bodies import Body, JsonRoute
from journeyman.doors.http.common import (
    LARGEST_PAGE,
    PAGE_SIZE,
    Here,
    Id,
    Limit,
    Object,
    Offset,
    Page,
    page_of,
    visible,
)
from journeyman.doors.http.errors import Problem, answers

router = APIRouter(prefix="/api/v1", tags=["approvals"], route_class=JsonRoute)


class Approvals(Page):
    approvals: list[Approval]


class Approving(Body):
    arguments: Object | None = Field(
        default=None, description="Run the tool with these instead.", examples=[{"task_id": "task_1"}]
    )
    for_session: bool = Field(default=False, description="Also allow this tool for the rest of its session.")


class Denying(Body):
    reason: str = Field(default="", max_length=2_000, description="The model sees it.", examples=["Not on a Friday"])


class Grants(BaseModel):
    grants: list[Grant]


class Audit(BaseModel):
    rows: list[AuditRow]


@router.get("/approvals", summary="What waits for a person, oldest first", responses=answers())
async def list_approvals(
    service: Here,
    principal: Caller,
    status: Annotated[Literal["pending", "all"], Query(description="Only what waits, or everything.")] = "pending",
    run_id: Annotated[str | None, Query(max_length=128)] = None,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Approvals:
    desk, store = service.app.approvals, service.store.approvals
    if status == "pending":
        # What has expired meanwhile no longer waits.
        waiting = list(await desk.pending(run_id=run_id, limit=10 * LARGEST_PAGE + offset))
        mine = [item for item in waiting if _sees(principal, item)]
        return Approvals(approvals=mine[offset : offset + limit], **page_of(limit, offset))
    found = await visible(
        lambda size, at: store.list(run_id=run_id, limit=size, offset=at),
        lambda item: _sees(principal, item),
        limit=limit,
        offset=offset,
    )
    return Approvals(approvals=found, **page_of(limit, offset))


@router.get("/approvals/{approval_id}", summary="One approval", responses=answers(404))
async def show_approval(approval_id: Id, service: Here, principal: Caller) -> Approval:
    return await _found(service, approval_id, principal)


@router.post("/approvals/{approval_id}/approve", summary="Allow exactly this call", responses=answers(404, 409))
async def approve(approval_id: Id, said: Approving, service: Here, principal: Caller) -> Approval:
    """Needs the permission 'approvals:decide'. Decided once: of two people who decide at once, one wins."""
    await _found(service, approval_id, principal)
    must_hold(principal, DECIDE)
    decided = await service.app.approvals.approve(
        approval_id, by=principal.id, arguments=said.arguments, for_session=said.for_session
    )
    await _go_on(service, decided)
    return decided


@router.post("/approvals/{approval_id}/deny", summary="Refuse this call", responses=answers(404, 409))
async def deny(approval_id: Id, said: Denying, service: Here, principal: Caller) -> Approval:
    """Needs the permission 'approvals:decide'."""
    await _found(service, approval_id, principal)
    must_hold(principal, DECIDE)
    decided = await service.app.approvals.deny(approval_id, by=principal.id, reason=said.reason)
    await _go_on(service, decided)
    return decided


@router.get("/grants", summary="What is allowed without asking, by session", responses=answers())
async def list_grants(
    service: Here, principal: Caller, session_id: Annotated[str | None, Query(max_length=128)] = None
) -> Grants:
    must_hold(principal, DECIDE)
    return Grants(grants=list(await service.app.approvals.grants(session_id=session_id)))


@router.delete("/grants/{grant_id}", status_code=204, summary="Ask again from now on", responses=answers(404))
async def revoke_grant(grant_id: Id, service: Here, principal: Caller) -> None:
    must_hold(principal, DECIDE)
    if not await service.app.approvals.revoke(grant_id, by=principal.id):
        raise Problem(404, "GRANT_NOT_FOUND", f"there is no grant {grant_id!r} in force")


@router.get("/audit", summary="Who decided or was refused what, oldest first", responses=answers())
async def list_audit(
    service: Here, principal: Caller, after: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0, limit: Limit = PAGE_SIZE
) -> Audit:
    """Needs the permission 'audit:read'. Each row's hash covers the row and the hash before it."""
    must_hold(principal, "audit:read")
    return Audit(rows=list(await service.store.audit.list(after=after, limit=limit)))


def _sees(principal: Principal, approval: Approval) -> bool:
    owner = None if approval.principal is None else approval.principal.id
    return sees(principal, owner) or principal.may(DECIDE)


async def _found(service: Service, approval_id: str, principal: Principal) -> Approval:
    approval = await service.app.approvals.get(approval_id)
    if approval is None or not _sees(principal, approval):
        raise Problem(404, "APPROVAL_NOT_FOUND", f"there is no approval {approval_id!r}")
    return approval


async def _go_on(service: Service, decided: Approval) -> None:
    """The run may have been begun by a process that is gone; then it is for this one to go on."""
    await service.app.resume(decided.run_id)

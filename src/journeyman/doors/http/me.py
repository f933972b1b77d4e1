"""Who is asking, and what they may do here: so that a page offers what will be allowed and nothing else."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from journeyman.app.desk import DECIDE, GAPS_WRITE, MEMORY_WRITE, TASKS_WRITE
from journeyman.core.runs import CHAT_MESSAGE_LIMIT
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.common import JsonRoute
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/me", tags=["service"], route_class=JsonRoute)


class Me(BaseModel):
    """The caller."""

    id: str = Field(examples=["ada"])
    permissions: list[str] = Field(examples=[["approvals:decide"]])
    can_decide: bool = Field(description="About approvals and calls of unknown outcome.")
    can_read_audit: bool
    can_change_tasks: bool
    can_change_memory: bool
    can_change_experiments: bool
    can_dismiss_gaps: bool
    message_limit: int = Field(description="Characters that a message of a chat may have.")


@router.get("", summary="Who you are to this service", responses=answers())
async def me(principal: Caller) -> Me:
    return Me(
        id=principal.id,
        permissions=sorted(principal.permissions),
        can_decide=principal.may(DECIDE),
        can_read_audit=principal.may("audit:read"),
        can_change_tasks=principal.may(TASKS_WRITE),
        can_change_memory=principal.may(MEMORY_WRITE),
        can_change_experiments=principal.may("experiments:write"),
        can_dismiss_gaps=principal.may(GAPS_WRITE),
        message_limit=CHAT_MESSAGE_LIMIT,
    )

"""Sessions: the stored conversations."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from journeyman.doors.http.common import PAGE_SIZE, DeskDep, Limit, Offset, Page, page_of
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/sessions", tags=["sessions"])


class SessionView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    principal: str | None = Field(validation_alias="principal_id")
    created_at: float
    updated_at: float
    message_count: int


class Sessions(Page):
    sessions: list[SessionView]


@router.get("", summary="Your sessions, most recently used first", responses=answers())
async def list_sessions(desk: DeskDep, limit: Limit = PAGE_SIZE, offset: Offset = 0) -> Sessions:
    rows = await desk.sessions(limit=limit, offset=offset)
    return Sessions(sessions=[SessionView.model_validate(row) for row in rows], **page_of(limit, offset))


@router.delete("/{session_id}", status_code=204, summary="Forget what was said", responses=answers(404, 409))
async def delete_session(session_id: str, desk: DeskDep) -> None:
    """Its messages are gone and what was allowed for it is revoked. A session at work is refused: cancel its run."""
    await desk.delete_session(session_id)

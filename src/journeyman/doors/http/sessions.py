"""Sessions: the stored conversations."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from journeyman.core.conversations import SessionRow
from journeyman.doors.http.auth import Caller, sees
from journeyman.doors.http.common import (
    PAGE_SIZE,
    UNFINISHED,
    Here,
    Limit,
    Offset,
    Page,
    must_own_session,
    page_of,
    visible,
)
from journeyman.doors.http.errors import Problem, answers

router = APIRouter(prefix="/api/v1/sessions", tags=["sessions"])


class SessionView(BaseModel):
    id: str
    principal: str | None
    created_at: float
    updated_at: float
    message_count: int

    @classmethod
    def of(cls, row: SessionRow) -> SessionView:
        return cls(
            id=row.id,
            principal=row.principal_id,
            created_at=row.created_at,
            updated_at=row.updated_at,
            message_count=row.message_count,
        )


class Sessions(Page):
    sessions: list[SessionView]


@router.get("", summary="Your sessions, most recently used first", responses=answers())
async def list_sessions(service: Here, principal: Caller, limit: Limit = PAGE_SIZE, offset: Offset = 0) -> Sessions:
    conversations = service.store.conversations
    rows = await visible(
        lambda size, at: conversations.list(limit=size, offset=at),
        lambda row: sees(principal, row.principal_id),
        limit=limit,
        offset=offset,
    )
    return Sessions(sessions=[SessionView.of(row) for row in rows], **page_of(limit, offset))


@router.delete("/{session_id}", status_code=204, summary="Forget what was said", responses=answers(404, 409))
async def delete_session(session_id: str, service: Here, principal: Caller) -> None:
    """Its messages are gone and what was allowed for it is revoked. A session at work is refused: cancel its run."""
    await must_own_session(service, session_id, principal, new=False)
    if await service.store.runs.list(statuses=UNFINISHED, session_id=session_id, limit=1):
        raise Problem(
            409, "SESSION_AT_WORK", f"a run of session {session_id!r} has not ended", recover_action="Cancel it first"
        )
    await service.store.conversations.delete(session_id)

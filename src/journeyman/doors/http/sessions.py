"""Sessions: the stored conversations, to be listed, searched, renamed and forgotten."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from journeyman.core.conversations import SessionPlace, SessionRow
from journeyman.doors.http.common import PAGE_SIZE, Body, DeskDep, JsonRoute, Limit, Offset, Page, page_of
from journeyman.doors.http.errors import FieldError, Problem, answers

router = APIRouter(prefix="/api/v1/sessions", tags=["sessions"], route_class=JsonRoute)

LONGEST_CURSOR = 300
_WITH_A_LETTER = r"^[^\x00]*[^\x00\s\x1c-\x1f\x85][^\x00]*$"
"""For the document: what ``_not_blank`` takes, whose message says more than a pattern does."""


def _not_blank(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("a title needs a letter, and no NUL character")
    return " ".join(value.split())


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise ValueError("what is looked for has no NUL character")
    return value


class SessionView(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    title: str = Field(description="As it was named, else how it began.", examples=["Remind me to buy milk"])
    principal: str | None = Field(validation_alias="principal_id")
    created_at: float
    updated_at: float
    message_count: int


class Sessions(Page):
    sessions: list[SessionView]
    next_cursor: str | None = Field(description="Give it as 'cursor' to get those after these; null at the end.")


class SessionChange(Body):
    title: Annotated[str, AfterValidator(_not_blank)] = Field(
        max_length=200, json_schema_extra={"pattern": _WITH_A_LETTER}, examples=["Shopping"]
    )


@router.get("", summary="Your sessions, most recently used first", responses=answers())
async def list_sessions(
    desk: DeskDep,
    q: Annotated[
        str,
        Query(max_length=200, description="Only those in whose title or messages each of these words occurs."),
        AfterValidator(_without_nul),
    ] = "",
    cursor: Annotated[str | None, Query(max_length=LONGEST_CURSOR, description="Where the last page ended.")] = None,
    limit: Limit = PAGE_SIZE,
    offset: Offset = 0,
) -> Sessions:
    """With 'cursor' nothing is left out or shown twice although sessions are used in between."""
    rows = await desk.sessions(text=q, after=_place(cursor), limit=limit + 1, offset=offset)
    shown = rows[:limit]
    return Sessions(
        sessions=[SessionView.model_validate(row) for row in shown],
        next_cursor=_cursor(shown[-1]) if len(rows) > limit else None,
        **page_of(limit, offset),
    )


@router.get("/{session_id}", summary="One session", responses=answers(404))
async def show_session(session_id: str, desk: DeskDep) -> SessionView:
    return SessionView.model_validate(await desk.session(session_id))


@router.patch("/{session_id}", summary="Rename a session", responses=answers(404))
async def rename_session(session_id: str, body: SessionChange, desk: DeskDep) -> SessionView:
    return SessionView.model_validate(await desk.rename_session(session_id, body.title))


@router.delete("/{session_id}", status_code=204, summary="Forget what was said", responses=answers(404, 409))
async def delete_session(session_id: str, desk: DeskDep) -> None:
    """Its messages are gone and what was allowed for it is revoked. A session at work is refused: cancel its run."""
    await desk.delete_session(session_id)


def _cursor(row: SessionRow) -> str:
    return f"{row.updated_at!r}~{row.id}"


def _place(cursor: str | None) -> SessionPlace | None:
    if cursor is None:
        return None
    time, mark, session_id = cursor.partition("~")
    try:
        used = float(time)
    except ValueError:
        used = math.nan
    if not mark or not session_id or not math.isfinite(used) or "\0" in session_id:
        message = "it is what an earlier page gave as next_cursor"
        raise Problem(
            422, "VALIDATION_ERROR", f"cursor: {message}", fields=[FieldError(field="cursor", message=message)]
        )
    return used, session_id

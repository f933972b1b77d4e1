"""What several resources share: the service behind a request, kinds of parameters, and who may see which run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator, BaseModel, Field

from journeyman.app.durable import Handle
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.conversations import SessionRow
from journeyman.core.data import storable_json
from journeyman.core.principals import Principal
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.http.auth import must_own, sees
from journeyman.doors.http.errors import Problem
from journeyman.doors.http.metrics import Metrics

T = TypeVar("T")

PAGE_SIZE = 50
LARGEST_PAGE = 200
_BATCH = 200
UNFINISHED = frozenset(status for status in RunStatus if not status.ended)


async def _service(request: Request) -> Service:
    # A coroutine, although it waits for nothing: anything else would be run in a thread.
    service: Service = request.app.state.service
    return service


async def _metrics(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


def _storable(value: T) -> T:
    storable_json(value)
    return value


Here = Annotated[Service, Depends(_service)]
Counted = Annotated[Metrics, Depends(_metrics)]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="How many at most.")]
Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to leave out at the beginning.")]
Id = Annotated[str, Path(min_length=1, max_length=128, examples=["task_0192f3c2a1b4d6e8f0a1b2c3"])]
SessionId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+$", examples=["sess-1"])]
Object = Annotated[dict[str, Any], AfterValidator(_storable)]
"""A JSON object that a store can keep."""
Storable = Annotated[Any, AfterValidator(_storable)]
"""The same for any JSON value."""


class RunView(BaseModel):
    """Where a run stands."""

    id: str
    task_id: str
    agent: str
    session_id: str | None
    principal: str | None
    status: RunStatus
    last_seq: int = Field(description="The number of its latest fact.")
    created_at: float = Field(description="Seconds since the epoch.")
    updated_at: float

    @classmethod
    def of(cls, row: RunRow) -> RunView:
        return cls(
            id=row.id,
            task_id=row.task_id,
            agent=row.agent_name,
            session_id=row.session_id,
            principal=row.principal_id,
            status=row.status,
            last_seq=row.last_seq,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class Page(BaseModel):
    """Which part of a list this is."""

    page: int = Field(ge=1, examples=[1])
    page_size: int = Field(ge=1, examples=[PAGE_SIZE])


def page_of(limit: int, offset: int) -> dict[str, int]:
    return {"page": offset // limit + 1, "page_size": limit}


async def run_of(service: Service, run_id: str, principal: Principal, *, also: str | None = None) -> RunRow:
    """A run that the caller may see, by right or by the permission ``also``. One that they may not is not there."""
    row = await service.store.runs.get(run_id)
    if row is None or not (sees(principal, row.principal_id) or (also is not None and principal.may(also))):
        raise Problem(404, "RUN_NOT_FOUND", f"there is no run {run_id!r}")
    return row


async def handle_of(service: Service, run_id: str, principal: Principal) -> Handle:
    row = await run_of(service, run_id, principal)
    return await service.app.handle(row.id)


async def own_run(service: Service, run_id: str, principal: Principal) -> RunRow:
    """A run that the caller may change."""
    row = await run_of(service, run_id, principal)
    must_own(principal, row.principal_id)
    return row


async def session_of(service: Service, session_id: str, principal: Principal) -> SessionRow:
    """A session that the caller may see."""
    row = await service.store.conversations.get(session_id)
    if row is None or not sees(principal, row.principal_id):
        raise Problem(404, "SESSION_NOT_FOUND", f"there is no session {session_id!r}")
    return row


async def must_own_session(service: Service, session_id: str, principal: Principal, *, new: bool) -> None:
    """Refuse to say or delete anything in another's session; with ``new``, one that is not there may be begun."""
    if new and await service.store.conversations.get(session_id) is None:
        return
    row = await session_of(service, session_id, principal)
    must_own(principal, row.principal_id)


async def pending(service: Service, run_id: str) -> list[Approval]:
    return list(await service.app.approvals.pending(run_id=run_id))


async def visible(
    read: Callable[[int, int], Awaitable[Sequence[T]]], may_see: Callable[[T], bool], *, limit: int, offset: int
) -> list[T]:
    """One page of what the caller may see, from a store that lists everybody's."""
    found: list[T] = []
    async for row in _all(read):
        if not may_see(row):
            continue
        if offset > 0:
            offset -= 1
            continue
        found.append(row)
        if len(found) == limit:
            break
    return found


async def _all(read: Callable[[int, int], Awaitable[Sequence[T]]]) -> AsyncIterator[T]:
    at = 0
    while rows := await read(_BATCH, at):
        for row in rows:
            yield row
        if len(rows) < _BATCH:
            return
        at += len(rows)

"""Runs that wait for a person, and runs that wait behind those in their session."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from journeyman.app.durable import Handle
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import JourneymanError
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.http.common import UNFINISHED, pending

_MOST_QUEUED = 1_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a run came to rest, and what keeps it there."""

    status: RunStatus
    response: AgentResponse | None
    """None for a run that has not begun."""
    approvals: list[Approval]
    unknown: list[ToolCallRecord]
    blocked_by: str | None = None
    """The run that these belong to, where it is not this one."""

    @property
    def calls(self) -> Sequence[ToolCallRecord]:
        return () if self.response is None else self.response.tool_calls


async def outcome(service: Service, handle: Handle, session_id: str | None) -> Outcome:
    """Return when a run has ended, or when a person must do something before it can go on."""
    response: AgentResponse | str
    if session_id is not None and await _before(service, handle.run_id, session_id) is not None:
        response = await _response_or_blocking(service, handle, session_id)
    else:
        response = await handle.result()
    if isinstance(response, str):
        approvals, unknown = await _needed(service, await service.app.handle(response))
        return Outcome(RunStatus.QUEUED, None, approvals, unknown, blocked_by=response)
    approvals, unknown = await _needed(service, handle) if response.status.waiting else ([], [])
    return Outcome(response.status, response, approvals, unknown)


async def _needed(service: Service, handle: Handle) -> tuple[list[Approval], list[ToolCallRecord]]:
    return await pending(service, handle.run_id), list(await handle.unknown())


async def _response_or_blocking(service: Service, handle: Handle, session_id: str) -> AgentResponse | str:
    """What a run came to, or the id of the run it waits behind."""
    result = asyncio.ensure_future(handle.result())
    blocking = asyncio.ensure_future(_blocking(service, handle.run_id, session_id))
    try:
        await asyncio.wait((result, blocking), return_when=asyncio.FIRST_COMPLETED)
        if not result.done() and (found := blocking.result()) is not None:
            return found
        return await result
    finally:
        result.cancel()
        blocking.cancel()
        await asyncio.gather(result, blocking, return_exceptions=True)


async def _blocking(service: Service, run_id: str, session_id: str) -> str | None:
    """The earlier run of the session that needs somebody; None as soon as there is no earlier one."""
    while (earlier := await _before(service, run_id, session_id)) is not None:
        try:
            status = await (await service.app.handle(earlier.id)).wait()
        except JourneymanError:
            return earlier.id  # it cannot go on here, and says so to whoever asks for it
        if status.waiting:
            return earlier.id
    return None


async def _before(service: Service, run_id: str, session_id: str) -> RunRow | None:
    """The oldest unfinished run of the session that is older than this one."""
    runs = service.store.runs
    row = await runs.get(run_id)
    if row is None or row.status is not RunStatus.QUEUED:
        return None
    rows = await runs.list(statuses=UNFINISHED, session_id=session_id, limit=_MOST_QUEUED)
    return rows[-1] if rows and rows[-1].id != run_id else None

"""One durable run as it is followed here: shown while it goes on, and its questions answered where somebody is."""

from __future__ import annotations

import asyncio

from journeyman.app.durable import Handle, Journeyman
from journeyman.core.approvals import Approval, Approve, Deny
from journeyman.core.errors import ApprovalError
from journeyman.core.runs import RunStatus
from journeyman.doors.cli.asking import Asker
from journeyman.doors.cli.faults import complain
from journeyman.doors.cli.trace import Trace

POLL_SECONDS = 0.5
"""How often it is looked whether somebody else has answered the question a person is being asked here."""


async def follow(app: Journeyman, handle: Handle, trace: Trace, *, ask: Asker | None, seen: int = 0) -> RunStatus:
    """Show a run from fact ``seen`` on, until it has ended or waits for somebody who cannot be asked here.

    Raises what keeps it from going on here.
    """
    for fact in await app.store.runs.facts(handle.run_id, limit=seen) if seen else ():
        trace.recall(fact)
    while True:
        status, now_seen = await _shown_until_it_stops(app, handle, trace, seen)
        if status is not RunStatus.AWAITING_APPROVAL or ask is None:
            return status
        pending = await app.approvals.pending(run_id=handle.run_id)
        if not pending and now_seen == seen:
            return status
        seen = now_seen
        for approval in pending:
            await _decide(app, approval, ask)


async def _shown_until_it_stops(app: Journeyman, handle: Handle, trace: Trace, seen: int) -> tuple[RunStatus, int]:
    async def show() -> None:
        nonlocal seen
        async for event in handle.events(after=seen):
            trace.show(event)
            seen = event.seq or seen

    showing = asyncio.create_task(show())
    try:
        status = await handle.wait()
    finally:
        showing.cancel()
        await asyncio.wait((showing,))
    if not showing.cancelled():
        showing.result()
    for fact in await app.store.runs.facts(handle.run_id, after=seen):
        trace.show(fact)
        seen = fact.seq or seen
    return status, seen


async def _decide(app: Journeyman, approval: Approval, ask: Asker) -> None:
    """Ask the person here, unless somebody elsewhere is quicker or the time runs out."""
    asking = asyncio.ensure_future(ask(approval))
    elsewhere = asyncio.ensure_future(_decided(app, approval.id))
    try:
        await asyncio.wait((asking, elsewhere), return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            return
        match asking.result():
            case Approve(arguments=arguments, by=by):
                await app.approvals.approve(approval.id, by=by or "unnamed", arguments=arguments)
            case Deny(reason=reason, by=by):
                await app.approvals.deny(approval.id, by=by or "unnamed", reason=reason)
    except ApprovalError as error:
        complain(str(error))  # what is still pending is asked again
    finally:
        asking.cancel()
        elsewhere.cancel()
        await asyncio.wait((asking, elsewhere))


async def _decided(app: Journeyman, approval_id: str) -> None:
    while True:
        approval = await app.approvals.get(approval_id)
        if approval is None or approval.status.final:
            return
        await asyncio.sleep(POLL_SECONDS)

"""Where a durable run stands: what it waits for, what blocks it, who works on it; and following it until it stops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from journeyman.app import Handle, Journeyman
from journeyman.app.desk import LOCAL, Desk
from journeyman.core.approvals import Approval, Approve, Deny
from journeyman.core.errors import ApprovalError, ConfigurationError
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import command
from journeyman.doors.cli.trace import Asker, Trace

MOST_NAMED = 10
CALL_WIDTH = 100
POLL_SECONDS = 0.5
"""How often it is looked whether somebody else has answered the question a person is being asked here."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing a person must do before a run can go on."""

    what: str
    commands: tuple[str, ...]
    """What to type; where there are several, one of them."""


async def needs(app: Journeyman, run_id: str, *, url: str) -> list[Need]:
    """Everything a person must do, in the order it was asked."""
    approvals = [
        Need(
            f"{_about(item)} needs approval ({item.risk.value})",
            (command(url, "approvals approve", item.id), command(url, "approvals deny", item.id)),
        )
        for item in await app.approvals.pending(run_id=run_id)
    ]
    unknown = [
        Need(
            f"{screen.call_text(item.tool_name, item.arguments, width=CALL_WIDTH)} was under way when its process "
            "died; nobody knows whether it happened",
            tuple(command(url, "runs resolve", run_id, item.call_id, choice) for choice in ("rerun", "done", "skip")),
        )
        for item in await (await app.handle(run_id)).unknown()
    ]
    row = await row_of(app, run_id, url=url)
    stuck = [Need(row.trouble or "processes die on it", (command(url, "runs resume", run_id),))]
    return approvals + unknown + (stuck if row.status is RunStatus.STUCK else [])


def _about(approval: Approval) -> str:
    """What a person is asked about: in words, where the tool has some, and as a call."""
    call = screen.call_text(approval.tool_name, approval.arguments, width=CALL_WIDTH)
    return f"{screen.escaped(approval.about)} · {call}" if approval.about else call


def next_steps(found: list[Need], *, url: str) -> list[str]:
    """As lines for a person."""
    lines: list[str] = []
    for need in found[:MOST_NAMED]:
        first, *others = need.commands
        lines += [f"{need.what}:", f"  {first}", *(f"  or: {other}" for other in others)]
    if len(found) > MOST_NAMED:
        lines.append(f"… and {len(found) - MOST_NAMED} more: {command(url, 'approvals list')}")
    return lines


def resume_command(url: str, run_id: str, *options: str) -> str:
    return command(url, "runs resume", run_id, *options)


async def row_of(app: Journeyman, run_id: str, *, url: str) -> RunRow:
    await app.approvals.expire()
    row = await app.store.runs.get(run_id)
    if row is None:
        raise ConfigurationError(f"there is no run {run_id!r}; what there is: {command(url, 'runs list')}")
    return row


def holder_of(app: Journeyman, row: RunRow) -> str | None:
    """The living process that holds the run's lease, in words; None when none does."""
    return Desk(app, LOCAL).holder(row)


async def blocking_run(app: Journeyman, row: RunRow) -> RunRow | None:
    """The earlier run of the same session that keeps this one from beginning and that no process works on."""
    earlier = await app.store.runs.ahead_of(row.id)
    return None if earlier is None or holder_of(app, earlier) else earlier


# --- following


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
        screen.note(str(error))  # what is still pending is asked again
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

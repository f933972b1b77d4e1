"""``journeyman approvals``: what waits for a person, their decisions, and what they allowed for a whole session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from journeyman.app.durable import Journeyman
from journeyman.core.approvals import Approval, ApprovalStatus, Grant
from journeyman.core.errors import ApprovalError
from journeyman.doors.cli import screen
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.loading import load_library
from journeyman.doors.cli.options import user_name
from journeyman.doors.cli.standing import resume_command
from journeyman.doors.cli.storage import command, desk

CALL_WIDTH = 120


def list_approvals(*, url: str, run_id: str | None, everything: bool, limit: int, as_json: bool) -> None:
    async def found() -> Sequence[Approval]:
        async with desk(url) as app:
            waiting = await app.approvals.pending(run_id=run_id, limit=limit)
            return await app.approvals.list(run_id=run_id, limit=limit) if everything else waiting

    approvals = asyncio.run(found())
    if as_json:
        return screen.print_json([item.model_dump(mode="json") for item in approvals])
    if not approvals:
        complain("nothing waits for a person" if not everything else "no approvals")
        return None
    table = screen.listing("approval", "status" if everything else "expires in", "risk", "call")
    for item in approvals:
        told = item.status.value if everything else screen.span(_left(item))
        call = screen.called(item.tool_name, item.arguments, width=CALL_WIDTH)
        table.add_row(item.id, told, screen.risk_text(item.risk), call)
    screen.console().print(table)
    return None


def _left(approval: Approval) -> float:
    return approval.expires_at.timestamp() - time.time()


def show_approval(approval_id: str, *, url: str, as_json: bool) -> None:
    async def found() -> tuple[Approval, dict[str, Any] | None]:
        async with desk(url) as app:
            await app.approvals.pending()  # what has expired by now is to be shown as such
            return await _approval(app, approval_id), await app.store.approvals.edited_arguments(approval_id)

    item, edited = asyncio.run(found())
    if as_json:
        return screen.print_json({**item.model_dump(mode="json"), "edited_arguments": edited})
    table = screen.facts()
    table.add_row("approval", item.id)
    table.add_row("status", item.status.value)
    table.add_row("tool", screen.visible(item.tool_name))
    table.add_row("arguments", screen.pretty(item.arguments))
    if edited is not None:
        table.add_row("instead", screen.pretty(edited))
    table.add_row("risk", screen.risk_text(item.risk))
    table.add_row("for", "nobody in particular" if item.principal is None else screen.visible(item.principal.id))
    table.add_row("run", item.run_id)
    table.add_row("asked", screen.moment(item.requested_at.timestamp()))
    if item.status is ApprovalStatus.PENDING:
        table.add_row("expires", f"{screen.moment(item.expires_at.timestamp())}, in {screen.span(_left(item))}")
    if item.decided_at is not None:
        by = f" by {screen.visible(item.decided_by)}" if item.decided_by else ""
        table.add_row("decided", f"{screen.moment(item.decided_at.timestamp())}{by}")
    if item.reason:
        table.add_row("reason", screen.visible(item.reason))
    screen.console().print(table)
    return None


async def _approval(app: Journeyman, approval_id: str) -> Approval:
    approval = await app.approvals.get(approval_id)
    if approval is None:
        raise ApprovalError(f"there is no approval {approval_id!r}; 'journeyman approvals list' shows what waits")
    return approval


# --- deciding


def approve(
    approval_id: str,
    *,
    url: str,
    arguments: dict[str, Any] | None,
    for_session: bool,
    by: str | None,
    library: str | None,
) -> None:
    given = load_library(library) if library is not None else None

    async def whole() -> Approval:
        async with desk(url, library=given) as app:
            return await app.approvals.approve(
                approval_id, by=by or user_name(), arguments=arguments, for_session=for_session
            )

    decided = asyncio.run(whole())
    told = "approved" if arguments is None else "approved with other arguments"
    _tell(decided, told, url=url, library=library, arguments=arguments)
    if for_session:
        told = f"{decided.tool_name!r} now runs without asking in this session: {command(url, 'approvals grants')}"
        screen.show(screen.console(), told)


def deny(approval_id: str, *, url: str, reason: str, by: str | None) -> None:
    async def whole() -> Approval:
        async with desk(url) as app:
            return await app.approvals.deny(approval_id, by=by or user_name(), reason=reason)

    _tell(asyncio.run(whole()), "denied", url=url, library=None)


def _tell(
    decided: Approval, told: str, *, url: str, library: str | None, arguments: dict[str, Any] | None = None
) -> None:
    call = screen.called(decided.tool_name, arguments or decided.arguments, width=CALL_WIDTH)
    screen.show(screen.console(), Text(f"{told}: {call}"))
    then = resume_command(url, decided.run_id, library=library)
    screen.show(screen.console(), f"a worker goes on by itself; without one: {then}")


# --- grants


def list_grants(*, url: str, session: str | None, as_json: bool) -> None:
    async def found() -> Sequence[Grant]:
        async with desk(url) as app:
            return await app.approvals.grants(session_id=session)

    grants = asyncio.run(found())
    if as_json:
        return screen.print_json([item.model_dump(mode="json") for item in grants])
    if not grants:
        complain("no tool runs without asking in any session")
        return None
    table = screen.listing("grant", "tool", "given", "by", "session")
    for item in grants:
        cells = (item.tool_name, screen.moment(item.granted_at), item.granted_by, item.session_id)
        table.add_row(item.id, *map(screen.visible, cells))
    screen.console().print(table)
    return None


def revoke_grant(grant_id: str, *, url: str, by: str | None) -> ExitCode:
    async def whole() -> bool:
        async with desk(url) as app:
            return await app.approvals.revoke(grant_id, by=by or user_name())

    if asyncio.run(whole()):
        screen.show(screen.console(), f"grant {grant_id} is revoked; its tool is asked about again")
        return ExitCode.DONE
    complain(f"no grant {grant_id!r} is in force", "those that are: journeyman approvals grants")
    return ExitCode.FAILED

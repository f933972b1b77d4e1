"""``journeyman approvals``: what waits for a person, their decisions, and what they allowed for a whole session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.text import Text

from journeyman.app import Journeyman
from journeyman.core.approvals import Approval, ApprovalStatus
from journeyman.core.errors import ApprovalError
from journeyman.doors.cli import options, screen
from journeyman.doors.cli.loading import command, in_store, load_library
from journeyman.doors.cli.options import (
    DEFAULT_STORE,
    By,
    ExitCode,
    Json,
    Limit,
    PrincipalName,
    Store,
    json_object,
    user_name,
)
from journeyman.doors.cli.outcome import resume_command
from journeyman.doors.cli.people import must_be_a_person

CALL_WIDTH = 120

ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="The approval's id.", show_default=False)]

approvals = typer.Typer(no_args_is_help=True)


@approvals.command("list")
def list_approvals(
    run: Annotated[str | None, typer.Option(metavar="ID", help="Only those of one run.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Decided and expired ones, too.")] = False,
    principal: PrincipalName = None,
    limit: Limit = 50,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """What waits for a decision, oldest first."""

    async def found(app: Journeyman) -> Sequence[Approval]:
        whose = options.whose(principal)
        waiting = await app.approvals.pending(run_id=run, principal_id=whose, limit=limit)
        return await app.approvals.list(run_id=run, principal_id=whose, limit=limit) if everything else waiting

    items = in_store(store, found)
    if as_json:
        screen.print_json(screen.dumped(items))
    elif not items:
        screen.note("nothing waits for a person" if not everything else "no approvals")
    else:
        table = screen.listing("approval", "status" if everything else "expires in", "risk", "call")
        for item in items:
            second = item.status.value if everything else screen.rough_duration(_seconds_left(item))
            about = f"{screen.escaped(item.about)} · " if item.about else ""
            table.add_row(item.id, second, screen.risk_text(item.risk), f"{about}{_call_text(item)}")
        screen.console().print(table)


async def _known(app: Journeyman, approval_id: str, *, url: str) -> Approval:
    approval = await app.approvals.get(approval_id)
    if approval is None:
        raise ApprovalError(f"there is no approval {approval_id!r}; what waits: {command(url, 'approvals list')}")
    return approval


def _seconds_left(approval: Approval) -> float:
    return approval.expires_at.timestamp() - time.time()


def _call_text(approval: Approval, arguments: dict[str, Any] | None = None) -> str:
    return screen.call_text(approval.tool_name, arguments or approval.arguments, width=CALL_WIDTH)


@approvals.command("show")
def show_approval(approval_id: ApprovalId, store: Store = DEFAULT_STORE, as_json: Json = False) -> None:
    """Exactly what would run, for whom, and what was decided."""

    async def found(app: Journeyman) -> tuple[Approval, dict[str, Any] | None]:
        approval = await _known(app, approval_id, url=store)
        return approval, await app.store.approvals.edited_arguments(approval_id)

    item, edited = in_store(store, found)
    if as_json:
        return screen.print_json({**item.model_dump(mode="json"), "edited_arguments": edited})
    table = screen.fields()
    table.add_row("approval", item.id)
    table.add_row("status", item.status.value)
    if item.about:
        table.add_row("about", screen.escaped(item.about))
    table.add_row("tool", screen.escaped(item.tool_name))
    table.add_row("arguments", screen.pretty(item.arguments))
    if item.grounding:
        table.add_row("where from", Text("\n").join(Text(*line) for line in screen.source_lines(item.grounding)))
    if edited is not None:
        table.add_row("instead", screen.pretty(edited))
    table.add_row("risk", screen.risk_text(item.risk))
    if item.status is ApprovalStatus.PENDING and item.grant is not None:
        table.add_row("--for-session", screen.grant_terms(item.grant))
    table.add_row("for", "nobody in particular" if item.principal is None else screen.escaped(item.principal.id))
    table.add_row("run", item.run_id)
    table.add_row("asked", screen.local_time(item.requested_at.timestamp()))
    if item.status is ApprovalStatus.PENDING:
        left = screen.rough_duration(_seconds_left(item))
        table.add_row("expires", f"{screen.local_time(item.expires_at.timestamp())}, in {left}")
    if item.decided_at is not None:
        by = f" by {screen.escaped(item.decided_by)}" if item.decided_by else ""
        table.add_row("decided", f"{screen.local_time(item.decided_at.timestamp())}{by}")
    if item.reason:
        table.add_row("reason", screen.escaped(item.reason))
    screen.console().print(table)
    return None


# --- deciding


@approvals.command("approve")
def approve(
    approval_id: ApprovalId,
    args: Annotated[
        str | None, typer.Option(metavar="JSON", help="Run it with these arguments, all of them, instead.")
    ] = None,
    for_session: Annotated[
        bool,
        typer.Option(
            "--for-session",
            help="Also allow the tool in its session, without asking: as often and as long as 'show' says.",
        ),
    ] = False,
    by: By = None,
    library: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE[:NAME]",
            help="The run's tools, to check --args at once; else they are checked when the call runs.",
            show_default=False,
        ),
    ] = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Allow exactly this call, once. Exit code 1 when it was decided before."""
    must_be_a_person()
    arguments = None if args is None else json_object(args, option="--args")
    tools = load_library(library) if library is not None else None

    async def decide(app: Journeyman) -> Approval:
        await _known(app, approval_id, url=store)
        return await app.approvals.approve(
            approval_id, by=by or user_name(), arguments=arguments, for_session=for_session
        )

    decided = in_store(store, decide, library=tools)
    verdict = "approved" if arguments is None else "approved with other arguments"
    screen.say(Text(f"{verdict}: {_call_text(decided, arguments)}"))
    _say_what_follows(decided, store, library)
    if for_session:
        grants = command(store, "approvals grants")
        terms = screen.grant_terms(decided.grant)
        screen.say(f"{decided.tool_name!r} now runs without asking in this session, {terms}: {grants}")


@approvals.command("deny")
def deny(
    approval_id: ApprovalId,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The model is told.", show_default=False)] = "",
    by: By = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Refuse the call; the run goes on without it. Exit code 1 when it was decided before."""
    must_be_a_person()

    async def decide(app: Journeyman) -> Approval:
        await _known(app, approval_id, url=store)
        return await app.approvals.deny(approval_id, by=by or user_name(), reason=reason)

    decided = in_store(store, decide)
    screen.say(Text(f"denied: {_call_text(decided)}"))
    _say_what_follows(decided, store, None)


def _say_what_follows(decided: Approval, store: str, library: str | None) -> None:
    resume = resume_command(store, decided.run_id, *(["--library", library] if library else []))
    screen.say(f"a worker goes on by itself; without one: {resume}")


# --- grants


@approvals.command("grants")
def list_grants(
    session: Annotated[str | None, typer.Option(metavar="NAME", help="Only those of one session.")] = None,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Tools that people allowed for a whole session."""
    items = in_store(store, lambda app: app.approvals.grants(session_id=session))
    if as_json:
        screen.print_json(screen.dumped(items))
    elif not items:
        screen.note("no tool runs without asking in any session")
    else:
        table = screen.listing("grant", "tool", "by", "covers")
        for item in items:
            risk = "no calls" if item.risk is None else f"{item.risk.value} calls"
            left = screen.rough_duration((item.expires_at or 0.0) - time.time())
            covers = f"{risk} in {item.session_id}: {item.uses_left} of {item.uses} uses left, ends in {left}"
            table.add_row(item.id, *map(screen.escaped, (item.tool_name, item.granted_by, covers)))
        screen.console().print(table)


@approvals.command("revoke")
def revoke_grant(
    grant_id: Annotated[str, typer.Argument(metavar="GRANT", help="The grant's id.", show_default=False)],
    by: By = None,
    store: Store = DEFAULT_STORE,
) -> None:
    """Take a grant back: the tool is asked about again."""
    if not in_store(store, lambda app: app.approvals.revoke(grant_id, by=by or user_name())):
        screen.note(f"no grant {grant_id!r} is in force", f"those that are: {command(store, 'approvals grants')}")
        raise typer.Exit(ExitCode.FAILED)
    screen.say(f"grant {grant_id} is revoked; its tool is asked about again")

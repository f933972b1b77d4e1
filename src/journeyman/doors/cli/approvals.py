"""``journeyman approvals``: what waits for a person, their decisions, and what they allowed for a whole session."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.text import Text

from journeyman.app.operations import approvals as operations
from journeyman.core.approvals import Approval, ApprovalStatus, Grant
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import command
from journeyman.doors.cli.operated import Call, Listing, Typed, operated
from journeyman.doors.cli.options import By, json_object

CALL_WIDTH = 120

STATUS = {False: "pending", True: "all"}

approvals = typer.Typer(no_args_is_help=True)


LISTED = {
    "status": Typed(
        "--all",
        help="Decided and expired ones, too.",
        kind=bool,
        default=False,
        read=lambda every, option: STATUS[every],
    ),
    "run_id": Typed("--run", metavar="ID"),
    "q": Typed("--search", metavar="WORDS"),
}
operated(approvals, "approvals list", operations.list_approvals, typed=LISTED)(
    Listing(
        "approvals",
        {
            "approval": "id",
            "status": lambda item: _status(item),
            "risk": lambda item: screen.risk_text(item.risk),
            "call": lambda item: (f"{item.about} · " if item.about else "") + _call_text(item),
        },
        empty="nothing waits for a person",
    )
)


def _status(item: Approval) -> str:
    if item.status is not ApprovalStatus.PENDING:
        return item.status.value
    return f"{screen.rough_duration(_seconds_left(item))} left"


def _seconds_left(approval: Approval) -> float:
    return approval.expires_at.timestamp() - time.time()


def _call_text(approval: Approval, arguments: dict[str, Any] | None = None) -> str:
    return screen.call_text(approval.tool_name, arguments or approval.arguments, width=CALL_WIDTH)


@operated(approvals, "approvals show", operations.show_approval)
def show_approval(item: operations.ApprovalDetails, _: Call) -> None:
    pending, instead = item.status is ApprovalStatus.PENDING, item.edited_arguments
    asked, expires = (screen.local_time(at.timestamp()) for at in (item.requested_at, item.expires_at))
    decided = None if item.decided_at is None else screen.local_time(item.decided_at.timestamp())
    by = f" by {item.decided_by}" if item.decided_by else ""
    sources = [Text(*line) for line in screen.source_lines(item.grounding)]
    table = screen.fields(
        ("approval", item.id),
        ("status", item.status.value),
        ("about", item.about or None if item.question is None else None),
        ("asks", None if item.question is None else screen.escaped(item.question.message)),
        ("tool", item.tool_name),
        ("arguments" if item.question is None else "answer", screen.pretty(item.arguments)),
        ("form", None if item.question is None else screen.pretty(item.question.form)),
        ("why", item.flow or None),
        ("not bound to", item.not_bound_to or None),
        ("where from", Text("\n").join(sources) if sources else None),
        ("instead", None if instead is None else screen.pretty(instead)),
        ("risk", screen.risk_text(item.risk)),
        ("--for-session", screen.grant_terms(item.grant) if pending and item.grant is not None else None),
        ("for", "nobody in particular" if item.principal is None else item.principal.id),
        ("run", item.run_id),
        ("asked", asked),
        ("expires", f"{expires}, in {screen.rough_duration(_seconds_left(item))}" if pending else None),
        ("decided", decided and f"{decided}{by}"),
        ("reason", item.reason or None),
    )
    screen.console().print(table)


# --- deciding


Checked = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE[:NAME]",
        help="The run's tools, to check --args at once; else they are checked when the call runs.",
    ),
]
ARGS = Typed("--args", "JSON", "Run it with these arguments, all of them, instead.", read=json_object)


@operated(
    approvals, "approvals approve", operations.approve, typed={"arguments": ARGS}, by=By, library=Checked, person=True
)
def say_approved(decided: Approval, call: Call) -> None:
    """Once. Exit code 1 when it was decided before."""
    edited = None if call.given["arguments"] is None else json_object(call.given["arguments"], option="--args")
    verdict = "approved" if edited is None else "approved with other arguments"
    verdict = verdict if decided.question is None else "answered"
    screen.say(Text(f"{verdict}: {_call_text(decided, edited)}"))
    _say_what_follows(decided, call.store, call.given["library"])
    if call.given["for_session"]:
        terms = screen.grant_terms(decided.grant)
        grants = call.command("approvals grants")
        screen.say(f"{decided.tool_name!r} now runs without asking in this session, {terms}: {grants}")


@operated(approvals, "approvals deny", operations.deny, by=By, person=True)
def say_denied(decided: Approval, call: Call) -> None:
    """The run goes on without it. Exit code 1 when it was decided before."""
    screen.say(Text(f"denied: {_call_text(decided)}"))
    _say_what_follows(decided, call.store, None)


def _say_what_follows(decided: Approval, store: str, library: str | None) -> None:
    resume = command(store, "runs resume", decided.run_id, *(["--library", library] if library else []))
    screen.say(f"a worker goes on by itself; without one: {resume}")


# --- grants


def _covers(item: Grant) -> str:
    risk = "no calls" if item.risk is None else f"{item.risk.value} calls"
    left = screen.rough_duration((item.expires_at or 0.0) - time.time())
    return f"{risk} in {item.session_id}: {item.uses_left} of {item.uses} uses left, ends in {left}"


operated(approvals, "approvals grants", operations.list_grants)(
    Listing(
        "grants",
        {"grant": "id", "tool": "tool_name", "by": "granted_by", "covers": _covers},
        empty="no tool runs without asking in any session",
    )
)


@operated(approvals, "approvals revoke", operations.revoke_grant, typed={"grant_id": Typed(metavar="GRANT")}, by=By)
def say_revoked(_: None, call: Call) -> None:
    screen.say(f"grant {call.given['grant_id']} is revoked; its tool is asked about again")

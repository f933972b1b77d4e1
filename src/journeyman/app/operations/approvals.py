"""Approvals: what waits for a person, their decisions, what they allowed for a whole session, and who decided what."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from journeyman.app import rendered
from journeyman.app.desk import DECIDE, READ_AUDIT, Desk, NotFoundError
from journeyman.app.operations.table import (
    PAGE,
    PAGE_SIZE,
    Body,
    Following,
    Id,
    Limit,
    Object,
    OfPrincipal,
    OfSession,
    Page,
    Paged,
    Paging,
    Sought,
    operation,
    read_object,
    refused,
)
from journeyman.core.approvals import Approval, ApprovalStatus, Grant
from journeyman.core.audit import AuditAnchor, AuditReport, AuditRow
from journeyman.core.calls import CallStatus
from journeyman.core.storing import RunRow

LONGEST_RESULT = 2_000
"""Characters of an earlier call's result that are shown to whoever decides."""
MOST_CALLS = 50
LISTED: Mapping[str, ApprovalStatus | tuple[ApprovalStatus, ...] | None] = {
    "pending": ApprovalStatus.PENDING,
    "decided": (ApprovalStatus.APPROVED, ApprovalStatus.DENIED),
    "expired": (ApprovalStatus.EXPIRED, ApprovalStatus.SUPERSEDED),
    "all": None,
}


class AskedApproval(Approval):
    request: str = Field(description="How what was asked of the run begins.")
    agent: str = Field(description="Who asks: the agent of its run.")


class Approvals(Page):
    approvals: list[AskedApproval]


class EarlierCall(BaseModel):
    """A call of the same run before the one that is asked about."""

    tool_name: str
    arguments: dict[str, Any]
    status: CallStatus
    came_to: str = Field(description="As Markdown for people; long ones are cut.")


class ApprovalDetails(AskedApproval):
    earlier: list[EarlierCall] = Field(description="What was read and done before, the latest 50.")
    edited_arguments: dict[str, Any] | None = Field(
        description="What a person has put in place of the arguments that were asked about."
    )


class Approving(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "not": {
                "properties": {"arguments": {"type": "object"}, "arguments_json": {"type": "string"}},
                "required": ["arguments", "arguments_json"],
            }
        }
    )

    arguments: Object | None = Field(
        default=None, description="Run the tool with these instead.", examples=[{"task_id": "task_1"}]
    )
    arguments_json: str | None = Field(
        default=None,
        description="The same as JSON text, for programs that cannot keep every digit of a number: one of the two.",
        json_schema_extra={"contentMediaType": "application/json"},
        examples=['{"task_id":"task_1"}'],
    )
    for_session: bool = Field(
        default=False,
        description="Also allow this tool in its session, as often and as long as the approval's `grant` says.",
    )

    def edited(self) -> dict[str, Any] | None:
        """What to run instead. Raises InvalidInputError."""
        if self.arguments_json is None:
            return self.arguments
        if self.arguments is not None:
            raise refused("arguments_json", "give it or 'arguments', not both")
        return read_object(self.arguments_json, "arguments_json")


class Denying(Body):
    reason: str = Field(default="", max_length=2_000, description="The model sees it.", examples=["Not on a Friday"])


class Grants(Page):
    grants: list[Grant]


class Audit(Page):
    rows: list[AuditRow]


@operation("approvals.list", "What waits for a person, oldest first")
async def list_approvals(
    desk: Desk,
    *,
    status: Annotated[
        Literal["pending", "decided", "expired", "all"],
        Field(description="What waits; what was decided, or was not in time, newest first; or everything."),
    ] = "pending",
    run_id: Annotated[str | None, Field(max_length=128, description="Only those of one run.")] = None,
    principal: OfPrincipal = None,
    q: Annotated[
        Sought, Field(max_length=200, description="Only those in whose question each of these words occurs.")
    ] = "",
    paging: Paged = PAGE,
) -> Approvals:
    await desk.app.approvals.expire()
    asked = {
        "status": LISTED[status],
        "run_id": run_id,
        "principal_id": desk.visible(DECIDE, only=principal),
        "text": q,
    }
    kept = desk.app.store.approvals
    read = partial(kept.list, newest_first=status in ("decided", "expired"))
    rows, page = await paging.read(read, kept.count, asked)
    runs = await desk.app.store.runs.named([row.run_id for row in rows])
    return Approvals.model_construct(
        approvals=[AskedApproval.model_construct(**dict(row), **_about(runs.get(row.run_id))) for row in rows], **page
    )


def _about(run: RunRow | None) -> dict[str, Any]:
    return {"request": "" if run is None else run.request, "agent": "" if run is None else run.agent_name}


@operation("approvals.show", "Exactly what would run, for whom, and what was decided")
async def show_approval(desk: Desk, approval_id: Id) -> ApprovalDetails:
    approval = await desk.approval(approval_id)
    edited = await desk.app.store.approvals.edited_arguments(approval_id)
    run = await desk.app.store.runs.get(approval.run_id)
    earlier = [] if run is None else await _earlier(desk, approval)
    return ApprovalDetails.model_construct(**dict(approval), **_about(run), earlier=earlier, edited_arguments=edited)


async def _earlier(desk: Desk, approval: Approval) -> list[EarlierCall]:
    """Whoever may decide sees what led to the question, also of a run that is not theirs."""
    response = await (await desk.app.handle(approval.run_id)).so_far()
    done = () if response is None else response.tool_calls
    before = list(takewhile(lambda call: call.call_id != approval.call_id, done))
    return [
        EarlierCall(
            tool_name=call.tool_name,
            arguments=call.arguments,
            status=call.status,
            came_to=rendered(call)[:LONGEST_RESULT] if call.error is None else call.error.message,
        )
        for call in before[-MOST_CALLS:]
    ]


@operation("approvals.approve", "Allow exactly this call")
async def approve(desk: Desk, approval_id: Id, body: Approving) -> Approval:
    """Needs the permission 'approvals:decide'. Decided once: of two people who decide at once, one wins."""
    return await desk.approve(approval_id, arguments=body.edited(), for_session=body.for_session)


@operation("approvals.deny", "Refuse this call")
async def deny(desk: Desk, approval_id: Id, body: Denying) -> Approval:
    """Needs the permission 'approvals:decide'."""
    return await desk.deny(approval_id, reason=body.reason)


@operation("grants.list", "What is allowed without asking, by session", permission=DECIDE)
async def list_grants(desk: Desk, *, session_id: OfSession = None, paging: Following = PAGE) -> Grants:
    grants = await desk.app.approvals.grants(session_id=session_id)
    rows, page = paging.of(grants, key=lambda item: item.id)
    return Grants(grants=rows, **page)


@operation("grants.revoke", "Ask again from now on", permission=DECIDE)
async def revoke_grant(desk: Desk, grant_id: Id) -> None:
    if not await desk.app.approvals.revoke(grant_id, by=desk.principal.id):
        hint = "It may have been used up or revoked; list those in force"
        raise NotFoundError("grant", grant_id, recover_action=hint)


@operation("audit.list", "Who decided or was refused what, oldest first", permission=READ_AUDIT)
async def list_audit(
    desk: Desk,
    *,
    after: Annotated[int, Field(ge=0, le=2**31 - 1, description="Only rows after this one.")] = 0,
    actor: Annotated[str | None, Field(max_length=255, description="Only what this principal did.")] = None,
    kind: Annotated[str | None, Field(max_length=64, description="Only rows of this kind.")] = None,
    limit: Limit = PAGE_SIZE,
) -> Audit:
    """Each row's hash covers the row and the hash before it; its mac, where there is a key, that hash and the mac
    before it."""
    log = desk.app.store.audit
    rows, page = await Paging(limit, after).read(log.list, log.count, {"actor": actor, "kind": kind}, key="seq")
    return Audit(rows=rows, **page)


@operation("audit.verify", "Check that no row was changed, cut, put in or forged", permission=READ_AUDIT)
async def verify_audit(desk: Desk, *, anchor: AuditAnchor | None = None) -> AuditReport:
    return await desk.app.store.audit.inspect(anchor=anchor)


@operation("audit.anchor", "Where the log ends now", permission=READ_AUDIT)
async def anchor_audit(desk: Desk) -> AuditAnchor:
    """A small document to keep where nobody who can write to the store can."""
    return await desk.app.store.audit.anchor(now=desk.app.clock.time())


@operation("audit.purge", "Forget old rows", permission="audit:write")
async def purge_audit(desk: Desk, *, older_than: Annotated[float, Field(ge=0, description="In seconds.")]) -> int:
    """A row that vouches for them is added, so that the rest can still be verified."""
    now = await desk.app.store.now()
    return await desk.app.store.audit.purge(before=now - older_than, by=desk.principal.id, now=now)

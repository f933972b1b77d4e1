"""Approvals that outlive their process: the gate that suspends a run, and the desk where people decide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.app.assembly import Shared
from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Decision, Deny, Expired, Grant, GrantTerms
from journeyman.core.data import LARGE_TEXT, canonical_json, new_id
from journeyman.core.errors import ApprovalError, ConfigurationError, EditedArgumentsError
from journeyman.core.policy import Principal
from journeyman.core.specification import ToolSpecification
from journeyman.execution.approval import filled_in
from journeyman.execution.checks import base_risk
from journeyman.stores.store import SqlStore
from journeyman.tools.library import ToolLibrary
from journeyman.tools.tool import ArgumentsError, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreGate:
    """Keeps the question in the store. Without an answer the run suspends and holds nothing."""

    store: SqlStore
    session_id: str | None

    async def ask(self, approval: Approval) -> Decision | None:
        kept = await self.store.approvals.ask(approval)
        if kept.status is ApprovalStatus.PENDING and self.session_id is not None and kept.question is None:
            # A grant for this tool in this chat session counts as the approval of whoever gave it.
            kept = await self.store.grants.use(kept, session_id=self.session_id) or kept
        match kept.status:
            case ApprovalStatus.PENDING:
                expired = await self.store.approvals.expire()
                return Expired() if kept.id in {item.id for item in expired} else None
            case ApprovalStatus.APPROVED:
                edited = await self.store.approvals.edited_arguments(kept.id)
                return Approve(arguments=edited, by=kept.decided_by)
            case ApprovalStatus.DENIED:
                return Deny(reason=kept.reason or "", by=kept.decided_by)
            case ApprovalStatus.EXPIRED | ApprovalStatus.SUPERSEDED:
                return Expired()


class Approvals:
    """What waits for a person, and their decisions. Each approval is decided once."""

    def __init__(self, shared: Shared, library: ToolLibrary, *, decided: Callable[[str], None]) -> None:
        self._shared = shared
        self._store = shared.store
        self._library = library
        self._clock = shared.clock
        self._decided = decided

    async def pending(self, *, run_id: str | None = None, **only: Any) -> Sequence[Approval]:
        """What waits, the oldest of each principal before anybody's second; nothing that has expired meanwhile.

        ``only`` is for the store.
        """
        await self.expire()
        return await self._store.approvals.list(status=ApprovalStatus.PENDING, run_id=run_id, **only)

    async def get(self, approval_id: str) -> Approval | None:
        await self.expire()
        return await self._store.approvals.get(approval_id)

    async def expire(self) -> None:
        """Note which questions nobody has answered in time: their runs no longer wait for a person."""
        await self._store.approvals.expire()

    async def approve(
        self,
        approval_id: str,
        *,
        by: str,
        arguments: dict[str, Any] | None = None,
        for_session: bool = False,
    ) -> Approval:
        """Allow this exact call, or the same tool with ``arguments`` instead; a question is answered with them.

        ``for_session`` also allows the tool in its chat session, on behalf of the same principal, without asking: as
        often and as long as ``approval.grant`` says, until revoked.
        """
        approval = await self._found(approval_id)
        if (why := approval.not_to_be_approved_by(by)) is not None:
            raise ApprovalError(f"approval {approval_id!r}: {why}")
        grant = await self._grant_of(approval, by=by) if for_session else None
        if approval.question is not None and arguments is None:
            arguments = approval.arguments
        if arguments is not None:
            arguments = await self.checked(approval, arguments)
        return await self._decide(approval_id, ApprovalStatus.APPROVED, by=by, arguments=arguments, grant=grant)

    async def deny(self, approval_id: str, *, by: str = "unnamed", reason: str = "") -> Approval:
        """Refuse the call; the model sees the reason."""
        await self._found(approval_id)
        return await self._decide(approval_id, ApprovalStatus.DENIED, by=by, reason=reason)

    async def grant(
        self,
        session_id: str,
        tool_name: str,
        *,
        by: str,
        principal: Principal | None = None,
        uses: int | None = None,
        seconds: float | None = None,
    ) -> Grant:
        """Allow a tool of this library for one chat session, on behalf of one principal (or of nobody in particular).

        It covers calls up to the tool's own risk, as often and as long as the policy says; ``uses`` and ``seconds``
        may say less.
        """
        tool = self._library.lookup(tool_name)
        if tool is None:
            raise ApprovalError(f"no tool {tool_name!r} is known here; what is not known cannot be allowed")
        policy = self._shared.rules.policy
        risk = base_risk(tool.specification, policy)
        if policy.grant_risk is None or risk.rank > policy.grant_risk.rank:
            raise ApprovalError(f"the policy lets nobody allow {tool_name!r} for a session: it is {risk.value}")
        terms = GrantTerms(
            uses=min(uses or policy.grant_uses, policy.grant_uses),
            seconds=min(seconds or policy.grant_seconds, policy.grant_seconds),
        )
        tool_digest = await asyncio.to_thread(tool.approval_digest)
        what = {"session_id": session_id, "tool_name": tool_name, "tool_digest": tool_digest, "risk": risk}
        grant = self._grant(terms, by=by, principal=principal, **what)
        await self._store.grants.grant(grant)
        return grant

    def _grant(self, terms: GrantTerms, *, by: str, principal: Principal | None, **what: Any) -> Grant:
        now = self._clock.time()
        return Grant(
            id=new_id("grant"),
            granted_by=by,
            granted_at=now,
            principal_id=None if principal is None else principal.id,
            expires_at=now + terms.seconds,
            uses=terms.uses,
            uses_left=terms.uses,
            **what,
        )

    async def grant_like(self, approval: Approval, *, by: str) -> Grant:
        """Allow the tool of a question for its chat session, as far as ``approval.grant`` says."""
        grant = await self._grant_of(approval, by=by)
        await self._store.grants.grant(grant)
        return grant

    async def _grant_of(self, approval: Approval, *, by: str) -> Grant:
        """What "for the session" means for the call that a person was asked about."""
        row = await self._store.runs.get(approval.run_id)
        if row is None or row.session_id is None:
            raise ApprovalError(f"approval {approval.id!r} belongs to no chat session; approve it without for_session")
        if approval.grant is None:
            why = "its arguments raise the risk" if approval.risk_raised else "its run lets nobody"
            raise ApprovalError(
                f"{approval.tool_name!r} cannot be allowed for the session by approval {approval.id!r}: {why}; "
                "approve this call alone"
            )
        what = {name: getattr(approval, name) for name in ("tool_name", "tool_digest", "risk")}
        return self._grant(approval.grant, by=by, principal=approval.principal, session_id=row.session_id, **what)

    async def grants(self, *, session_id: str | None = None) -> Sequence[Grant]:
        """Standing words that are in force."""
        now = await self._store.now()
        return tuple(item for item in await self._store.grants.list(session_id=session_id) if item.in_force(now))

    async def revoke(self, grant_id: str, *, by: str) -> bool:
        return await self._store.grants.revoke(grant_id, by=by, now=self._clock.time())

    async def _decide(self, approval_id: str, status: ApprovalStatus, *, by: str, **told: Any) -> Approval:
        decided = await self._store.approvals.decide(approval_id, status, by=by, **told)
        if decided is None:
            await self.expire()
            now = await self._found(approval_id)
            who = f" by {now.decided_by!r}" if now.decided_by else ""
            raise ApprovalError(f"approval {approval_id!r} is {now.status.value} already{who}; nothing was changed")
        self._decided(decided.run_id)
        return decided

    async def _found(self, approval_id: str) -> Approval:
        approval = await self._store.approvals.get(approval_id)
        if approval is None:
            raise ApprovalError(f"there is no approval {approval_id!r} in this store")
        return approval

    async def checked(self, approval: Approval, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a person wants instead of a call's arguments, as it would run; or what they answer to its question.

        Raises EditedArgumentsError.
        """
        if approval.question is not None:
            try:
                return filled_in(approval, arguments)
            except ArgumentsError as error:
                raise EditedArgumentsError(f"the answer to {approval.about!r} is not valid: {error}") from error
        tool = self._library.lookup(approval.tool_name) or await self._described(approval)
        # Where nobody here knows the tool, the process that runs it checks again.
        return arguments if tool is None else await checked_arguments(tool, arguments)

    async def _described(self, approval: Approval) -> Tool[..., Any] | None:
        """The tool as the run was told of it, where this process does not hold the tool itself."""
        order = await self._store.runs.order(approval.run_id)
        for told in () if order is None else order.agent.get("tools", ()):
            if told.get("name") == approval.tool_name:
                return Tool.from_specification(ToolSpecification.stored(told), _not_here)
        return None


async def checked_arguments(tool: Tool[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """What a person wants a tool to be called with, as it would run. Raises EditedArgumentsError."""
    try:
        text = canonical_json(arguments)
        if len(text) > LARGE_TEXT:
            return (await asyncio.to_thread(tool.freeze, text)).arguments
        return tool.freeze(text).arguments
    except (ArgumentsError, ValueError, RecursionError) as error:
        told = f"the edited arguments for {tool.name!r} are not valid: {error}"
        raise EditedArgumentsError(told) from error


def _not_here(**_: Any) -> None:
    raise ConfigurationError("a tool that is only described cannot be run")

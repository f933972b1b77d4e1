"""Approvals that outlive their process: the gate that suspends a run, and the desk where people decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Decision, Deny, Expired, Grant
from journeyman.core.data import canonical_json, new_id
from journeyman.core.errors import ApprovalError, ConfigurationError, EditedArgumentsError
from journeyman.core.principals import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.protocols import Clock
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import Store
from journeyman.tools.library import ToolLibrary
from journeyman.tools.tool import ArgumentsError, Tool


class StoreGate:
    """Keeps the question in the store. Without an answer the run suspends and holds nothing."""

    def __init__(self, store: Store, *, session_id: str | None, clock: Clock) -> None:
        self._store = store
        self._session_id = session_id
        self._clock = clock

    async def ask(self, approval: Approval) -> Decision | None:
        kept = await self._store.approvals.ask(approval)
        if kept.status is ApprovalStatus.PENDING:
            kept = await self._by_grant(kept) or kept
        match kept.status:
            case ApprovalStatus.PENDING:
                if self._clock.time() < kept.expires_at.timestamp():
                    return None
                await self._store.approvals.expire(now=self._clock.time())
                return Expired()
            case ApprovalStatus.APPROVED:
                edited = await self._store.approvals.edited_arguments(kept.id)
                return Approve(arguments=edited, by=kept.decided_by)
            case ApprovalStatus.DENIED:
                return Deny(reason=kept.reason or "", by=kept.decided_by)
            case ApprovalStatus.EXPIRED | ApprovalStatus.SUPERSEDED:
                return Expired()

    async def _by_grant(self, approval: Approval) -> Approval | None:
        """A grant for this tool in this chat session counts as the approval of whoever gave it."""
        if self._session_id is None:
            return None
        principal_id = None if approval.principal is None else approval.principal.id
        grant = await self._store.grants.allows(self._session_id, approval.tool_name, principal_id=principal_id)
        if grant is None:
            return None
        by = f"{grant.granted_by} (grant {grant.id})"
        return await self._store.approvals.decide(
            approval.id, ApprovalStatus.APPROVED, by=by, now=self._clock.time()
        ) or await self._store.approvals.get(approval.id)


class Approvals:
    """What waits for a person, and their decisions. Each approval is decided once."""

    def __init__(self, store: Store, library: ToolLibrary, *, clock: Clock, decided: Callable[[str], None]) -> None:
        self._store = store
        self._library = library
        self._clock = clock
        self._decided = decided

    async def pending(
        self,
        *,
        run_id: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Approval]:
        """What waits, oldest first; what has expired meanwhile is no longer among them."""
        await self._store.approvals.expire(now=self._clock.time())
        return await self._store.approvals.list(
            status=ApprovalStatus.PENDING, run_id=run_id, principal_id=principal_id, limit=limit, offset=offset
        )

    async def list(
        self,
        *,
        run_id: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Approval]:
        """Decided or not, oldest first."""
        return await self._store.approvals.list(run_id=run_id, principal_id=principal_id, limit=limit, offset=offset)

    async def get(self, approval_id: str) -> Approval | None:
        return await self._store.approvals.get(approval_id)

    async def approve(
        self,
        approval_id: str,
        *,
        by: str,
        arguments: dict[str, Any] | None = None,
        for_session: bool = False,
    ) -> Approval:
        """Allow this exact call, or the same tool with ``arguments`` instead.

        ``for_session`` also allows the tool for the rest of its chat session, on behalf of the same principal, without
        asking, until revoked.
        """
        approval = await self._found(approval_id)
        session_id = await self._session_of(approval) if for_session else None
        if arguments is not None:
            arguments = await self._checked(approval, arguments)
        decided = await self._decide(approval_id, ApprovalStatus.APPROVED, by=by, arguments=arguments)
        if session_id is not None:
            await self.grant(session_id, approval.tool_name, by=by, principal=approval.principal)
        return decided

    async def deny(self, approval_id: str, *, by: str = "unnamed", reason: str = "") -> Approval:
        """Refuse the call; the model sees the reason."""
        await self._found(approval_id)
        return await self._decide(approval_id, ApprovalStatus.DENIED, by=by, reason=reason)

    async def grant(self, session_id: str, tool_name: str, *, by: str, principal: Principal | None = None) -> Grant:
        """Allow a tool for one chat session, on behalf of one principal (or of nobody in particular)."""
        grant = Grant(
            id=new_id("grant"),
            session_id=session_id,
            tool_name=tool_name,
            granted_by=by,
            granted_at=self._clock.time(),
            principal_id=None if principal is None else principal.id,
        )
        await self._store.grants.grant(grant)
        return grant

    async def grants(self, *, session_id: str | None = None) -> Sequence[Grant]:
        """Standing words that are in force."""
        return await self._store.grants.list(session_id=session_id)

    async def revoke(self, grant_id: str, *, by: str) -> bool:
        return await self._store.grants.revoke(grant_id, by=by, now=self._clock.time())

    async def _decide(self, approval_id: str, status: ApprovalStatus, *, by: str, **told: Any) -> Approval:
        decided = await self._store.approvals.decide(approval_id, status, by=by, now=self._clock.time(), **told)
        if decided is None:
            await self._store.approvals.expire(now=self._clock.time())
            now = await self._found(approval_id)
            who = f" by {now.decided_by!r}" if now.decided_by else ""
            raise ApprovalError(f"approval {approval_id!r} is {now.status.value} already{who}; nothing was changed")
        self._decided(decided.run_id)
        return decided

    async def _found(self, approval_id: str) -> Approval:
        approval = await self._store.approvals.get(approval_id)
        if approval is None:
            raise ApprovalError(f"there is no approval {approval_id!r}; 'journeyman approvals list' shows what waits")
        return approval

    async def _session_of(self, approval: Approval) -> str:
        row = await self._store.runs.get(approval.run_id)
        if row is None or row.session_id is None:
            raise ApprovalError(f"approval {approval.id!r} belongs to no chat session; approve it without for_session")
        return row.session_id

    async def _checked(self, approval: Approval, arguments: dict[str, Any]) -> dict[str, Any]:
        tool = self._library.lookup(approval.tool_name) or await self._described(approval)
        if tool is None:
            return arguments  # nobody here knows the tool; the process that runs it checks again
        try:
            return tool.freeze(canonical_json(arguments)).arguments
        except (ArgumentsError, ValueError, RecursionError) as error:
            told = f"the edited arguments for {approval.tool_name!r} are not valid: {error}"
            raise EditedArgumentsError(told) from error

    async def _described(self, approval: Approval) -> Tool[..., Any] | None:
        """The tool as the run was told of it, where this process does not hold the tool itself."""
        order = await self._store.runs.order(approval.run_id)
        for told in () if order is None else order.agent.get("tools", ()):
            if told.get("name") == approval.tool_name:
                return Tool.from_specification(ToolSpecification.stored(told), _not_here)
        return None


def _not_here(**_: Any) -> None:
    raise ConfigurationError("a tool that is only described cannot be run")

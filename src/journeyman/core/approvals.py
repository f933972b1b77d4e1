"""One question to a person, bound to one exact call, and the closed set of answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from pydantic import Field

from journeyman.core.data import Entity
from journeyman.core.principals import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.risk import RiskLevel


class ApprovalStatus(StrEnum):
    """Pending, or one of four ends."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"

    @property
    def final(self) -> bool:
        return self is not ApprovalStatus.PENDING

    def may_become(self, other: ApprovalStatus) -> bool:
        return self is ApprovalStatus.PENDING and other.final


class Approval(Entity):
    """May this tool run with exactly these arguments, for this principal?"""

    id: str = Field(min_length=1)
    run_id: str
    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    """The frozen arguments, defaults included: what runs is this and nothing else."""
    digest: str
    """Fingerprint of tool, version, frozen arguments and principal: what the answer is bound to."""
    risk: RiskLevel
    confidence: float | None = None
    principal: Principal | None = None
    status: ApprovalStatus = ApprovalStatus.PENDING
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None


class Approve(Entity):
    """Yes; with ``arguments``, yes to these instead (they are validated and graded again)."""

    arguments: dict[str, Any] | None = None
    by: str | None = None


class Deny(Entity):
    """No. The model sees the reason."""

    reason: str = ""
    by: str | None = None


class Expired(Entity):
    """Nobody answered in time: the call is denied and the run goes on."""


Decision: TypeAlias = Approve | Deny | Expired
Approver: TypeAlias = Callable[[Approval], Awaitable[Approve | Deny] | Approve | Deny]
"""Given to ``run()``: takes an ``Approval``, returns ``Approve`` or ``Deny``. Anything else denies."""


class ApprovalStore(Protocol):
    """Questions to people and their answers."""

    async def ask(self, approval: Approval) -> Approval:
        """Keep the question (once) and return it as it stands now."""

    async def get(self, approval_id: str) -> Approval | None: ...

    async def list(
        self,
        *,
        status: ApprovalStatus | None = None,
        run_id: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Approval]:
        """Oldest first."""

    async def decide(
        self,
        approval_id: str,
        status: ApprovalStatus,
        *,
        by: str,
        now: float,
        reason: str | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> Approval | None:
        """Decide a pending approval that has not expired; None when it was decided or had expired before.

        One conditional write: of two people deciding at once, one wins. Leaves an audit row.
        """

    async def edited_arguments(self, approval_id: str) -> dict[str, Any] | None:
        """The arguments a person put in place of the asked ones, where they did."""

    async def expire(self, *, now: float) -> Sequence[Approval]:
        """Mark what is past its time as expired, with an audit row each; returns them."""

    async def next_expiry(self) -> float | None: ...


class Grant(Entity):
    """A person's word that one tool may run without asking, for one principal in one chat session, until revoked."""

    id: str
    session_id: str
    tool_name: str
    granted_by: str
    granted_at: float
    revoked_at: float | None = None
    revoked_by: str | None = None
    principal_id: str | None = None
    """On whose behalf; None is nobody in particular, not everybody."""


class GrantStore(Protocol):
    async def grant(self, grant: Grant) -> None: ...

    async def revoke(self, grant_id: str, *, by: str, now: float) -> bool: ...

    async def list(self, *, session_id: str | None = None, active_only: bool = True) -> Sequence[Grant]: ...

    async def allows(self, session_id: str, tool_name: str, *, principal_id: str | None) -> Grant | None: ...

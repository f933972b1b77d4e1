"""One question to a person, bound to one exact call, and the closed set of answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from pydantic import Field, computed_field

from journeyman.core.data import Derived, Entity
from journeyman.core.grounding import ArgumentSource, ungrounded
from journeyman.core.principals import ANY_PRINCIPAL, Principal, PrincipalFilter
from journeyman.core.risk import RiskLevel
from journeyman.core.visible import exact_json


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


class GrantTerms(Entity):
    """How far a standing grant would go: whoever gives it is told before, and it ends at whichever comes first."""

    uses: int = Field(gt=0)
    seconds: float = Field(gt=0)


class Approval(Derived):
    """May this tool run with exactly these arguments, for this principal?"""

    id: str = Field(min_length=1)
    run_id: str
    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    """The frozen arguments, defaults included: what runs is this and nothing else."""
    digest: str
    """Fingerprint of the tool, frozen arguments and principal: what the answer is bound to."""
    tool_digest: str = ""
    """Fingerprint of the tool alone, its whole specification and implementation: what a grant is bound to."""
    about: str = ""
    """What the call refers to, in the words of the tool's ``describe``: foreign text, on one line."""
    grounding: tuple[ArgumentSource, ...] | None = None
    """Where each argument came from; None where no model wrote the call."""
    risk: RiskLevel
    risk_raised: bool = False
    """Whether the arguments themselves raise the risk: then no grant covers the call."""
    grant: GrantTerms | None = None
    """How far a grant for the session would go; None where none can be given."""
    four_eyes: bool = False
    """Whether somebody else than the principal must approve."""
    confidence: float | None = None
    principal: Principal | None = None
    status: ApprovalStatus = ApprovalStatus.PENDING
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None = None
    decided_by: str | None = None
    reason: str | None = None

    @computed_field  # type: ignore[prop-decorator]  # mypy cannot see through computed_field on a property
    @property
    def arguments_json(self) -> str:
        """The arguments as JSON text: every digit as it is, every character to be seen."""
        return exact_json(self.arguments)

    @computed_field  # type: ignore[prop-decorator]  # mypy cannot see through computed_field on a property
    @property
    def ungrounded(self) -> tuple[str, ...]:
        """The arguments whose values are identifiers that stand in nothing said before: they may be invented."""
        return ungrounded(self.grounding)


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

    async def count(self, *, status: ApprovalStatus, principal_id: PrincipalFilter = ANY_PRINCIPAL) -> int: ...

    async def decide(
        self,
        approval_id: str,
        status: ApprovalStatus,
        *,
        by: str,
        now: float,
        reason: str | None = None,
        arguments: dict[str, Any] | None = None,
        grant: Grant | None = None,
    ) -> Approval | None:
        """Decide a pending approval that has not expired; None when it was decided or had expired before.

        One conditional write: of two people deciding at once, one wins, and gives the ``grant`` with it. Leaves audit
        rows.
        """

    async def edited_arguments(self, approval_id: str) -> dict[str, Any] | None:
        """The arguments a person put in place of the asked ones, where they did."""

    async def expire(self, *, now: float) -> Sequence[Approval]:
        """Mark what is past its time as expired, with an audit row each; returns them."""

    async def next_expiry(self) -> float | None: ...


class Grant(Entity):
    """A person's word that one tool may run without asking, for one principal in one chat session.

    Good for a number of uses and a time, for calls of no higher risk whose arguments do not raise it, and for the tool
    as it was; until revoked.
    """

    id: str
    session_id: str
    tool_name: str
    granted_by: str
    granted_at: float
    revoked_at: float | None = None
    revoked_by: str | None = None
    principal_id: str | None = None
    """On whose behalf; None is nobody in particular, not everybody."""
    # None in what older versions gave, without limits: that covers nothing any more.
    tool_digest: str | None = None
    risk: RiskLevel | None = None
    """The highest risk it covers."""
    expires_at: float | None = None
    uses: int | None = None
    uses_left: int | None = None

    def in_force(self, now: float) -> bool:
        """Whether it can still be used."""
        return (
            self.revoked_at is None and bool(self.uses_left) and self.expires_at is not None and now < self.expires_at
        )


class GrantStore(Protocol):
    async def grant(self, grant: Grant) -> None: ...

    async def revoke(self, grant_id: str, *, by: str, now: float) -> bool: ...

    async def list(self, *, session_id: str | None = None, active_only: bool = True) -> Sequence[Grant]: ...

    async def use(self, approval: Approval, *, session_id: str, now: float) -> Approval | None:
        """Approve a pending question by a grant that covers it, and count the use: both or neither.

        None where no grant covers it. However many processes ask at once, a grant is used no more often than it says.
        """

"""One question to a person, bound to one exact call, and the closed set of answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from pydantic import Field

from journeyman.core.data import Entity
from journeyman.core.principals import Principal
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

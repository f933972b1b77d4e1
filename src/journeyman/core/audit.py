"""The tamper-evident log of decisions and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from journeyman.core.data import Entity


class AuditRow(Entity):
    """Who decided or was refused what. Each row's hash covers the row and the hash before it. No content."""

    seq: int
    time: float
    kind: str
    """E.g. approval_approved, approval_denied, approval_expired, call_refused, grant_given, grant_revoked, resolved."""
    actor: str | None
    run_id: str | None
    subject: str
    """What it is about: an approval's, grant's or call's id."""
    details: dict[str, Any]
    previous: str
    hash: str


class AuditStore(Protocol):
    """The tamper-evident log."""

    async def append(
        self, kind: str, *, actor: str | None, run_id: str | None, subject: str, details: dict[str, Any], now: float
    ) -> AuditRow: ...

    async def list(self, *, after: int = 0, limit: int = 100) -> Sequence[AuditRow]: ...

    async def verify(self) -> int:
        """Check the whole chain and return its length. Raises AuditError naming the first row that does not fit."""

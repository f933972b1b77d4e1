"""Approval gates without a store: an approver in this process, or none. Stores have their own gate."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Approver, Decision, Deny, Expired
from journeyman.core.data import LOG_FIELDS, canonical_json
from journeyman.core.events import ApprovalDecided
from journeyman.core.protocols import Clock, SystemClock
from journeyman.execution.invoke import AttemptTimeoutError, awaited, run_with_timeout

logger = logging.getLogger("journeyman.approval")


NOBODY = "nobody could be asked"
"""How the reason begins of a denial that nobody has pronounced."""


class NoApprover:
    """Denies every call that needs approval."""

    async def ask(self, approval: Approval) -> Decision | None:
        return Deny(reason=f"{NOBODY}: no approver was given and no store keeps the question")


class AskApprover:
    """Asks a callable and waits until the approval expires. Anything but ``Approve`` denies, errors included.

    ``waited`` is called with the seconds spent waiting, which do not count against the run's deadline.
    """

    def __init__(
        self, approver: Approver, *, clock: Clock | None = None, waited: Callable[[float], None] | None = None
    ) -> None:
        self._approver = approver
        self._clock = clock or SystemClock()
        self._waited = waited
        self._open = 0
        self._reported_until = 0.0

    async def ask(self, approval: Approval) -> Decision | None:
        asked_at = self._clock.monotonic()
        if self._open == 0:
            self._reported_until = asked_at
        self._open += 1
        try:
            return await self._ask(approval, asked_at)
        finally:
            self._open -= 1
            # Approvals may be open at the same time: each second is reported once, as soon as one call continues.
            now = self._clock.monotonic()
            if self._waited is not None:
                self._waited(now - self._reported_until)
            self._reported_until = now

    async def _ask(self, approval: Approval, asked_at: float) -> Decision:
        seconds = (approval.expires_at - approval.requested_at).total_seconds()
        try:
            # A copy: nothing the approver does to it changes what runs.
            copied = from_json(canonical_json(approval.arguments))
            decision: Any = self._approver(approval.model_copy(update={"arguments": copied}))
            if inspect.isawaitable(decision):
                decision = await run_with_timeout(awaited(decision), seconds)
        except AttemptTimeoutError:
            return Expired()
        except Exception as error:
            name = type(error).__name__
            fields = {"run_id": approval.run_id, "call_id": approval.call_id, "error": name}
            logger.warning("approver failed", extra={LOG_FIELDS: fields})
            return Deny(reason=f"the approver failed with {name}")
        # A blocking approver cannot be interrupted, but its answer is too late all the same.
        if self._clock.monotonic() - asked_at > seconds:
            return Expired()
        if isinstance(decision, Approve) and decision.arguments is not None:
            return _with_json_arguments(decision)
        if isinstance(decision, Approve | Deny):
            return decision
        return Deny(reason=f"the approver returned {type(decision).__name__}, not Approve or Deny")


def _with_json_arguments(decision: Approve) -> Approve | Deny:
    """The decision with a copy of its arguments that a journal can keep."""
    try:
        edited = from_json(canonical_json(decision.arguments))
    except (ValueError, TypeError, RecursionError) as error:
        return Deny(reason=f"the approver's edited arguments are not JSON: {error}", by=decision.by)
    return decision.model_copy(update={"arguments": edited})


def decision_fact(approval: Approval, decision: Decision) -> ApprovalDecided:
    match decision:
        case Approve(arguments=edited, by=by):
            status, reason = ApprovalStatus.APPROVED, None
        case Deny(reason=reason, by=by):
            status, edited = ApprovalStatus.DENIED, None
        case Expired():
            status, edited, by, reason = ApprovalStatus.EXPIRED, None, None, None
    return ApprovalDecided(
        approval_id=approval.id, call_id=approval.call_id, status=status, by=by, reason=reason, arguments=edited
    )

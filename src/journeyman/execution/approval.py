"""Who is asked when a call needs a person: an approver in this process, or nobody. Stores bring their own gate."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_core import from_json

from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Approver, Decision, Deny, Expired
from journeyman.core.data import LOG_FIELDS, canonical_json
from journeyman.core.events import ApprovalDecided
from journeyman.core.protocols import Clock, SystemClock
from journeyman.execution.invoke import GaveUpError, within

logger = logging.getLogger("journeyman.approval")

NOBODY = "nobody could be asked: no approver was given and no store keeps the question"


class NobodyToAsk:
    """No approver, no store: what needs approval is denied."""

    async def ask(self, approval: Approval) -> Decision | None:
        return Deny(reason=NOBODY)


class AskApprover:
    """Asks a callable and waits until the approval expires. Anything but ``Approve`` denies, errors included.

    ``waited`` is told how long a person took: that is not the run's time.
    """

    def __init__(
        self, approver: Approver, *, clock: Clock | None = None, waited: Callable[[float], None] | None = None
    ) -> None:
        self._approver = approver
        self._clock = clock or SystemClock()
        self._waited = waited
        self._waiting = 0
        self._told_at = 0.0

    async def ask(self, approval: Approval) -> Decision | None:
        asked_at = self._clock.monotonic()
        if self._waiting == 0:
            self._told_at = asked_at
        self._waiting += 1
        try:
            return await self._ask(approval, asked_at)
        finally:
            self._waiting -= 1
            # Questions may be open side by side: each stretch of time is told once, as soon as anybody goes on.
            now = self._clock.monotonic()
            if self._waited is not None:
                self._waited(now - self._told_at)
            self._told_at = now

    async def _ask(self, approval: Approval, asked_at: float) -> Decision:
        seconds = (approval.expires_at - approval.requested_at).total_seconds()
        # The approver gets a copy: nothing it does to the question changes what runs.
        question = approval.model_copy(deep=True)
        try:
            decision: Any = self._approver(question)
            if inspect.isawaitable(decision):
                decision = await within(_answer(decision), seconds)
        except GaveUpError:
            return Expired()
        except Exception as error:
            return self._failed(approval, type(error).__name__)
        # One that blocks cannot be interrupted, but its answer comes too late all the same.
        if self._clock.monotonic() - asked_at > seconds:
            return Expired()
        if isinstance(decision, Approve) and decision.arguments is not None:
            return _own_copy(decision)
        if isinstance(decision, Approve | Deny):
            return decision
        return Deny(reason=f"the approver returned {type(decision).__name__}, not Approve or Deny")

    @staticmethod
    def _failed(approval: Approval, error: str) -> Deny:
        fields = {"run_id": approval.run_id, "call_id": approval.call_id, "error": error}
        logger.warning("approver failed", extra={LOG_FIELDS: fields})
        return Deny(reason=f"the approver failed with {error}")


async def _answer(decision: Awaitable[Any]) -> Any:
    return await decision


def _own_copy(decision: Approve) -> Approve | Deny:
    """The decision with arguments that nobody else holds and that a journal can keep."""
    try:
        edited = from_json(canonical_json(decision.arguments))
    except (ValueError, TypeError, RecursionError) as error:
        return Deny(reason=f"the approver's edited arguments are not JSON: {error}", by=decision.by)
    return decision.model_copy(update={"arguments": edited})


def decided(approval: Approval, decision: Decision) -> ApprovalDecided:
    """A decision as the fact that is journalled."""
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

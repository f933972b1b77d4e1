"""Who is asked when a call needs a person: an approver in this process, or nobody. Stores bring their own gate."""

from __future__ import annotations

import asyncio
import inspect
import logging

from pydantic_core import from_json

from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Approver, Decision, Deny, Expired
from journeyman.core.data import LOG_FIELDS, canonical_json
from journeyman.core.events import ApprovalDecided

logger = logging.getLogger("journeyman.approval")

NOBODY = "nobody could be asked: no approver was given and no store keeps the question"


class NobodyToAsk:
    """No approver, no store: what needs approval is denied."""

    async def ask(self, approval: Approval) -> Decision | None:
        return Deny(reason=NOBODY)


class AskApprover:
    """Asks a callable and waits until the approval expires. Anything but ``Approve`` denies, errors included."""

    def __init__(self, approver: Approver) -> None:
        self._approver = approver

    async def ask(self, approval: Approval) -> Decision | None:
        seconds = (approval.expires_at - approval.requested_at).total_seconds()
        # The approver gets a copy: nothing it does to the question changes what runs.
        question = approval.model_copy(deep=True)
        try:
            async with asyncio.timeout(seconds) as deadline:
                answer = self._approver(question)
                decision = await answer if inspect.isawaitable(answer) else answer
        except TimeoutError:
            if deadline.expired():
                return Expired()
            return self._failed(approval, "TimeoutError")
        except Exception as error:
            return self._failed(approval, type(error).__name__)
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

"""The question to a person: what would run, how bad it can be, what it is about, and what their answer is bound to."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from journeyman.core.approvals import Approval, Approve, GrantTerms
from journeyman.core.context import Secrets, ToolContext
from journeyman.core.data import LOG_FIELDS, digest
from journeyman.core.grounding import ArgumentSource, ungrounded
from journeyman.core.messages import ToolCall
from journeyman.core.policy import Policy
from journeyman.core.protocols import moment
from journeyman.core.risk import RiskLevel
from journeyman.core.visible import one_line
from journeyman.execution.invoke import Invoker
from journeyman.execution.risk import base_risk, name_secrets
from journeyman.tools.library import AnyTool
from journeyman.tools.tool import FrozenArguments

if TYPE_CHECKING:
    from journeyman.execution.executor import CallScope

logger = logging.getLogger("journeyman.approval")

DESCRIBE_SECONDS = 1.0
"""How long a tool may take to say what a call is about."""
LONGEST_ABOUT = 200
"""Characters of what it says."""


def question(
    call: ToolCall,
    tool: AnyTool,
    frozen: FrozenArguments,
    scope: CallScope,
    policy: Policy,
    *,
    risk: RiskLevel,
    bound_to: str,
    about: str,
    grounding: tuple[ArgumentSource, ...] | None,
    now: float,
    seconds: float,
) -> Approval:
    """The question about exactly these arguments, open for so many seconds."""
    raised = risk.rank > base_risk(tool.specification, policy).rank or name_secrets(frozen.arguments)
    raised = raised or (policy.grounding == "ask" and bool(ungrounded(grounding)))
    grantable = not raised and policy.grant_risk is not None and risk.rank <= policy.grant_risk.rank
    return Approval(
        # The time is part of the name: a tool that changes back asks anew, and an old answer stays an old answer.
        id=f"appr_{digest(scope.run_id, call.id, bound_to, repr(now))[:20]}",
        run_id=scope.run_id,
        call_id=call.id,
        tool_name=tool.name,
        arguments=frozen.arguments,
        digest=bound_to,
        tool_digest=tool.digest,
        about=about,
        grounding=grounding,
        risk=risk,
        risk_raised=raised,
        grant=GrantTerms(uses=policy.grant_uses, seconds=policy.grant_seconds) if grantable else None,
        four_eyes=policy.four_eyes,
        confidence=call.confidence,
        principal=scope.principal,
        requested_at=moment(now),
        expires_at=moment(now + seconds),
    )


async def about(call: ToolCall, tool: AnyTool, frozen: FrozenArguments, scope: CallScope, invoker: Invoker) -> str:
    """What the call is about, by the tool's own account. Whatever goes wrong, the person is asked without it."""
    if tool.describe is None:
        return ""
    context = ToolContext(
        principal=scope.principal,
        secrets=Secrets.from_environment(),
        correlation_id=scope.correlation_id,
        run_id=scope.run_id,
        call_id=call.id,
    )
    try:
        said = await invoker.hook(tool.describe, (frozen.arguments, context), DESCRIBE_SECONDS)
        if not isinstance(said, str):
            raise TypeError(f"describe gave {type(said).__name__} and not a text")
        return one_line(context.secrets.mask(said), most=LONGEST_ABOUT)
    except Exception as error:
        fields = {"run_id": scope.run_id, "call_id": call.id, "tool": tool.name, "error": type(error).__name__}
        logger.warning("a tool could not say what its call is about", extra={LOG_FIELDS: fields})
        return ""


def own_approval(approval: Approval, decision: Approve) -> str | None:
    """Why an approval does not count under four eyes; None where it does."""
    if not approval.four_eyes:
        return None
    if not decision.by:
        return "four eyes are asked for, and nobody says who approved"
    own = None if approval.principal is None else approval.principal.id
    if own is not None and (decision.by == own or decision.by.startswith(f"{own} (")):  # e.g. "ada (--yes)"
        return f"four eyes are asked for: {own!r} cannot approve a call of their own run"
    return None

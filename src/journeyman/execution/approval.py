"""The question to a person, and approval gates without a store: an approver in this process, or none.

Stores have their own gate.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from journeyman.core.approvals import NOBODY, Approval, Approve, Approver, Decision, Deny, Expired, GrantTerms, Question
from journeyman.core.calls import Secrets, ToolContext, ungrounded
from journeyman.core.data import LOG_FIELDS, canonical_json, digest, moment, one_line
from journeyman.core.errors import ToolError
from journeyman.core.events import ApprovalDecided, ApprovalRequested
from journeyman.core.policy import RiskLevel
from journeyman.core.protocols import Clock, SystemClock
from journeyman.core.specification import ToolSpecification
from journeyman.execution.checks import base_risk, name_secrets
from journeyman.execution.invoke import AttemptTimeoutError, Invoker, run_with_timeout
from journeyman.execution.outcome import PutAside
from journeyman.tools.library import AnyTool
from journeyman.tools.tool import ArgumentsError, FrozenArguments, Tool, awaited

if TYPE_CHECKING:
    from journeyman.execution.executor import CallInProgress

logger = logging.getLogger("journeyman.approval")


DESCRIBE_SECONDS = 1.0
"""How long a tool may take to say what a call is about."""
LONGEST_ABOUT = 200
"""Characters of what it says."""
LOOK_SECONDS = 1.0
"""How often a call that is held looks for its answer."""


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


# --- the question to a person: what would run, how bad it can be, what it is about, what an answer is bound to


async def question(
    current: CallInProgress,
    tool: AnyTool,
    frozen: FrozenArguments,
    bound_to: str,
    tool_digest: str,
    *,
    invoker: Invoker,
    clock: Clock,
    seconds: float,
) -> Approval:
    """The question about exactly these arguments, open for so many seconds."""
    about = await _about(current, tool, frozen, invoker)
    now = clock.time()
    call, scope, policy = current.call, current.scope, current.scope.policy
    risk = current.risk or policy.default_risk
    flow = current.flow.reason if current.flow is not None and current.flow.decision == "asked" else ""
    raised = risk.rank > base_risk(tool.specification, policy).rank or name_secrets(frozen.arguments)
    raised = raised or (policy.grounding == "ask" and bool(ungrounded(current.grounding)))
    grantable = not raised and policy.grant_risk is not None and risk.rank <= policy.grant_risk.rank
    return Approval(
        # The time is part of the name: a tool that changes back asks anew, and an old answer stays an old answer.
        id=f"appr_{digest(scope.run_id, call.id, bound_to, repr(now))[:20]}",
        run_id=scope.run_id,
        call_id=call.id,
        tool_name=tool.name,
        arguments=frozen.arguments,
        digest=bound_to,
        # What a grant is bound to: one for a tool covers no flow, and one for a flow covers no other.
        tool_digest=digest(tool_digest, current.flow_key) if flow else tool_digest,
        not_bound_to=tool.not_bound_to,
        about=about,
        grounding=current.grounding,
        flow=flow,
        risk=risk,
        risk_raised=raised,
        grant=GrantTerms(uses=policy.grant_uses, seconds=policy.grant_seconds) if grantable else None,
        four_eyes=policy.four_eyes,
        confidence=call.confidence,
        principal=scope.principal,
        requested_at=moment(now),
        expires_at=moment(now + seconds),
    )


async def _about(current: CallInProgress, tool: AnyTool, frozen: FrozenArguments, invoker: Invoker) -> str:
    """What the call is about, by the tool's own account. Whatever goes wrong, the person is asked without it."""
    if tool.describe is None:
        return ""
    call, scope = current.call, current.scope
    context = ToolContext(
        principal=scope.principal,
        secrets=Secrets.from_environment(),
        correlation_id=scope.run_id,
        run_id=scope.run_id,
        call_id=call.id,
    )
    about = {"run_id": scope.run_id, "call_id": call.id}
    said = await invoker.words(tool, tool.describe, frozen.arguments, context, **about, timeout=DESCRIBE_SECONDS)
    return one_line(context.secrets.mask(said), most=LONGEST_ABOUT)


# --- what a tool, or the server behind it, asks while its call runs


@dataclass(slots=True, kw_only=True)
class Person:
    """The ``Caller`` of a call that no program waits for: whoever approves, asked in the same way."""

    current: CallInProgress
    clock: Clock
    seconds: float
    """How long there is for an answer."""
    asked: int = 0

    async def ask(self, requests: Mapping[str, Mapping[str, Any]], *, held: bool) -> Mapping[str, Mapping[str, Any]]:
        return {key: await self._answer(request, held=held) for key, request in requests.items()}

    def log(self, level: str, data: Any, logger: str | None) -> None:
        """What servers log is in our own log."""

    async def _answer(self, request: Mapping[str, Any], *, held: bool) -> dict[str, Any]:
        if request["method"] != "elicitation/create":
            raise ToolError("NOBODY_TO_ASK", f"{request['method']!r} is for a program: no person answers it")
        scope, known = self.current.scope, self.current.past.questions
        approval = self._question(request["params"], held=held)
        if approval.id not in known:
            await scope.recorder.record(ApprovalRequested(approval=approval))
        decision = known.setdefault(approval.id, None)
        if decision is None:
            while (decision := await scope.gate.ask(approval)) is None:
                if not held:
                    raise PutAside(approval.id)
                await self.clock.sleep(LOOK_SECONDS)
            known[approval.id] = decision
            await scope.recorder.record(ApprovalDecided.of(approval, decision))
        match decision:
            case Approve(arguments=given):
                try:
                    return {"action": "accept", "content": filled_in(approval, given)}
                except ArgumentsError as error:
                    raise ToolError("WRONG_ANSWER", f"the answer does not fit the question: {error}") from None
            case Deny(reason=reason):
                if reason.startswith(NOBODY):
                    raise ToolError("NOBODY_TO_ASK", reason, recover_action="Go on without it, or tell the user")
                return {"action": "decline"}
            case Expired():
                raise ToolError("NO_ANSWER", f"nobody answered the question within {self.seconds:g} s")

    def _question(self, params: Mapping[str, Any], *, held: bool) -> Approval:
        """The question with its place among those of the call: asked again after a restart, it is the same one."""
        self.asked += 1
        call, scope, now = self.current.call, self.current.scope, self.clock.time()
        message, form = str(params.get("message", "")), params.get("requestedSchema") or {}
        if "url" in params:
            message = f"{message}\nTo be done at {params['url']}"
        bound_to = digest(scope.run_id, call.id, repr(self.asked), message, canonical_json(form))
        asked = Question(message=message, form=dict(form), held=held)
        return Approval(
            id=f"appr_{bound_to[:20]}",
            run_id=scope.run_id,
            call_id=call.id,
            tool_name=call.tool_name,
            arguments=asked.blank(),
            digest=bound_to,
            about=one_line(message, most=LONGEST_ABOUT),
            question=asked,
            risk=RiskLevel.REVERSIBLE,
            principal=scope.principal,
            requested_at=moment(now),
            expires_at=moment(now + self.seconds),
        )


def filled_in(approval: Approval, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """An answer as its question's form wants it; None is the form as it was put. Raises ArgumentsError."""
    assert approval.question is not None
    given = approval.arguments if given is None else given
    # What is left empty is not said.
    entered = {name: value for name, value in given.items() if value is not None and value != ""}
    what = {"name": approval.tool_name, "description": "An answer", "parameters": approval.question.form}
    form: AnyTool = Tool.from_specification(ToolSpecification(**what), dict)
    checked = form.freeze(canonical_json(entered)).arguments
    return {name: checked[name] for name in dict.fromkeys((*approval.arguments, *checked)) if name in checked}

"""The pipeline of one tool call. Every call of every tool from every door passes through it, once.

requested → resolve → permission → validate and freeze → added checks → grounding → flow → grade → approve → cache
→ deadline[ attempt( rate limit → breaker → journal started → timeout[invoke] ) × retries ] → journal outcome

Each stage passes the call on or ends it with a value that a model can read. Nothing rewrites the arguments after
they were frozen, except a person who approves others in their place: those are frozen, checked and graded again.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from journeyman.core.approvals import Approval, ApprovalStatus, Approve, Decision, Deny, Expired
from journeyman.core.calls import (
    NO_SECRETS,
    ArgumentSource,
    ArtifactStore,
    Caller,
    CallStatus,
    DataLabel,
    FlowDecision,
    Secrets,
    ToolCallRecord,
    ToolContext,
    ungrounded,
)
from journeyman.core.data import LARGE_TEXT, canonical_json, moment, unchecked
from journeyman.core.events import (
    ApprovalDecided,
    ApprovalRequested,
    CallFinished,
    CallProgress,
    CallResolved,
    CallStarted,
)
from journeyman.core.playbook import Advice
from journeyman.core.policy import Policy, Principal, RiskLevel, for_tool, requires_approval
from journeyman.core.protocols import ApprovalGate, CircuitBreaker, Clock, RateLimiter
from journeyman.core.runs import ToolCall
from journeyman.core.specification import RESERVED_NAMES
from journeyman.execution.approval import Person, question
from journeyman.execution.checks import (
    MISS,
    ResultCache,
    advised_refusal,
    binding,
    copied_values,
    freeze,
    grade,
    may_not_flow,
    name_secrets,
    not_grounded,
    reads_label,
    resolve,
)
from journeyman.execution.invoke import Invoker
from journeyman.execution.outcome import PutAside, Refusal, Success, Suspended, keep, keep_media
from journeyman.execution.recorder import Recorder
from journeyman.execution.results import media_items, weigh
from journeyman.provenance.flow import Flow, with_source
from journeyman.provenance.ledger import Ledger, edited_sources
from journeyman.tools.library import AnyTool
from journeyman.tools.tool import FrozenArguments

if TYPE_CHECKING:
    from journeyman.app.runner import Claims

Around: TypeAlias = Callable[[str, str], AbstractContextManager[None]]
"""From call id and tool name to a context manager around each attempt, e.g. a current span."""
_NOTHING_AROUND = nullcontext()
Outcome: TypeAlias = Success | Refusal
MOST_PROGRESS_CHARS = 4_000
MOST_PAUSE_SECONDS = 3_600.0
"""How long a tool can have its calls held back: what it repeats comes from a server, and may be anything."""


@dataclass(slots=True, kw_only=True)
class CallScope:
    """What belongs to one run, as far as its calls need it."""

    run_id: str
    recorder: Recorder
    tools: Mapping[str, AnyTool]
    """The tools bound to this run, by name."""
    policy: Policy
    """The rules as they are at this step: an edit of them holds from the next one on."""
    gate: ApprovalGate
    principal: Principal | None = None
    deadline: float | None = None
    """The run's deadline, by the clock's monotonic time; postponed while a person is asked."""
    around: Around | None = None
    """Entered around each attempt, in the task that makes it."""
    ledger: Ledger | None = None
    """What was said in the run, where a model writes its calls; without it nobody asks where arguments came from."""
    flow: Flow | None = None
    """Judges where values may flow, by the ledger; made with the first call that has something to judge."""
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    deps: Any = None
    """What the program gave the run for its tools."""
    advice: Sequence[Advice] = ()
    """What the model was told of other tasks: then a call may carry a value of theirs."""


Check: TypeAlias = Callable[[AnyTool, FrozenArguments, CallScope], Awaitable[Refusal | None]]
"""An added stage: None passes the call on, a refusal ends it, an exception propagates and nothing is run.

It must not change the arguments.
"""


@dataclass(slots=True)
class CallPast:
    """What the journal holds of a call, when a run is resumed."""

    approval: Approval | None = None
    decision: Decision | None = None
    questions: dict[str, Decision | None] = field(default_factory=dict)
    """By id, what it has asked while it ran."""
    started: CallStarted | None = None
    unknown: ToolCallRecord | None = None
    """The record of a call whose process died while it ran, until a person has resolved it."""


@dataclass(slots=True)
class CallInProgress:
    """Collects the fields of the call's record, and what a person is asked about it."""

    call: ToolCall
    scope: CallScope
    past: CallPast
    started_at: float
    started_clock: float
    arguments: dict[str, Any]
    requested_at: float
    attempts: int = 0
    wait_left: float = 0.0
    """For how long it may still wait for its turn, over all its attempts."""
    risk: RiskLevel | None = None
    approval_id: str | None = None
    read_only: bool | None = None
    grounding: tuple[ArgumentSource, ...] | None = None
    flow: FlowDecision | None = None
    flow_key: str = ""
    in_their_words: bool = False
    label: DataLabel | None = None

    @property
    def execution_id(self) -> str:
        return f"{self.scope.run_id}.{self.call.id}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the stages before a person is asked say of a call: it is refused, a person must agree, or it may run."""

    refusal: Refusal | None
    asks: bool
    risk: RiskLevel | None
    grounding: tuple[ArgumentSource, ...] | None
    flow: FlowDecision | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Executor:
    """What all runs with one library share: the parts that stages use. It serves any number of runs at once."""

    invoker: Invoker
    limiter: RateLimiter
    breaker: CircuitBreaker
    cache: ResultCache
    clock: Clock
    artifacts: ArtifactStore | None = None
    """Where large results are kept; None leaves them in their records."""
    claims: Claims | None = None
    """Knows of calls that another process has begun; None where there is no other."""
    durable: bool = False
    """Whether runs wait in a store: then a person has longer to decide, and can settle a call of unknown outcome."""
    now: Callable[[Principal], Principal | None] | None = None
    """Who a principal is by now, or None where they are nobody any more. Without it, who they were."""
    callers: Mapping[str, Caller] = field(default_factory=dict)
    """By run, who can be reached while its calls run."""
    checks: Sequence[Check] = ()
    """Stages of the caller's own, run in order after validation and before the risk is graded."""

    async def execute(
        self, call: ToolCall, scope: CallScope, past: CallPast | None = None
    ) -> ToolCallRecord | Suspended:
        """Run a requested call to its outcome, or suspend it until a person has decided."""
        current = self._begin(call, scope, past or CallPast())
        try:
            outcome = await self._govern(current)
            if isinstance(outcome, Success):
                outcome = await self._kept(current, outcome)
        except asyncio.CancelledError:
            # Nothing may be left started without an outcome.
            await self._finish(current, Refusal.cancelled(call.tool_name, under_way=current.attempts > 0))
            raise
        if isinstance(outcome, Suspended):
            return outcome
        if isinstance(outcome, ToolCallRecord):
            return await self._adopt(current, outcome)
        record = await self._finish(current, outcome)
        if record.status is CallStatus.UNKNOWN and self.durable:
            return Suspended(call.id, call.id, unknown=True)
        return record

    async def _kept(self, current: CallInProgress, outcome: Success) -> Success:
        """A large result is put where it can be read in parts, and so is any image or file; the record says where."""
        if current.call.tool_name in RESERVED_NAMES or outcome.media:
            return outcome  # what reserved ones give is read by the loop; what is replayed was kept before
        policy, run_id, artifacts = current.scope.policy, current.scope.run_id, self.artifacts
        if media_items(outcome.value):
            value, media = await keep_media(outcome.value, run_id, artifacts)
            outcome = Success(value, cached=outcome.cached, size=weigh(value, sys.maxsize), media=media)
        # What a model may see of a result stays in its record.
        if artifacts is None or outcome.size <= max(policy.max_inline_bytes, 4 * policy.max_result_chars):
            return outcome
        artifact = await keep(outcome.value, run_id, artifacts, policy=policy)
        return replace(outcome, value=None, artifact=artifact)

    async def refuse(self, call: ToolCall, scope: CallScope, refusal: Refusal) -> ToolCallRecord:
        """Record a call that the loop itself refuses, e.g. because it is repeated."""
        return await self._finish(self._begin(call, scope, CallPast()), refusal)

    async def abandon(self, call: ToolCall, scope: CallScope, past: CallPast) -> ToolCallRecord:
        """Record a call that was under way when its process died, in a run that is ended and not resumed."""
        current = self._begin(call, scope, past)
        if past.started is not None:
            if self.claims is not None:
                told = await self.claims.outcome(past.started, wait=False)
                if told is not None and told.record is not None:
                    return await self._adopt(current, told.record)
            current.started_at = past.started.time
            current.arguments, current.attempts = past.started.arguments, past.started.attempt
        if past.unknown is not None:
            current.risk = past.unknown.risk
        current.approval_id = None if past.approval is None else past.approval.id
        return await self._finish(current, Refusal.outcome_unknown(call.tool_name, ended=True))

    def _begin(self, call: ToolCall, scope: CallScope, past: CallPast) -> CallInProgress:
        now = self.clock.time()
        return CallInProgress(call, scope, past, now, self.clock.monotonic(), call.arguments, now)

    async def judge(self, call: ToolCall, scope: CallScope) -> Judgement:
        """What would be decided of a call by itself. Nobody is asked, nothing is recorded and nothing is run."""
        current = self._begin(call, scope, CallPast())
        passed = await self._judge(current)
        refusal = passed if isinstance(passed, Refusal) else None
        return Judgement(
            refusal, refusal is None and self._asks(current), current.risk, current.grounding, current.flow
        )

    async def _govern(self, current: CallInProgress) -> Outcome | ToolCallRecord | Suspended:
        if current.past.started is not None:
            return await self._resume(current, current.past.started)
        passed = await self._judge(current)
        if isinstance(passed, Refusal):
            return passed
        tool, frozen = passed
        if self._asks(current):
            approved = await self._approve(current, tool, frozen)
            if not isinstance(approved, FrozenArguments):
                return approved
            frozen = approved
        if tool.cache_seconds is None or not tool.specification.read_only:
            return await self._attempts(current, tool, frozen)
        return await self._cached_or_run(current, tool, frozen, tool.cache_seconds)

    async def _judge(self, current: CallInProgress) -> tuple[AnyTool, FrozenArguments] | Refusal:
        """Everything that is decided of a call without anybody, up to its risk."""
        scope, policy = current.scope, current.scope.policy
        tool = resolve(current.call, scope.tools, scope.principal)
        if isinstance(tool, Refusal):
            return tool
        current.read_only = tool.specification.read_only
        frozen = await freeze(tool, current.call, policy)
        if isinstance(frozen, Refusal):
            return frozen
        current.arguments = frozen.arguments
        if scope.advice and (refusal := advised_refusal(tool, frozen, scope.advice)) is not None:
            return refusal
        if self.checks and (refusal := await self._check(current, tool, frozen)) is not None:
            return refusal
        if (ledger := scope.ledger) is not None:
            await self._trace(current, tool, frozen.arguments, small=ledger.unread + len(frozen.text) <= LARGE_TEXT)
            if scope.advice and (copied := copied_values(scope.advice, frozen.arguments, current.grounding)):
                return not_grounded(tool.specification, frozen.arguments, copied, scope.tools.values(), copied=True)
            if policy.flow != "off" and tool.name not in RESERVED_NAMES:
                await self._judge_flow(current, tool, frozen, ledger)
                if current.flow is not None and current.flow.decision == "refused":
                    return may_not_flow(tool.name, current.flow.reason)
            if policy.grounding == "refuse" and (missing := ungrounded(current.grounding)):
                return not_grounded(tool.specification, frozen.arguments, missing, scope.tools.values())
        current.risk = await self._grade(current, tool, frozen.arguments, frozen.text)
        if (flow := current.flow) is not None and flow.spared and not self._may_spare(current, tool):
            current.flow = flow.model_copy(update={"spared": False})
        return tool, frozen

    def _may_spare(self, current: CallInProgress, tool: AnyTool) -> bool:
        """Whether nobody has said anything of a tool's risk, and the arguments do not raise it."""
        policy = current.scope.policy
        said = tool.name in policy.risks or for_tool(policy.least_risks, tool.name) is not None
        return not said and not name_secrets(current.arguments) and tool.hazard is None

    async def _judge_flow(
        self, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments, ledger: Ledger
    ) -> None:
        """Whether untrusted words may have caused the call, or private data would leave with it."""
        scope, policy, specification = current.scope, current.scope.policy, tool.specification
        spares = policy.flow_spares and specification.risk is None and not specification.read_only
        if not spares and (ledger.taint is None or (specification.read_only and not ledger.taint.private)):
            return
        if scope.flow is None or scope.flow.ledger is not ledger:
            scope.flow = Flow(ledger)
        judge = partial(
            scope.flow.judge,
            specification,
            frozen.arguments,
            reads_only=specification.read_only,
            sends=for_tool(policy.sends, tool.name) or specification.sends,
            elsewhere=tool.runs_elsewhere,
            keeps_labels=tool.keeps_labels,
            always=spares,
        )
        large = scope.flow.unread + len(frozen.text) > LARGE_TEXT
        verdict = await asyncio.to_thread(judge) if large else judge()
        if verdict is None or (specification.read_only and not verdict.doubts):
            return
        current.flow_key, current.in_their_words = verdict.key, verdict.in_their_words
        if verdict.doubts:
            told: dict[str, Any] = {"report": "reported", "ask": "asked", "refuse": "refused"}
            current.flow = FlowDecision(decision=told[policy.flow], reason=verdict.reason, doubts=verdict.labels)
        else:
            current.flow = FlowDecision(decision="allowed", spared=spares and verdict.from_person)

    async def _resume(self, current: CallInProgress, started: CallStarted) -> Outcome | ToolCallRecord | Suspended:
        """A call that another process has begun: repeat it only where that is safe."""
        past, tool = current.past, current.scope.tools.get(current.call.tool_name)
        current.arguments = started.arguments
        current.attempts = started.attempt
        if past.approval is not None:
            current.approval_id, current.requested_at = past.approval.id, past.approval.requested_at.timestamp()
        if tool is not None:
            current.read_only = tool.specification.read_only
            text = canonical_json(started.arguments)
            await self._trace(current, tool, started.arguments)
            current.risk = await self._grade(current, tool, started.arguments, text)
            if tool.specification.repeat_safe:
                return await self._attempts(current, tool, tool.freeze(text))
        if self.claims is not None:
            told = await self.claims.outcome(started, wait=past.unknown is None)
            if told is not None and told.record is not None:
                return told.record
            if told is not None:
                # It never began: it does so now, with all that comes before.
                await current.scope.recorder.record(CallResolved(call_id=current.call.id, action="rerun"), sync=True)
                current.attempts = 0
                return await self._govern(current)
        if past.unknown is None:
            await self._finish(current, Refusal.outcome_unknown(current.call.tool_name))
        return Suspended(current.call.id, current.call.id, unknown=True)

    async def _grade(self, current: CallInProgress, tool: AnyTool, arguments: dict[str, Any], text: str) -> RiskLevel:
        policy = current.scope.policy
        if len(text) <= LARGE_TEXT:
            return grade(tool.specification, arguments, policy, tool.hazard)
        # Every text among them is searched for secrets: everybody else would wait.
        return await asyncio.to_thread(grade, tool.specification, arguments, policy, tool.hazard)

    async def _trace(
        self, current: CallInProgress, tool: AnyTool, arguments: dict[str, Any], *, small: bool = False
    ) -> None:
        """Find out where each argument came from; in a thread after a long text, since everybody else would wait."""
        if (ledger := current.scope.ledger) is None or tool.name in RESERVED_NAMES:
            return
        trace = partial(ledger.trace, tool.specification, arguments)
        current.grounding = trace() if small else await asyncio.to_thread(trace)

    def _asks(self, current: CallInProgress) -> bool:
        """Whether a person is to see the call: for the flow of its values, its risk, or an identifier from nowhere."""
        policy, flow = current.scope.policy, current.flow
        if flow is not None and flow.decision == "asked":
            return True
        risk = current.risk or policy.default_risk
        if (flow is None or not flow.spared) and requires_approval(
            risk, current.call.confidence, threshold=policy.approval_confidence
        ):
            return True
        return policy.grounding == "ask" and not current.read_only and bool(ungrounded(current.grounding))

    async def _check(self, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments) -> Refusal | None:
        for check in self.checks:
            if (refusal := await check(tool, frozen, current.scope)) is not None:
                return refusal
        return None

    async def _approve(
        self, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments
    ) -> FrozenArguments | Refusal | Suspended:
        """Ask a person about exactly these arguments for exactly this principal."""
        past, scope = current.past, current.scope
        # In a thread: files are read, those of a large program for the first time. One after the other, so that calls
        # of one turn ask in their order.
        async with scope.asking:
            tool_digest = await asyncio.to_thread(tool.approval_digest)
        bound_to = binding(tool_digest, frozen, scope.principal)
        approval = past.approval
        if approval is not None and approval.digest != bound_to:
            # The tool is another one by now: an answer to the old question is no answer, whatever it says.
            await scope.recorder.record(
                ApprovalDecided(
                    approval_id=approval.id,
                    call_id=current.call.id,
                    status=ApprovalStatus.SUPERSEDED,
                    reason=f"{tool.name!r}, or who it is for, has changed since it was asked about; it is asked again",
                )
            )
            approval = None
        if approval is None:
            invoker, clock, seconds = self.invoker, self.clock, self._seconds_to_answer(scope.policy)
            approval = await question(
                current, tool, frozen, bound_to, tool_digest, invoker=invoker, clock=clock, seconds=seconds
            )
            await scope.recorder.record(ApprovalRequested(approval=approval))
            past.decision = None
        current.approval_id = approval.id
        current.requested_at = approval.requested_at.timestamp()
        decision = past.decision
        if decision is None:
            decision = await scope.gate.ask(approval)
            if decision is None:
                return Suspended(current.call.id, approval.id)
            await scope.recorder.record(ApprovalDecided.of(approval, decision))
        return await self._apply(decision, current, tool, frozen, approval)

    def _seconds_to_answer(self, policy: Policy) -> float:
        return policy.stored_approval_seconds if self.durable else policy.approval_seconds

    def _person(self, current: CallInProgress) -> Person:
        """Who is asked what a tool asks, where no program has made the call."""
        return Person(current=current, clock=self.clock, seconds=self._seconds_to_answer(current.scope.policy))

    async def _apply(
        self, decision: Decision, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments, approval: Approval
    ) -> FrozenArguments | Refusal:
        match decision:
            case Approve(arguments=edited):
                if (why := approval.not_to_be_approved_by(decision.by)) is not None:
                    return Refusal.denied("APPROVAL_DENIED", f"{tool.name!r} was not allowed: {why}")
                if (refusal := self._not_permitted_now(current)) is not None:
                    return refusal
                return frozen if edited is None else await self._edited(edited, current, tool)
            case Deny(reason=reason):
                return Refusal.denied(
                    "APPROVAL_DENIED", f"{tool.name!r} was not allowed" + (f": {reason}" if reason else "")
                )
            case Expired():
                seconds = (approval.expires_at - approval.requested_at).total_seconds()
                return Refusal.denied("APPROVAL_EXPIRED", f"nobody allowed {tool.name!r} within {seconds:g} s")

    def _not_permitted_now(self, current: CallInProgress) -> Refusal | None:
        """Time has passed since the call was checked: what the principal may do is looked up once more."""
        scope = current.scope
        if self.now is None or scope.principal is None:
            return None
        again = resolve(current.call, scope.tools, self.now(scope.principal))
        return again if isinstance(again, Refusal) else None

    async def _edited(
        self, edited: dict[str, Any], current: CallInProgress, tool: AnyTool
    ) -> FrozenArguments | Refusal:
        """What a person put in place of the arguments passes the same stages as what the model wrote."""
        changed = await freeze(
            tool, current.call.model_copy(update={"arguments": edited, "malformed": None}), current.scope.policy
        )
        if isinstance(changed, Refusal):
            return Refusal.denied(
                "APPROVAL_INVALID", f"the person's edited arguments are not valid: {changed.error.message}"
            )
        if current.grounding is not None:
            current.grounding = edited_sources(current.grounding, current.arguments, changed.arguments)
        current.arguments = changed.arguments
        if self.checks and (refusal := await self._check(current, tool, changed)) is not None:
            return refusal
        current.risk = await self._grade(current, tool, changed.arguments, changed.text)
        return changed

    async def _cached_or_run(
        self, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments, seconds: float
    ) -> Outcome | Suspended:
        key = binding(tool.digest, frozen, current.scope.principal)
        unmarked = self._label(current, tool, frozen, None)
        if (hit := self.cache.get(key)) is not MISS:
            current.label = unmarked
            return Success(hit, cached=True, size=weigh(hit, sys.maxsize))
        outcome = await self._attempts(current, tool, frozen)
        if isinstance(outcome, Success) and current.label == unmarked:  # a mark holds for this one result
            self.cache.put(key, outcome.value, seconds=seconds, size=outcome.size)
        return outcome

    async def _attempts(self, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments) -> Outcome | Suspended:
        """Attempts until one succeeds, a retry is unsafe or useless, or the deadline passes."""
        timeout, policy = tool.specification.timeout_seconds, current.scope.policy
        current.wait_left = policy.wait_seconds
        deadline = self.clock.monotonic() + policy.wait_seconds + timeout * (tool.retries + 1)
        if current.scope.deadline is not None:
            deadline = min(deadline, current.scope.deadline)
        last = current.attempts + tool.retries + 1
        while True:
            if (refusal := await self._admit(current, tool, deadline)) is not None:
                return refusal
            current.attempts += 1
            outcome = await self._attempt(current, tool, frozen, min(timeout, deadline - self.clock.monotonic()))
            if not isinstance(outcome, Refusal) or not outcome.retry or current.attempts >= last:
                return outcome
            pause = policy.retry_backoff_seconds * 2 ** (current.attempts - 1)
            asked_for = outcome.error.retry_after or 0.0
            if self.clock.monotonic() + max(pause, asked_for) >= deadline or asked_for > current.wait_left:
                return outcome
            current.wait_left -= asked_for
            await self.clock.sleep(max(pause, asked_for))
            frozen = tool.freeze(frozen.text)  # the function may have changed the values it was given

    async def _admit(self, current: CallInProgress, tool: AnyTool, deadline: float) -> Refusal | None:
        """Rate limit, circuit breaker, deadline: each attempt takes its own token."""
        principal, policy = current.scope.principal, current.scope.policy
        limits = policy.limits_of(tool.name, tool.specification.category, None if principal is None else principal.id)
        while (wait := await self.limiter.take(tool.name, limits)) > 0:
            if wait > current.wait_left or self.clock.monotonic() + wait > deadline:
                return Refusal.rate_limited(tool.name, wait)
            current.wait_left -= wait
            await self.clock.sleep(wait)
        rule = policy.breaker
        if rule is not None and (wait := await self.breaker.blocked(tool.name, rule)) > 0:
            return Refusal.circuit_open(tool.name, wait)
        if self.clock.monotonic() >= deadline:
            return Refusal.deadline_passed(tool.name)
        return None

    async def _attempt(
        self, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments, timeout: float
    ) -> Outcome | Suspended:
        scope, call, policy = current.scope, current.call, current.scope.policy
        fields = {
            "call_id": call.id,
            "execution_id": current.execution_id,
            "tool_name": tool.name,
            "attempt": current.attempts,
            "arguments": frozen.arguments,
        }
        await scope.recorder.record(unchecked(CallStarted, fields), sync=not tool.specification.read_only)
        watched = tool.schema.context_parameter is not None
        context = ToolContext(
            principal=scope.principal,
            secrets=Secrets.from_environment(tool.specification.secrets) if watched else NO_SECRETS,
            idempotency_key=current.execution_id,
            deadline=self.clock.time() + timeout,
            correlation_id=scope.run_id,
            run_id=scope.run_id,
            call_id=call.id,
            requested_at=current.requested_at,
            risk=current.risk,
            report=_progress(scope.recorder, call.id) if watched else None,
            settings=tool.settings,
            label=None if scope.ledger is None or current.in_their_words else scope.ledger.taint,
            caller=self.callers.get(scope.run_id) or (self._person(current) if watched else None),
            deps=scope.deps,
        )
        with _NOTHING_AROUND if scope.around is None else scope.around(call.id, tool.name):
            limit, content = policy.max_result_bytes, policy.capture_content
            try:
                outcome: Outcome | Suspended = await self.invoker.attempt(
                    tool, frozen, context, timeout, limit=limit, capture_content=content
                )
            except PutAside as asked:
                outcome = Suspended(call.id, asked.approval_id)
        current.label = self._label(current, tool, frozen, context.marked)
        if policy.breaker is not None:
            healthy = not isinstance(outcome, Refusal) or not outcome.unhealthy
            await self.breaker.report(tool.name, policy.breaker, healthy=healthy)
        if isinstance(outcome, Refusal) and outcome.error.retry_after:
            # What the tool talks to has asked for a pause: for everybody's calls, not only for this one's.
            await self.limiter.pause(tool.name, min(outcome.error.retry_after, MOST_PAUSE_SECONDS))
        return outcome

    def _label(
        self, current: CallInProgress, tool: AnyTool, frozen: FrozenArguments, marked: DataLabel | None
    ) -> DataLabel | None:
        """Whose words the result holds: as the operator says, the tool declares, or where it comes from tells."""
        scope = current.scope
        if tool.name in RESERVED_NAMES:
            return None if scope.ledger is None else scope.ledger.taint  # e.g. the rest of a long result
        reads = for_tool(scope.policy.reads, tool.name) if scope.policy.reads else None
        label = reads_label(tool, reads)
        if label is not None:
            label = with_source(label, frozen.arguments)
        if marked is not None:
            label = marked if label is None else label.joined(marked)
        return label

    async def _finish(self, current: CallInProgress, outcome: Outcome) -> ToolCallRecord:
        match outcome:
            case Success(value, cached, artifact=artifact, media=media):
                status, result, error = CallStatus.SUCCESS, value, None
            case Refusal(status, error):
                result, cached, artifact, media = None, False, None, ()
        fields = {
            "execution_id": current.execution_id,
            "call_id": current.call.id,
            "tool_name": current.call.tool_name,
            "arguments": current.arguments,
            "status": status,
            "result": result,
            "artifact": artifact,
            "media": media,
            "error": error,
            "start_time": moment(current.started_at),
            # From the monotonic clock, so that a step of the wall clock gives no negative duration.
            "end_time": moment(current.started_at + self.clock.monotonic() - current.started_clock),
            "attempts": current.attempts,
            "cached": cached,
            "risk": current.risk,
            "confidence": current.call.confidence,
            "approval_id": current.approval_id,
            "correlation_id": current.scope.run_id,
            "read_only": current.read_only,
            "grounding": current.grounding,
            "label": current.label,
            "flow": current.flow,
        }
        record = unchecked(ToolCallRecord, fields)
        await current.scope.recorder.record(unchecked(CallFinished, {"record": record}))
        return record

    async def _adopt(self, current: CallInProgress, record: ToolCallRecord) -> ToolCallRecord:
        """Record the outcome that another process has reported."""
        await current.scope.recorder.record(CallFinished(record=record))
        return record


def _progress(recorder: Recorder, call_id: str) -> Callable[[str, float | None], None]:
    """What a tool's progress reports call, from any thread: listeners run in the event loop's thread."""
    loop, loop_thread = asyncio.get_running_loop(), threading.get_ident()

    def report(message: str, fraction: float | None) -> None:
        event = CallProgress(call_id=call_id, message=message[:MOST_PROGRESS_CHARS], fraction=fraction)
        if threading.get_ident() == loop_thread:
            recorder.signal(event)
            return
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(recorder.signal, event)

    return report

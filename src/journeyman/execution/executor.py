"""The path of one tool call. Every call of every tool from every door passes here, once.

requested → resolve → permission → validate and freeze → grade → approve → cache
→ deadline[ attempt( rate limit → breaker → journal started → timeout[invoke] ) × retries ] → journal outcome

Each stage either hands on or ends the call with a value that a model can read. Nothing rewrites the arguments after
they were frozen, except a person who approves others in their place: those are frozen and graded anew.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from journeyman.core.approvals import Approval, Approve, Decision, Deny, Expired
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.context import Secrets, ToolContext
from journeyman.core.data import canonical_json, digest
from journeyman.core.events import ApprovalRequested, CallFinished, CallProgress, CallStarted
from journeyman.core.messages import ToolCall
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import ApprovalGate, CircuitBreaker, Clock, RateLimiter, moment
from journeyman.core.risk import RiskLevel, requires_approval
from journeyman.execution.approval import decided
from journeyman.execution.arguments import binding, freeze
from journeyman.execution.cache import MISS, ResultCache
from journeyman.execution.invoke import Invoker
from journeyman.execution.outcome import (
    Refusal,
    Success,
    Suspended,
    cancelled,
    denied,
    never_settled,
    outcome_unknown,
    rate_limited,
    resting,
    too_late,
)
from journeyman.execution.recorder import Recorder
from journeyman.execution.resolve import resolve
from journeyman.execution.risk import grade
from journeyman.tools.tool import ArgumentsError, Frozen, Tool

AnyTool: TypeAlias = Tool[..., Any]
Around: TypeAlias = Callable[[str, str], AbstractContextManager[None]]
"""Call id and tool name in; what surrounds the tool's run out, e.g. a current span."""
Ending: TypeAlias = Success | Refusal


@dataclass(slots=True)
class CallScope:
    """What a call needs to know of the run it belongs to."""

    run_id: str
    recorder: Recorder
    tools: Mapping[str, AnyTool]
    """What may be called in this run."""
    principal: Principal | None = None
    correlation_id: str = ""
    deadline: float | None = None
    """When the run must end, by the clock's monotonic time; put off while a person is asked."""
    around: Around | None = None
    """Entered around each attempt, in the task that makes it."""


@dataclass(slots=True)
class CallPast:
    """What the journal already knows of a call, when a run goes on after an interruption."""

    approval: Approval | None = None
    decision: Decision | None = None
    started: CallStarted | None = None
    unknown: ToolCallRecord | None = None
    """The record of a call whose process died while it ran, until a person has settled it."""


@dataclass(slots=True)
class _Flight:
    """One call on its way: collects what its record will say."""

    call: ToolCall
    scope: CallScope
    past: CallPast
    started_at: float
    started_clock: float
    arguments: dict[str, Any]
    attempts: int = 0
    risk: RiskLevel | None = None
    approval_id: str | None = None
    requested_at: float = 0.0

    @property
    def execution_id(self) -> str:
        return f"{self.scope.run_id}.{self.call.id}"


class Executor:
    """Holds the parts that stages use. One executor serves any number of runs at once."""

    def __init__(
        self,
        *,
        policy: Policy,
        gate: ApprovalGate,
        invoker: Invoker,
        limiter: RateLimiter,
        breaker: CircuitBreaker,
        cache: ResultCache,
        clock: Clock,
    ) -> None:
        self.policy = policy
        self._gate = gate
        self._invoker = invoker
        self._limiter = limiter
        self._breaker = breaker
        self._cache = cache
        self._clock = clock

    async def execute(
        self, call: ToolCall, scope: CallScope, past: CallPast | None = None
    ) -> ToolCallRecord | Suspended:
        """Take a requested call to its outcome, or to the person it must wait for."""
        flight = _Flight(call, scope, past or CallPast(), self._clock.time(), self._clock.monotonic(), call.arguments)
        flight.requested_at = flight.started_at
        try:
            outcome = await self._govern(flight)
        except asyncio.CancelledError:
            await self._abandoned(flight)
            raise
        if isinstance(outcome, Suspended):
            return outcome
        return await self._finish(flight, outcome)

    async def refuse(self, call: ToolCall, scope: CallScope, refusal: Refusal) -> ToolCallRecord:
        """Record a call that the loop itself refuses, e.g. because it is repeated."""
        flight = _Flight(call, scope, CallPast(), self._clock.time(), self._clock.monotonic(), call.arguments)
        return await self._finish(flight, refusal)

    async def give_up(self, call: ToolCall, scope: CallScope, past: CallPast) -> ToolCallRecord:
        """Record a call that was under way when its process died, in a run that will not go on."""
        flight = _Flight(call, scope, past, self._clock.time(), self._clock.monotonic(), call.arguments)
        if past.started is not None:
            flight.started_at = past.started.time
            flight.arguments, flight.attempts = past.started.arguments, past.started.attempt
        if past.unknown is not None:
            flight.risk = past.unknown.risk
        flight.approval_id = None if past.approval is None else past.approval.id
        return await self._finish(flight, never_settled(call.tool_name))

    # --- the stages, in order

    async def _govern(self, flight: _Flight) -> Ending | Suspended:
        if flight.past.started is not None:
            return await self._go_on(flight, flight.past.started)
        tool = resolve(flight.call, flight.scope.tools, flight.scope.principal)
        if isinstance(tool, Refusal):
            return tool
        frozen = freeze(tool, flight.call, self.policy)
        if isinstance(frozen, Refusal):
            return frozen
        flight.arguments = frozen.arguments
        flight.risk = grade(tool.specification, frozen.arguments, self.policy)
        if requires_approval(flight.risk, flight.call.confidence, threshold=self.policy.approval_confidence):
            approved = await self._approve(flight, tool, frozen)
            if not isinstance(approved, Frozen):
                return approved
            frozen = approved
        return await self._answer(flight, tool, frozen)

    async def _go_on(self, flight: _Flight, started: CallStarted) -> Ending | Suspended:
        """A call that had started when its process died: repeat it only where that is safe."""
        past, tool = flight.past, flight.scope.tools.get(flight.call.tool_name)
        flight.arguments = started.arguments
        flight.attempts = started.attempt
        if past.approval is not None:
            flight.approval_id, flight.requested_at = past.approval.id, past.approval.requested_at.timestamp()
        if tool is not None:
            flight.risk = grade(tool.specification, started.arguments, self.policy)
            if tool.specification.repeat_safe:
                return await self._attempts(flight, tool, tool.freeze(canonical_json(started.arguments)))
        if past.unknown is None:
            await self._finish(flight, outcome_unknown(flight.call.tool_name))
        return Suspended(flight.call.id, flight.call.id, unknown=True)

    async def _approve(self, flight: _Flight, tool: AnyTool, frozen: Frozen) -> Frozen | Refusal | Suspended:
        """Ask a person about exactly these arguments for exactly this principal."""
        past, scope = flight.past, flight.scope
        bound_to = binding(tool, frozen, scope.principal)
        approval = past.approval
        if approval is None or approval.digest != bound_to:
            approval = self._question(flight, tool, frozen, bound_to)
            await scope.recorder.record(ApprovalRequested(approval=approval))
            past.decision = None
        flight.approval_id = approval.id
        flight.requested_at = approval.requested_at.timestamp()
        decision = past.decision
        if decision is None:
            decision = await self._gate.ask(approval)
            if decision is None:
                return Suspended(flight.call.id, approval.id)
            await scope.recorder.record(decided(approval, decision))
        return self._settle(flight, tool, frozen, approval, decision)

    def _question(self, flight: _Flight, tool: AnyTool, frozen: Frozen, bound_to: str) -> Approval:
        now = self._clock.time()
        return Approval(
            id=f"appr_{digest(flight.execution_id, bound_to)[:20]}",
            run_id=flight.scope.run_id,
            call_id=flight.call.id,
            tool_name=tool.name,
            arguments=frozen.arguments,
            digest=bound_to,
            risk=flight.risk or self.policy.default_risk,
            confidence=flight.call.confidence,
            principal=flight.scope.principal,
            requested_at=moment(now),
            expires_at=moment(now + self.policy.approval_seconds),
        )

    def _settle(
        self, flight: _Flight, tool: AnyTool, frozen: Frozen, approval: Approval, decision: Decision
    ) -> Frozen | Refusal:
        match decision:
            case Approve(arguments=None):
                return frozen
            case Approve(arguments=edited):
                try:
                    changed = tool.freeze(canonical_json(edited))
                except (ArgumentsError, ValueError, RecursionError) as error:
                    return denied("APPROVAL_INVALID", f"the person's edited arguments are not valid: {error}")
                flight.arguments = changed.arguments
                flight.risk = grade(tool.specification, changed.arguments, self.policy)
                return changed
            case Deny(reason=reason):
                return denied("APPROVAL_DENIED", f"{tool.name!r} was not allowed" + (f": {reason}" if reason else ""))
            case Expired():
                seconds = (approval.expires_at - approval.requested_at).total_seconds()
                return denied("APPROVAL_EXPIRED", f"nobody allowed {tool.name!r} within {seconds:g} s")

    async def _answer(self, flight: _Flight, tool: AnyTool, frozen: Frozen) -> Ending | Suspended:
        """From the cache where the tool allows it, else by running it."""
        if tool.cache_seconds is None or not tool.specification.read_only:
            return await self._attempts(flight, tool, frozen)
        key = binding(tool, frozen, flight.scope.principal)
        if (hit := self._cache.get(key)) is not MISS:
            return Success(hit, cached=True)
        outcome = await self._attempts(flight, tool, frozen)
        if isinstance(outcome, Success):
            self._cache.put(key, outcome.value, seconds=tool.cache_seconds)
        return outcome

    async def _attempts(self, flight: _Flight, tool: AnyTool, frozen: Frozen) -> Ending:
        """Attempts until one succeeds, retrying is unsafe or useless, or the deadline comes."""
        timeout = tool.specification.timeout_seconds
        deadline = self._clock.monotonic() + self.policy.wait_seconds + timeout * (tool.retries + 1)
        if flight.scope.deadline is not None:
            deadline = min(deadline, flight.scope.deadline)
        last = flight.attempts + tool.retries + 1
        while True:
            if (refusal := await self._admit(flight, tool, deadline)) is not None:
                return refusal
            flight.attempts += 1
            outcome = await self._attempt(flight, tool, frozen, min(timeout, deadline - self._clock.monotonic()))
            if isinstance(outcome, Success) or not outcome.retry or flight.attempts >= last:
                return outcome
            pause = self.policy.retry_backoff_seconds * 2 ** (flight.attempts - 1)
            if self._clock.monotonic() + pause >= deadline:
                return outcome
            await self._clock.sleep(pause)
            frozen = tool.freeze(frozen.text)  # the function may have changed the values it was given

    async def _admit(self, flight: _Flight, tool: AnyTool, deadline: float) -> Refusal | None:
        """Rate limit, then circuit breaker: each attempt takes its own token."""
        if (limit := self.policy.rate_limits.get(tool.name)) is not None:
            principal = flight.scope.principal
            key = tool.name if limit.per == "tool" or principal is None else f"{tool.name}\n{principal.id}"
            while (wait := await self._limiter.take(key, limit)) > 0:
                if self._clock.monotonic() + wait > deadline:
                    return rate_limited(tool.name, wait)
                await self._clock.sleep(wait)
        rule = self.policy.breaker
        if rule is not None and (rest := await self._breaker.blocked(tool.name, rule)) > 0:
            return resting(tool.name, rest)
        if self._clock.monotonic() >= deadline:
            return too_late(tool.name)
        return None

    async def _attempt(self, flight: _Flight, tool: AnyTool, frozen: Frozen, timeout: float) -> Ending:
        scope, call = flight.scope, flight.call
        await scope.recorder.record(
            CallStarted.made(
                call_id=call.id,
                execution_id=flight.execution_id,
                tool_name=tool.name,
                attempt=flight.attempts,
                arguments=frozen.arguments,
            ),
            sync=not tool.specification.read_only,
        )
        watched = tool.schema.context_parameter is not None
        context = ToolContext(
            principal=scope.principal,
            secrets=Secrets.from_environment() if watched else None,
            idempotency_key=flight.execution_id,
            deadline=self._clock.time() + timeout,
            correlation_id=scope.correlation_id,
            run_id=scope.run_id,
            call_id=call.id,
            requested_at=flight.requested_at,
            report=_progress(scope.recorder, call.id) if watched else None,
        )
        with nullcontext() if scope.around is None else scope.around(call.id, tool.name):
            outcome = await self._invoker.attempt(tool, frozen, context, timeout)
        if self.policy.breaker is not None:
            healthy = isinstance(outcome, Success) or not outcome.unhealthy
            await self._breaker.report(tool.name, self.policy.breaker, healthy=healthy)
        return outcome

    # --- the outcome

    async def _finish(self, flight: _Flight, outcome: Ending) -> ToolCallRecord:
        record = self._record(flight, outcome)
        await flight.scope.recorder.record(CallFinished.made(record=record))
        return record

    def _record(self, flight: _Flight, outcome: Ending) -> ToolCallRecord:
        match outcome:
            case Success(value, cached):
                status, result, error = CallStatus.SUCCESS, value, None
            case Refusal(status, error):
                result, cached = None, False
        return ToolCallRecord.made(
            execution_id=flight.execution_id,
            call_id=flight.call.id,
            tool_name=flight.call.tool_name,
            arguments=flight.arguments,
            status=status,
            result=result,
            error=error,
            start_time=moment(flight.started_at),
            # From the monotonic clock, so that a step of the wall clock gives no negative duration.
            end_time=moment(flight.started_at + self._clock.monotonic() - flight.started_clock),
            attempts=flight.attempts,
            cached=cached,
            risk=flight.risk,
            confidence=flight.call.confidence,
            approval_id=flight.approval_id,
            correlation_id=flight.scope.correlation_id,
        )

    async def _abandoned(self, flight: _Flight) -> None:
        """The run is being cancelled: leave a record, so that nothing is started without an outcome."""
        outcome = cancelled(flight.call.tool_name, under_way=flight.attempts > 0)
        await flight.scope.recorder.record(CallFinished(record=self._record(flight, outcome)))


def _progress(recorder: Recorder, call_id: str) -> Callable[[str, float | None], None]:
    """Where a tool reports how far it has come, from whichever thread it runs in: listeners belong to the loop's."""
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def report(message: str, fraction: float | None) -> None:
        event = CallProgress(call_id=call_id, message=message, fraction=fraction)
        if threading.get_ident() == home:
            recorder.signal(event)
            return
        with suppress(RuntimeError):  # the loop was closed: nobody is watching any more
            loop.call_soon_threadsafe(recorder.signal, event)

    return report

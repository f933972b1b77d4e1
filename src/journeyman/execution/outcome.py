"""The closed set of ways in which a stage ends a call. Refusals are values that a model can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from journeyman.core.calls import CallStatus
from journeyman.core.errors import ErrorCategory, ErrorInfo, Severity


@dataclass(frozen=True, slots=True)
class Success:
    """It ran (or its result was in the cache); the value is plain JSON."""

    value: Any
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """It did not run, or failed."""

    status: CallStatus
    error: ErrorInfo
    unhealthy: bool = False
    """Whether the circuit breaker counts this as a failure of the tool."""
    retry: bool = False
    """Whether another attempt is safe and may help."""


@dataclass(frozen=True, slots=True)
class Suspended:
    """A person must decide first: an approval, or (``unknown``) whether an interrupted call took effect."""

    call_id: str
    waiting_for: str
    unknown: bool = False


def refuse(
    status: CallStatus,
    code: str,
    message: str,
    *,
    category: ErrorCategory,
    recover: str,
    severity: Severity = Severity.MEDIUM,
    retryable: bool = False,
    guidance: str | None = None,
    unhealthy: bool = False,
    retry: bool = False,
) -> Refusal:
    """A refusal with everything its readers need: the model, the operator, the retry loop and the breaker."""
    info = ErrorInfo(
        code=code,
        message=message,
        category=category,
        severity=severity,
        retryable=retryable,
        recover_action=recover,
        user_guidance=guidance,
    )
    return Refusal(status, info, unhealthy, retry)


def denied(code: str, message: str) -> Refusal:
    """The approval was denied, has expired, or nobody could be asked."""
    return refuse(
        CallStatus.DENIED,
        code,
        message,
        category=ErrorCategory.PERMISSION,
        severity=Severity.LOW,
        recover="Do not repeat the call; go on without it, or tell the user what was not done",
    )


def skipped(tool_name: str) -> Refusal:
    """The process died while the call ran, and a person decided to skip it."""
    return refuse(
        CallStatus.ERROR,
        "SKIPPED",
        f"{tool_name!r} was interrupted, and a person decided to leave it out",
        category=ErrorCategory.SYSTEM_ERROR,
        recover="Go on without it; do not repeat it",
    )


def outcome_unknown(tool_name: str) -> Refusal:
    """The process died while the call ran; the run waits until a person has resolved it."""
    return refuse(
        CallStatus.UNKNOWN,
        "OUTCOME_UNKNOWN",
        f"the process died while {tool_name!r} ran: whether it took effect, nobody knows",
        category=ErrorCategory.SYSTEM_ERROR,
        severity=Severity.CRITICAL,
        recover="Wait until a person has settled it",
        guidance="Find out whether it took effect, then settle the call: run it again, mark it done, or skip it",
    )


def abandoned(tool_name: str) -> Refusal:
    """The process died while the call ran, and the run was ended before a person had resolved the call."""
    return refuse(
        CallStatus.ERROR,
        "OUTCOME_UNKNOWN",
        f"the process died while {tool_name!r} ran, and the run was ended: whether it took effect, nobody knows",
        category=ErrorCategory.SYSTEM_ERROR,
        severity=Severity.CRITICAL,
        recover="It may have taken effect: check before repeating it, and tell the user",
        guidance="Find out whether it took effect before anybody asks for it again",
    )


def cancelled(tool_name: str, *, under_way: bool) -> Refusal:
    """The run was cancelled before the call had an outcome."""
    return refuse(
        CallStatus.CANCELLED,
        "CALL_CANCELLED",
        f"{tool_name!r} was cancelled " + ("while it ran" if under_way else "before it ran"),
        category=ErrorCategory.SYSTEM_ERROR,
        severity=Severity.INFO,
        recover="It may have taken effect: check before repeating it" if under_way else "Ask again",
    )


def rate_limited(tool_name: str, wait: float) -> Refusal:
    return refuse(
        CallStatus.ERROR,
        "RATE_LIMITED",
        f"{tool_name!r} is called too often; the next call is possible in {wait:.1f} s",
        category=ErrorCategory.RATE_LIMIT,
        retryable=True,
        recover="Do something else first, or tell the user to try again later",
    )


def circuit_open(tool_name: str, wait: float) -> Refusal:
    return refuse(
        CallStatus.ERROR,
        "CIRCUIT_OPEN",
        f"{tool_name!r} failed several times in a row and is not tried again for {wait:.0f} s",
        category=ErrorCategory.SYSTEM_ERROR,
        severity=Severity.HIGH,
        retryable=True,
        recover="Use another tool, or tell the user that this one is unavailable",
    )


def deadline_passed(tool_name: str) -> Refusal:
    return refuse(
        CallStatus.ERROR,
        "DEADLINE_PASSED",
        f"there was no time left to run {tool_name!r}",
        category=ErrorCategory.TIMEOUT,
        recover="Answer with what you have",
    )

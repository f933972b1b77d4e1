"""The closed set of ways in which a stage ends a call. Refusals are values that a model can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from journeyman.core.calls import Artifact, CallStatus
from journeyman.core.errors import ErrorCategory, ErrorInfo, Severity


@dataclass(frozen=True, slots=True)
class Success:
    """It ran (or its result was in the cache); the value is plain JSON."""

    value: Any
    cached: bool = False
    size: int = 0
    """About how many bytes of JSON it is."""
    artifact: Artifact | None = None
    """Where it is kept, where that is not in ``value``."""


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


_GUIDANCE = {
    ErrorCategory.NETWORK: "Check that what the tool talks to can be reached, then ask again",
    ErrorCategory.AUTHENTICATION: "Check the credentials the tool uses, then ask again",
    ErrorCategory.PERMISSION: "Ask somebody who may allow it, or do it yourself",
    ErrorCategory.RATE_LIMIT: "Wait a little and ask again, or raise the limit",
    ErrorCategory.INVALID_INPUT: "Say more exactly what you want, e.g. with the full name or number",
    ErrorCategory.TOOL_ERROR: "See what the tool says, and ask again with other values, or for something else",
    ErrorCategory.TIMEOUT: "Ask again, or allow more time",
    ErrorCategory.SYSTEM_ERROR: "Ask again; if it stays so, look into the log",
}
"""What a person can do about it, where whoever refuses has nothing more exact to say."""


def guided(info: ErrorInfo) -> ErrorInfo:
    """The same failure, with something a person can do about it."""
    if info.user_guidance:
        return info
    return info.model_copy(update={"user_guidance": _GUIDANCE[info.category]})


def refuse(
    status: CallStatus,
    code: str,
    message: str,
    recover: str,
    *,
    category: ErrorCategory = ErrorCategory.SYSTEM_ERROR,
    severity: Severity = Severity.MEDIUM,
    retryable: bool = False,
    guidance: str | None = None,
    unhealthy: bool = False,
    retry: bool = False,
    retry_after: float | None = None,
) -> Refusal:
    """A refusal with everything its readers need: the model, the operator, the retry loop and the breaker."""
    info = ErrorInfo(
        code=code,
        message=message,
        category=category,
        severity=severity,
        retryable=retryable,
        recover_action=recover,
        user_guidance=guidance or _GUIDANCE[category],
        retry_after=retry_after,
    )
    return Refusal(status, info, unhealthy, retry)


def denied(code: str, message: str) -> Refusal:
    """The approval was denied, has expired, or nobody could be asked."""
    recover = "Do not repeat the call; go on without it, or tell the user what was not done"
    permission, low = ErrorCategory.PERMISSION, Severity.LOW
    guidance = "Ask again if it is wanted after all, and have somebody at hand who may approve it"
    return refuse(CallStatus.DENIED, code, message, recover, category=permission, severity=low, guidance=guidance)


def skipped(tool_name: str) -> Refusal:
    """The process died while the call ran, and a person decided to skip it."""
    message = f"{tool_name!r} was interrupted, and a person decided to leave it out"
    return refuse(CallStatus.ERROR, "SKIPPED", message, "Go on without it; do not repeat it")


def outcome_unknown(tool_name: str, why: str = "") -> Refusal:
    """Whoever ran the call, this process or a server, died meanwhile; a run in a store waits until a person settles it.

    The model reads it only where nobody can settle it.
    """
    return refuse(
        CallStatus.UNKNOWN,
        "OUTCOME_UNKNOWN",
        f"{why or f'the process died while {tool_name!r} ran'}: whether it took effect, nobody knows",
        "It may have taken effect: check before repeating it, and tell the user",
        severity=Severity.CRITICAL,
        guidance="Find out whether it took effect, then settle the call: run it again, mark it done, or skip it",
    )


def abandoned(tool_name: str) -> Refusal:
    """The process died while the call ran, and the run was ended before a person had resolved the call."""
    return refuse(
        CallStatus.ERROR,
        "OUTCOME_UNKNOWN",
        f"the process died while {tool_name!r} ran, and the run was ended: whether it took effect, nobody knows",
        "It may have taken effect: check before repeating it, and tell the user",
        severity=Severity.CRITICAL,
        guidance="Find out whether it took effect before anybody asks for it again",
    )


def cancelled(tool_name: str, *, under_way: bool) -> Refusal:
    """The run was cancelled before the call had an outcome."""
    message = f"{tool_name!r} was cancelled " + ("while it ran" if under_way else "before it ran")
    recover = "It may have taken effect: check before repeating it" if under_way else "Ask again"
    return refuse(CallStatus.CANCELLED, "CALL_CANCELLED", message, recover, severity=Severity.INFO)


def rate_limited(tool_name: str, wait: float) -> Refusal:
    message = f"{tool_name!r} is called too often; the next call is possible in {wait:.1f} s"
    recover = "Do something else first, or tell the user to try again later"
    category = ErrorCategory.RATE_LIMIT
    return refuse(
        CallStatus.ERROR, "RATE_LIMITED", message, recover, category=category, retryable=True, retry_after=wait
    )


def circuit_open(tool_name: str, wait: float) -> Refusal:
    message = f"{tool_name!r} failed several times in a row and is not tried again for {wait:.0f} s"
    recover = "Use another tool, or tell the user that this one is unavailable"
    return refuse(CallStatus.ERROR, "CIRCUIT_OPEN", message, recover, severity=Severity.HIGH, retryable=True)


def deadline_passed(tool_name: str) -> Refusal:
    message, recover = f"there was no time left to run {tool_name!r}", "Answer with what you have"
    return refuse(CallStatus.ERROR, "DEADLINE_PASSED", message, recover, category=ErrorCategory.TIMEOUT)

"""Errors, sorted by who must read them.

* ``JourneymanError`` and its children are for the developer or the operator: something must be changed.
* ``ToolError`` is raised by a tool on purpose, for the model: it says what went wrong and how to recover.
* ``ErrorInfo`` is either of them as data, the form in which every failure reaches records, journals and models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, ValidationError

from journeyman.core.data import LISTED_PROBLEMS, Entity


class ErrorCategory(StrEnum):
    """What kind of thing went wrong. The set is closed."""

    NETWORK = "network"
    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    RATE_LIMIT = "rate_limit"
    INVALID_INPUT = "invalid_input"
    TOOL_ERROR = "tool_error"
    TIMEOUT = "timeout"
    SYSTEM_ERROR = "system_error"


class Severity(StrEnum):
    """How bad it is for the person who runs the agent."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


class ErrorInfo(Entity):
    """One failure, as data."""

    code: str = Field(min_length=1)
    message: str = Field(min_length=1)
    category: ErrorCategory = ErrorCategory.TOOL_ERROR
    severity: Severity = Severity.MEDIUM
    retryable: bool = False
    recover_action: str | None = None
    """What the model should do next."""
    user_guidance: str | None = None
    """What a person can do about it."""
    retry_after: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """How many seconds to wait before it is tried again, where that is known."""

    def for_model(self) -> dict[str, Any]:
        """The part of a failure that a model can act on."""
        fields: dict[str, Any] = {"error": self.message, "code": self.code, "retryable": self.retryable}
        if self.recover_action:
            fields["recover_action"] = self.recover_action
        if self.retry_after is not None:
            fields["retry_after_seconds"] = self.retry_after
        return fields


class JourneymanError(Exception):
    """The base of all errors that a developer or an operator must act on."""


class InvalidDataError(JourneymanError, ValueError):
    """Values do not fit an entity; the text names the entity and, for each problem, field, rule and value."""

    def __init__(self, entity: str, problems: Iterable[tuple[str, str]]) -> None:
        self.entity = entity
        self.problems = tuple(problems)
        """Each field that was refused, and why."""
        super().__init__(f"{entity}: {problem_text(self.problems)}")


class ToolDefinitionError(JourneymanError):
    """Something cannot become a tool; the message names the function, the parameter or field, and the fix."""

    problems: tuple[tuple[str, str], ...] = ()
    """Of a specification: each field that was refused, and why."""

    @classmethod
    def of_fields(cls, where: str, problems: Iterable[tuple[str, str]]) -> Self:
        listed = tuple(problems)
        error = cls(f"{where}: {problem_text(listed)}")
        error.problems = listed
        return error


class ConfigurationError(JourneymanError):
    """Something was set up in a way that cannot work."""


class BindingError(JourneymanError):
    """Specifications and a library's tools do not fit; every mismatch is listed."""

    def __init__(self, agent: str, mismatches: Sequence[str], *, kind: str = "agent") -> None:
        self.agent = agent
        self.mismatches = tuple(mismatches)
        lines = "\n".join(f"  - {line}" for line in self.mismatches)
        super().__init__(f"{kind} {agent!r} cannot be bound to this library:\n{lines}")


class SignatureError(JourneymanError, ValueError):
    """A type signature cannot be read. Positions are 1-based."""

    def __init__(self, message: str, *, line: int, column: int, expected: str) -> None:
        self.line = line
        self.column = column
        self.expected = expected
        super().__init__(f"{line}:{column}: {message}; expected {expected}")


class ModelError(JourneymanError):
    """The language model could not be asked, or did not answer. Ends a run as ``failed``, with its trace."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        category: ErrorCategory = ErrorCategory.SYSTEM_ERROR,
        retryable: bool = False,
        user_guidance: str | None = None,
    ) -> None:
        self.info = ErrorInfo(
            code=code,
            message=message,
            category=category,
            severity=Severity.HIGH,
            retryable=retryable,
            user_guidance=user_guidance,
        )
        super().__init__(f"{code}: {message}" + (f" ({user_guidance})" if user_guidance else ""))


class JournalConflictError(JourneymanError):
    """Somebody else has written this run's next fact: this process no longer owns the run."""


class PlaybookConflictError(JourneymanError):
    """Somebody else has changed this playbook meanwhile: the change is to be made again from what it is now."""


class StoreError(JourneymanError):
    """The database cannot be used right now: unreachable, full or locked. Runs pause and go on when it is back."""


class StoreClosedError(StoreError):
    """The program has closed its store: waiting would not help."""


class SessionTakenError(JourneymanError):
    """A session belongs to the principal who began it, and this is somebody else."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"session {session_id!r} was begun by another principal: take another name for it, or let one with the "
            "permission 'runs:write' speak in it"
        )


class ApprovalError(JourneymanError):
    """A decision cannot be taken: unknown, decided already, expired, or with invalid arguments."""


class EditedArgumentsError(ApprovalError):
    """The arguments that a person put in place of the asked ones do not fit the tool."""


class AuditError(JourneymanError):
    """The audit log was tampered with, or is damaged."""


class ToolError(Exception):
    """Raise it in a tool to tell the model what went wrong and what to do about it.

    ``raise ToolError("ORDER_NOT_FOUND", "No order 'W-404'", recover_action="Ask the user for the number")``

    ``retry_after`` is for a service that asks for a pause (``Retry-After``): for so many seconds nobody calls the tool.
    """

    def __init__(
        self,
        code: str,
        message: str,
        retryable: bool = False,
        recover_action: str | None = None,
        *,
        category: ErrorCategory | str = ErrorCategory.TOOL_ERROR,
        severity: Severity | str = Severity.MEDIUM,
        user_guidance: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.info = ErrorInfo(
            code=code,
            message=message,
            retry_after=retry_after,
            category=ErrorCategory(category),
            severity=Severity(severity),
            retryable=retryable,
            recover_action=recover_action,
            user_guidance=user_guidance,
        )
        self.code, self.message = code, message
        self.retryable, self.recover_action = retryable, recover_action
        super().__init__(f"{code}: {message}")

    def to_dict(self) -> dict[str, Any]:
        """What the model is told."""
        return {**self.info.for_model(), "recover_action": self.recover_action}


class OutcomeUnknownError(Exception):
    """Raise it in a tool that asked somebody else, who went away before answering: it may have taken effect or not.

    The call becomes ``unknown`` and a person settles it; a tool that may be repeated is simply tried again.
    """


# --- what pydantic found wrong, in plain words

_MOST_PROBLEMS = 10
_LONGEST_VALUE = 80


def validation_problems(
    error: ValidationError, *, whole: str = "", unknown: str = "unknown field"
) -> list[tuple[str, str]]:
    """The path of each wrong field and the rule, with the value that broke it.

    ``whole`` is the path of what is wrong as a whole; ``unknown`` is said of a name at the top level that is not known.
    """
    if error.error_count() > LISTED_PROBLEMS:  # each costs, and a model's answer may have half a million
        return [(whole, f"{error.error_count():,} values break their rules")]
    errors = error.errors(include_url=False, include_context=False)
    problems = []
    for wrong in errors[:_MOST_PROBLEMS]:
        steps = ".".join(str(step)[:_LONGEST_VALUE] for step in wrong["loc"])
        path = re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", steps) or whole
        if wrong["type"] in ("missing", "missing_argument"):
            rule = "missing (required)"
        elif wrong["type"] == "extra_forbidden":
            rule = unknown if len(wrong["loc"]) == 1 else "unknown field"
        elif wrong["type"] == "value_error" and not wrong["loc"]:
            rule = _rule(wrong["msg"])  # it is about several fields, and names what it is about
        else:
            rule = broken_rule(wrong)
        problems.append((path, rule.removeprefix(f"{path}: ")))  # a rule of ours may name its field
    if len(errors) > _MOST_PROBLEMS:
        problems.append(("", f"and {len(errors) - _MOST_PROBLEMS} more"))
    return problems


def broken_rule(wrong: Mapping[str, Any]) -> str:
    """What one of pydantic's errors says, with the value that broke the rule."""
    return f"{_rule(wrong['msg'])}, got {shortened_json(wrong['input'])}"


def problem_text(problems: Iterable[tuple[str, str]]) -> str:
    """Problems in one line."""
    return "; ".join(f"{path}: {rule}" if path else rule for path, rule in problems)


def _rule(message: str) -> str:
    """Pydantic's sentence in fewer words: "Input should be a valid integer" is "must be an integer"."""
    rule = re.sub(r"^(Value error|Assertion failed), ", "", message)
    rule = re.sub(r"^[A-Z]\w+ should ", "must ", rule)
    return re.sub(r"\ba valid (?=([aeiou])?)", lambda match: "an " if match[1] else "a ", rule)


def shortened_json(value: Any) -> str:
    """A value for a message; no more of it is written than is shown."""
    text = ""
    if isinstance(value, str):
        value = value[: _LONGEST_VALUE + 1]
    for chunk in json.JSONEncoder(ensure_ascii=False, default=repr).iterencode(value):
        text += chunk
        if len(text) > _LONGEST_VALUE:
            return f"{text[: _LONGEST_VALUE - 1]}…"
    return text

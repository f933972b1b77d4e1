"""Errors, sorted by who must read them.

* ``JourneymanError`` and its children are for the developer or the operator: something must be changed.
* ``ToolError`` is raised by a tool on purpose, for the model: it says what went wrong and how to recover.
* ``ErrorInfo`` is either of them as data, the form in which every failure reaches records, journals and models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field

from journeyman.core.data import Entity


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

    def for_model(self) -> dict[str, Any]:
        """The part of a failure that a model can act on."""
        told: dict[str, Any] = {"error": self.message, "code": self.code, "retryable": self.retryable}
        if self.recover_action:
            told["recover_action"] = self.recover_action
        return told


class JourneymanError(Exception):
    """The base of all errors that a developer or an operator must act on."""


class InvalidDataError(JourneymanError, ValueError):
    """Values do not fit an entity; the text names the entity and, for each problem, field, rule and value."""

    def __init__(self, entity: str, problems: str, *, details: Sequence[Mapping[str, Any]] = ()) -> None:
        self.entity = entity
        self.problems = problems
        self.details = details
        """One mapping a problem, with ``loc`` (the path to the field), ``msg`` and ``input``."""
        super().__init__(f"{entity}: {problems}")


class ToolDefinitionError(JourneymanError):
    """A function cannot become a tool; the message names the function, the parameter and the fix."""


class ConfigurationError(JourneymanError):
    """Something was set up in a way that cannot work."""


class BindingError(JourneymanError):
    """An agent's specifications and a library's tools do not fit; every mismatch is listed."""

    def __init__(self, agent: str, mismatches: Sequence[str]) -> None:
        self.agent = agent
        self.mismatches = tuple(mismatches)
        lines = "\n".join(f"  - {line}" for line in self.mismatches)
        super().__init__(f"agent {agent!r} cannot be bound to this library:\n{lines}")


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


class StoreError(JourneymanError):
    """The database cannot be used right now: unreachable, full or locked. Runs pause and go on when it is back."""


class ApprovalError(JourneymanError):
    """A decision cannot be taken: unknown, decided already, expired, or with invalid arguments."""


class EditedArgumentsError(ApprovalError):
    """The arguments that a person put in place of the asked ones do not fit the tool."""


class AuditError(JourneymanError):
    """The audit log was tampered with, or is damaged."""


class ToolError(Exception):
    """Raise it in a tool to tell the model what went wrong and what to do about it.

    ``raise ToolError("ORDER_NOT_FOUND", "No order 'W-404'", recover_action="Ask the user for the number")``
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        category: ErrorCategory | str = ErrorCategory.TOOL_ERROR,
        severity: Severity | str = Severity.MEDIUM,
        retryable: bool = False,
        recover_action: str | None = None,
        user_guidance: str | None = None,
    ) -> None:
        self.info = ErrorInfo(
            code=code,
            message=message,
            category=ErrorCategory(category),
            severity=Severity(severity),
            retryable=retryable,
            recover_action=recover_action,
            user_guidance=user_guidance,
        )
        super().__init__(f"{code}: {message}")

    @property
    def code(self) -> str:
        return self.info.code

    @property
    def message(self) -> str:
        return self.info.message

    @property
    def retryable(self) -> bool:
        return self.info.retryable

    @property
    def recover_action(self) -> str | None:
        return self.info.recover_action

    def to_dict(self) -> dict[str, Any]:
        """What the model is told."""
        return self.info.for_model()

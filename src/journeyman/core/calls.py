"""What became of a call: its record, its states, and which state may follow which."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from pydantic import AliasChoices, Field, ValidationInfo, computed_field, field_validator, model_validator

from journeyman.core.data import Derived, Entity, reads_stored
from journeyman.core.errors import ErrorInfo
from journeyman.core.grounding import ArgumentSource, ungrounded, value_at
from journeyman.core.risk import RiskLevel

UNNAMED = "unnamed"
"""The tool's name in the record of a call for which the model gave none."""


class CallStatus(StrEnum):
    """Where a call stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    DENIED = "denied"
    """Refused, expired, nobody to ask, not permitted, or repeated."""
    UNKNOWN = "unknown"
    """The process died after the call had started: whether it took effect, nobody knows."""

    @property
    def settled(self) -> bool:
        return self not in (CallStatus.PENDING, CallStatus.RUNNING, CallStatus.UNKNOWN)

    def may_become(self, other: CallStatus) -> bool:
        return other in _NEXT.get(self, frozenset())


_NEXT: dict[CallStatus, frozenset[CallStatus]] = {
    CallStatus.PENDING: frozenset(
        {CallStatus.RUNNING, CallStatus.SUCCESS, CallStatus.ERROR, CallStatus.CANCELLED, CallStatus.DENIED}
    ),
    CallStatus.RUNNING: frozenset(
        {CallStatus.SUCCESS, CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.CANCELLED, CallStatus.UNKNOWN}
    ),
    CallStatus.UNKNOWN: frozenset({CallStatus.SUCCESS, CallStatus.ERROR}),
}


class Artifact(Entity):
    """A result that is too large for its record: where the whole is kept, and how it begins and ends."""

    id: str
    """The SHA-256 of its text. Unique within its run."""
    kind: Literal["text", "json"]
    chars: int
    head: str
    tail: str

    @property
    def text(self) -> str:
        """What can be shown of it without looking it up."""
        left = self.chars - len(self.head) - len(self.tail)
        return f"{self.head}\n… [{left:,} of {self.chars:,} characters are kept as artifact {self.id}] …\n{self.tail}"


class ToolCallRecord(Derived):
    """One call, from request to outcome. Exactly one of result and error counts, and the status says which."""

    execution_id: str = Field(min_length=1)
    call_id: str
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict, validation_alias=AliasChoices("arguments", "parameters"))
    """The frozen arguments that ran, defaults included; for a call that never got so far, what the model wrote."""
    status: CallStatus
    result: Any = None
    artifact: Artifact | None = None
    """In the place of a large result of a durable run; ``Handle.whole(record)`` looks it up."""
    error: ErrorInfo | None = None
    start_time: datetime
    end_time: datetime
    attempts: int = Field(default=0, ge=0)
    cached: bool = False
    risk: RiskLevel | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    approval_id: str | None = None
    correlation_id: str = ""
    read_only: bool | None = None
    """Whether the tool only reads, by its own account when it was called; None for a call that found no tool."""
    grounding: tuple[ArgumentSource, ...] | None = None
    """Where each argument came from; None for a call that did not get so far, or that no model wrote."""

    @field_validator("tool_name")
    @classmethod
    def _named(cls, value: str, info: ValidationInfo) -> str:
        if value or reads_stored(info):  # earlier versions recorded calls of models that had named no tool
            return value or UNNAMED
        raise ValueError("a record names the tool that was called")

    @model_validator(mode="after")
    def _consistent(self) -> ToolCallRecord:
        if self.status is CallStatus.SUCCESS:
            if self.error is not None:
                raise ValueError("error: a successful call has no error")
        else:
            if self.result is not None or self.artifact is not None:
                raise ValueError(f"result: a call with status {self.status.value!r} has no result")
            if self.error is None and self.status not in (CallStatus.PENDING, CallStatus.RUNNING):
                raise ValueError(f"error: a call with status {self.status.value!r} must say why")
        if self.end_time < self.start_time:
            raise ValueError(f"end_time: {self.end_time} is before start_time {self.start_time}")
        return self

    @computed_field  # type: ignore[prop-decorator]  # mypy cannot see through computed_field on a property
    @property
    def success(self) -> bool:
        return self.status is CallStatus.SUCCESS

    @computed_field  # type: ignore[prop-decorator]  # mypy cannot see through computed_field on a property
    @property
    def duration_ms(self) -> float:
        return (self.end_time - self.start_time).total_seconds() * 1000

    @property
    def parameters(self) -> dict[str, Any]:
        return self.arguments

    @property
    def shown(self) -> Any:
        """The result, or what can be shown of one that is kept apart."""
        return self.result if self.artifact is None else self.artifact.text

    @property
    def ungrounded(self) -> tuple[str, ...]:
        """The arguments whose values are identifiers that stand in nothing said before."""
        return ungrounded(self.grounding)

    @property
    def ungrounded_values(self) -> list[Any]:
        return [value_at(self.arguments, path) for path in self.ungrounded]

    @property
    def error_message(self) -> str | None:
        return None if self.error is None else self.error.message


class CallRow(Entity):
    """One call, without its content."""

    execution_id: str
    run_id: str
    call_id: str
    tool_name: str
    status: str
    risk: str | None
    attempts: int
    cached: bool
    error_code: str | None
    started_at: float
    duration_ms: float


class ArtifactStore(Protocol):
    """Large results, by the run they belong to; forgotten with it."""

    async def put(self, run_id: str, text: str) -> str:
        """Keep a text, if it is not there already; returns its id."""

    async def read(self, run_id: str, artifact_id: str, *, offset: int = 0, length: int | None = None) -> str | None:
        """A part of it, in characters; None when there is no such artifact."""


def speaks_for_tool(status: str, *, attempts: int) -> bool | None:
    """Whether a call tells that its tool works, or that it does not.

    None where it tells nothing: refused before it ran (arguments, permission, a person's no), cancelled, or of a fate
    that nobody knows.
    """
    return _SPEAKS.get(status) if attempts else None


_SPEAKS: dict[str, bool] = {CallStatus.SUCCESS: True, CallStatus.ERROR: False, CallStatus.TIMEOUT: False}


class CallStore(Protocol):
    """The log of tool calls, for health and accounting."""

    async def list(
        self, *, tool_name: str | None = None, run_id: str | None = None, since: float | None = None, limit: int = 100
    ) -> Sequence[CallRow]:
        """Newest first."""

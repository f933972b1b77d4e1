"""What is said in a conversation, and what saying it cost."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import AliasChoices, Field, model_validator

from journeyman.core.data import Entity


class Role(StrEnum):
    """Who speaks. ``function`` is a tool's answer and carries the tool's name."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    FUNCTION = "function"


class ToolCall(Entity):
    """What the model asked for. Says nothing about what became of it: that is a ``ToolCallRecord``."""

    id: str = ""
    """In a run, ours: the loop replaces what a model wrote here, which may be anything, and is used twice by some."""
    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict, validation_alias=AliasChoices("arguments", "parameters"))
    malformed: str | None = None
    """The arguments as written, where they are not a JSON object; such a call is answered and never run."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """What the model's *adapter* reports for this call; never a number out of the model's text."""


class Usage(Entity):
    """Tokens and requests, added up over a run."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage.unchecked(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            requests=self.requests + other.requests,
        )


class Message(Entity):
    """One utterance. A conversation is a list of them."""

    role: Role
    content: str = ""
    name: str | None = None
    """The tool's name, on function messages."""
    call_id: str | None = None
    """Which call a function message answers."""
    calls: tuple[ToolCall, ...] = ()
    """The calls an assistant message asks for."""

    @model_validator(mode="after")
    def _check(self) -> Message:
        if self.role is Role.FUNCTION and not self.name:
            raise ValueError("name: a function message must carry the name of its tool")
        if self.calls and self.role is not Role.ASSISTANT:
            raise ValueError(f"calls: only an assistant message can ask for calls, this one is {self.role.value!r}")
        return self

    @classmethod
    def user(cls, content: str) -> Message:
        return cls(role=Role.USER, content=content)

    @classmethod
    def system(cls, content: str) -> Message:
        return cls(role=Role.SYSTEM, content=content)

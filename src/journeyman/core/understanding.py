"""What a person wants (intents) and what cannot be done for them (gaps), as data."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from journeyman.core.data import Entity

INTENT_TYPES = ("summarize", "analyze", "fetch", "explain")
"""The intents every installation knows; configuration may add more."""


class UserIntent(Entity):
    """What a request asks for."""

    intent_type: str = Field(min_length=1)
    confidence: float = Field(ge=0, le=1)
    parameters: dict[str, Any] = Field(default_factory=dict)
    context_requirements: tuple[str, ...] = ()
    suggested_tools: tuple[str, ...] = ()
    fallback_options: tuple[str, ...] = ()


class ToolGapReport(Entity):
    """A task that the tools at hand cannot do. No missing tool, no report."""

    missing_tools: tuple[str, ...] = Field(min_length=1)
    attempted_task: str = Field(min_length=1)
    existing_tools_checked: tuple[str, ...] = ()

    @field_validator("attempted_task")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("attempted_task: must say which task could not be done")
        return value

"""What a person wants (intents) and what cannot be done for them (gaps), as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

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


class GapRow(Entity):
    """A gap report as it was kept."""

    id: str
    created_at: float
    run_id: str | None
    report: ToolGapReport


class GapStore(Protocol):
    """What people asked for and no tool could do."""

    async def add(self, report: ToolGapReport, *, now: float, run_id: str | None = None) -> GapRow: ...

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[GapRow]:
        """Newest first."""

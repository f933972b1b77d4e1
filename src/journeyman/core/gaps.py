"""What a person wants (intents) and what cannot be done for them (gaps), as data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import Field, ValidationInfo, field_validator

from journeyman.core.data import Entity, reads_stored
from journeyman.core.errors import ConfigurationError
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter

INTENT_TYPES = ("summarize", "analyze", "fetch", "explain")
"""The intents every installation knows; ``add_intent_type`` adds an installation's own."""

_added_types: set[str] = set()


def add_intent_type(name: str) -> None:
    """Let intents be of this type, too: a word in small letters, digits and underscores."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise ConfigurationError(
            f"intent type {name!r}: use a small letter, then small letters, digits or underscores, at most 64"
        )
    _added_types.add(name)


class UserIntent(Entity):
    """What a request asks for."""

    intent_type: str = Field(min_length=1)
    confidence: float = Field(ge=0, le=1)
    parameters: dict[str, Any] = Field(default_factory=dict)
    context_requirements: tuple[str, ...] = ()
    suggested_tools: tuple[str, ...] = ()
    fallback_options: tuple[str, ...] = ()

    @field_validator("intent_type")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        known = (*INTENT_TYPES, *sorted(_added_types))
        if value not in known and not reads_stored(info):
            raise ValueError(f"intent_type: must be one of {', '.join(known)} (add_intent_type() adds others)")
        return value


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
    principal_id: str | None = None
    """On whose behalf it was asked for."""
    report: ToolGapReport


class GapStore(Protocol):
    """What people asked for and no tool could do."""

    async def add(
        self, report: ToolGapReport, *, now: float, run_id: str | None = None, principal_id: str | None = None
    ) -> GapRow: ...

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[GapRow]:
        """Newest first."""

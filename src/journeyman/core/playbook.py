"""Strategies learned from outcomes, as data. How they are learned is the learning room's business."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field, computed_field

from journeyman.core.data import Derived, new_id


class StrategyState(StrEnum):
    """How far a strategy is trusted, by evidence."""

    SHADOW = "shadow"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


def _now() -> datetime:
    return datetime.now(UTC)


class PlaybookBullet(Derived):
    """One piece of advice."""

    id: str = Field(default_factory=lambda: new_id("bullet"), min_length=1)
    content: str = Field(min_length=1)
    section: Literal["Strategies", "Pitfalls", "Observations"] = "Strategies"
    helpful_count: int = Field(default=0, ge=0)
    harmful_count: int = Field(default=0, ge=0)
    tags: tuple[str, ...] = ()
    created_at: datetime = Field(default_factory=_now)
    last_updated: datetime = Field(default_factory=_now)


class ToolCallingStrategy(PlaybookBullet):
    """Advice with a tool sequence that has worked, or failed, for tasks like its example."""

    tool_sequence: tuple[str, ...] = Field(min_length=1)
    avg_iterations: float = Field(default=0.0, ge=0)
    example_task: str = ""
    domain: str = "general"
    state: StrategyState = StrategyState.SHADOW
    preconditions: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()
    """Ids of the runs it was learned from."""

    @computed_field  # type: ignore[prop-decorator]  # mypy cannot see through computed_field on a property
    @property
    def tool_success_rate(self) -> float:
        """Derived from the counters, so that it can never disagree with them; 0 without evidence."""
        uses = self.helpful_count + self.harmful_count
        return self.helpful_count / uses if uses else 0.0

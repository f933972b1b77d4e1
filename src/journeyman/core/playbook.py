"""Strategies learned from outcomes, and the advice that a run is given, as data. Learning itself is elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal, Protocol

from pydantic import Field, computed_field, model_validator

from journeyman.core.data import Derived, Entity, new_id
from journeyman.core.messages import Message, Role


class StrategyState(StrEnum):
    """How far a strategy is trusted, by evidence."""

    SHADOW = "shadow"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


def _now() -> datetime:
    return datetime.now(UTC)


DEMONSTRATION = "demonstration"
"""The name of a user's message that begins a demonstration, for adapters that treat those apart from a conversation."""


class Advice(Entity):
    """One piece of advice for one run: where it comes from, and in which form the model is given it."""

    strategy_id: str | None = None
    """The strategy it was made from; None for advice that the caller wrote."""
    form: Literal["system", "turns"] = "system"
    """As a line of the system message, or as turns of a conversation before the task: a demonstration."""
    text: str = ""
    """The line, for the form ``system``; for ``turns``, what people are shown."""
    turns: tuple[Message, ...] = ()
    holdout: bool = False
    """Retrieved and recorded, but kept from the model, so that its effect can be measured against runs that had it."""

    @model_validator(mode="after")
    def _consistent(self) -> Advice:
        if self.form == "system" and (self.turns or not self.text.strip()):
            raise ValueError("text: advice in the system message is a text that is not blank, without turns")
        if self.form == "turns":
            if not self.turns:
                raise ValueError("turns: advice in the form of turns must have some")
            if any(turn.role is Role.SYSTEM for turn in self.turns):
                raise ValueError("turns: a demonstration has no system messages; use the form 'system'")
            if self.turns[0].role is not Role.USER or self.turns[-1].role is not Role.ASSISTANT or self.turns[-1].calls:
                raise ValueError("turns: a demonstration begins with a user's message and ends with an answer")
        return self


class StrategySource(Protocol):
    """Where advice for a task comes from: a playbook."""

    async def advise(self, text: str, *, tools: Sequence[str]) -> Sequence[Advice]:
        """Advice for this task with these tools, best first; empty when there is too little evidence."""


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

"""An agent is data: a name, a model, an instruction, tool specifications. It can be printed, stored and sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import Field, field_validator

from journeyman.core.data import Entity
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification


class Agent(Entity):
    """Who answers, how, and with which tools. Implementations come from a library when it runs."""

    name: str = Field(min_length=1)
    description: str = ""
    model: str = Field(default="auto", min_length=1)
    instruction: str = Field(min_length=1)
    tools: tuple[ToolSpecification, ...] = ()
    """Specifications; tools are accepted and reduced to theirs."""
    max_iterations: int | None = Field(default=None, gt=0)
    finish: bool = False
    """End by calling ``finish(answer, reasoning, confidence)`` instead of by plain text."""

    @field_validator("name", "model", "instruction")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("tools", mode="before")
    @classmethod
    def _specifications(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(getattr(item, "specification", item) for item in value)
        return value

    @field_validator("tools", mode="after")
    @classmethod
    def _unique_names(cls, value: tuple[ToolSpecification, ...]) -> tuple[ToolSpecification, ...]:
        counted = Counter(item.name for item in value)
        if twice := [name for name, count in counted.items() if count > 1]:
            raise ValueError(f"tool names must be unique within an agent; more than once: {', '.join(twice)}")
        if taken := [name for name in counted if name in RESERVED_NAMES]:
            raise ValueError(f"reserved tool names: {', '.join(taken)}")
        return value

    @cached_property
    def snapshot(self) -> dict[str, Any]:
        """This agent as plain JSON, made once: every run journals it."""
        return self.model_dump(mode="json")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("snapshot", None)  # of the original
        return copied

    @classmethod
    def from_gram(cls, source: str | Path, name: str | None = None) -> Agent:
        """The agent that a gram text or file describes; where there are several, the one of this name."""
        from journeyman.agent.documents import load_agent

        return load_agent(source, name)

    def to_gram(self) -> str:
        """This agent as canonical gram text, from which ``from_gram`` makes an equal one."""
        from journeyman.agent.documents import dump_agents

        return dump_agents([self])

"""What cannot be done for a person (gaps), as data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from pydantic import Field, field_validator

from journeyman.core.data import Entity, digest
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import stem, words

NEAREST = 5
"""How many of the tools that were looked at a person is told."""
KEY_CHARS = 12
_WORDS_THAT_SAY_LITTLE = """
    get retrieve fetch show find give list tell display look up see check view read the a an my our your of me for
"""
_SAYS_LITTLE = frozenset(map(stem, _WORDS_THAT_SAY_LITTLE.split()))


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

    @property
    def plain(self) -> str:
        """The report in a sentence or two."""
        missing = "; ".join(self.missing_tools)
        nearest = ", ".join(self.existing_tools_checked[:NEAREST])
        return f"No tool can do this: {missing}." + (f" Nearest: {nearest}." if nearest else " There are no tools.")


FindGap: TypeAlias = Callable[[str, Sequence[ToolSpecification], float | None], Awaitable[ToolGapReport | None]]
"""From a task, the tools at hand and the model's confidence; None when they seem to do, or nothing was asked for."""


def gap_key(missing: str) -> str:
    """What requests for the same thing have in common: their words, however they are inflected and ordered.

    >>> gap_key("retrieve stock portfolio performance") == gap_key("Show the performance of my stock portfolio")
    True
    """
    stems = {stem(word) for word in words(missing)}
    return digest(" ".join(sorted(stems - _SAYS_LITTLE) or sorted(stems)))[:KEY_CHARS]


class GapRow(Entity):
    """One time that something was missing."""

    id: str
    created_at: float
    run_id: str | None
    principal_id: str | None = None
    """On whose behalf it was asked for."""
    report: ToolGapReport
    gap_key: str | None = None
    """Which gap it is; None for what was kept before gaps were counted."""
    missing: str | None = None
    """Of the report's missing tools, the one that this row counts."""


class Gap(Entity):
    """What is missing, with how often it was asked for."""

    key: str
    missing: str
    """As it was said last."""
    times: int
    people: int
    """Different principals; those whom nobody knows count as one."""
    first_at: float
    last_at: float
    report: ToolGapReport
    """The latest."""
    run_id: str | None = None
    """In which run that was."""
    dismissed_by: str | None = None
    dismissed_at: float | None = None


class GapStore(Protocol):
    """What people asked for and no tool could do. Every time is kept; a gap is what several of them have in common."""

    async def add(
        self, report: ToolGapReport, *, now: float, run_id: str | None = None, principal_id: str | None = None
    ) -> GapRow: ...

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[GapRow]:
        """Every time, newest first."""

    async def demand(
        self,
        *,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        dismissed: bool = False,
        key: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Gap]:
        """Gaps, those that most people asked for first; with ``dismissed`` also the dismissed ones."""

    async def dismiss(self, key: str, *, by: str | None, now: float) -> bool:
        """Leave a gap out of what is listed from now on; False where there is none with this key."""

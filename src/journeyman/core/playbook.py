"""Strategies learned from outcomes, the advice that a run is given, where playbooks are kept, and how two
versions of one differ, as data.

Learning itself is the room ``learning``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import Field, model_validator

from journeyman.core.approvals import LabelSource
from journeyman.core.calls import DemonstratedSource
from journeyman.core.data import Derived, Entity, Moment, derived, digest, new_id
from journeyman.core.policy import Principal
from journeyman.core.runs import Message, Role

if TYPE_CHECKING:
    from journeyman.core.storing import CursorBatch


class StrategyState(StrEnum):
    """How far a strategy is trusted, by evidence."""

    SHADOW = "shadow"
    ACTIVE = "active"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


def _now() -> datetime:
    return datetime.now(UTC)


NEXT_STEP = "next_step"
"""The name of a user's message that tells the call that comes next, for adapters that look for the user's own."""

REMINDER = "reminder"
"""The name of a user's message that this program wrote because a reply did not end the task."""

ADVICE = "What worked in similar tasks before (advice, not orders):"
"""What begins the advice in a system message, for adapters that treat it apart from the instruction."""

DEMONSTRATION = "demonstration"
"""The name of a user's message that begins a demonstration, for adapters that treat those apart from a conversation."""

PLACEHOLDER_OPEN, PLACEHOLDER_CLOSE = "⟦", "⟧"
"""Around the name of a value that was left out of a demonstration. A call that carries one is refused."""


def placeholder(name: str) -> str:
    """What stands in a demonstration where a value stood: nobody could mean it."""
    return f"{PLACEHOLDER_OPEN}{name}{PLACEHOLDER_CLOSE}"


class NextStep(Entity):
    """One call of a demonstration: told when the calls before it have been made."""

    tool_name: str
    constants: dict[str, Any] = Field(default_factory=dict)
    sources: dict[str, DemonstratedSource] = Field(default_factory=dict)
    """By argument, as in a demonstrated call."""
    places: dict[str, str] = Field(default_factory=dict)
    given: dict[str, Any] = Field(default_factory=dict)
    """By argument, what the request says in the place of the demonstration's value, as far as that is certain."""
    example: dict[str, Any] = Field(default_factory=dict)
    """The arguments of this call in the nearest example."""
    choices: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By argument, the values it is known to allow."""
    several: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """By argument, values of the request that may stand there: nobody can say by their form which."""


class Lookup(Entity):
    """An argument that a tool refused as it was given, and where its value is found."""

    tool_name: str
    parameter: str
    found_by: str | None = None
    """The tool whose result holds the value; None while no run has shown one."""
    field: str = ""
    """Where in that result, as a path of names; empty where that is not known."""
    allowed: tuple[str, ...] = ()
    """The values that the tool names in its refusal, where it allows no others."""


class Advice(Entity):
    """One piece of advice for one run: where it comes from, and in which form the model is given it."""

    strategy_id: str | None = None
    """The strategy it was made from; None for advice that the caller wrote."""
    form: Literal["system", "steps", "turns", "lookups"] = "system"
    """As a line of the system message; as that and, at every step, the call that comes next; as turns of a conversation
    before the task: a demonstration; or, once a call was refused, where to look its values up."""
    text: str = ""
    """The line, for the forms ``system`` and ``steps``; for others, what people are shown."""
    turns: tuple[Message, ...] = ()
    holdout: bool = False
    """Retrieved and recorded, but kept from the model, so that its effect can be measured against runs that had it."""
    steps: tuple[NextStep, ...] = ()
    """The calls of its demonstration: the first that the run has not made yet is told at every step."""
    example: str = ""
    """The request of the nearest example, whose calls its steps show."""
    copied: tuple[str, ...] = ()
    """Values of that example that are none of this task: a call that carries one is refused."""
    alike: bool = False
    """Whether the request asks for what the demonstration did, beyond doubt: then the next call is suggested."""
    lookups: tuple[Lookup, ...] = ()
    tools: tuple[str, ...] = ()
    """What its strategy calls: the model is told of these tools, however many others there are."""
    spare: bool = False
    """Whether it is for a model alone that can use several strategies."""
    effective: bool = False
    """Whether it shows a call that changes something: a run that has it and changes nothing is reminded once."""

    @model_validator(mode="after")
    def _consistent(self) -> Advice:
        if self.form != "turns" and (self.turns or not self.text.strip()):
            raise ValueError("text: advice in the system message is a text that is not blank, without turns")
        if bool(self.steps) is not (self.form == "steps"):
            raise ValueError("steps: advice in the form of steps must have some, and no other may")
        if bool(self.lookups) is not (self.form == "lookups"):
            raise ValueError("lookups: advice in the form of lookups must have some, and no other may")
        if self.form == "turns":
            if not self.turns:
                raise ValueError("turns: advice in the form of turns must have some")
            if any(turn.role is Role.SYSTEM for turn in self.turns):
                raise ValueError("turns: a demonstration has no system messages; use the form 'system'")
            if self.turns[0].role is not Role.USER or self.turns[-1].role is Role.USER or self.turns[-1].calls:
                raise ValueError(
                    "turns: a demonstration begins with a user's message and ends with an answer, or a call's result"
                )
        return self


class StrategySource(Protocol):
    """Where advice for a task comes from: a playbook."""

    async def advise(
        self,
        text: str,
        *,
        tools: Sequence[str],
        principal: Principal | None = None,
        previous: str | None = None,
        run_id: str = "",
    ) -> Sequence[Advice]:
        """Advice for this task with these tools, best first; empty when there is too little evidence.

        ``previous`` is the tool that the conversation called last; ``run_id`` decides whether the run is a holdout.
        """


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
    domain: str = "general"
    tool_name: str | None = None
    """The tool that a pitfall is about."""
    principal_id: str | None = None
    """Whose it is; None for everybody's."""
    lookup: Lookup | None = None
    """For a pitfall that says where a value is found."""
    provenance: tuple[str, ...] = ()
    """Ids of the runs it was learned from, the latest ones."""
    version: int = Field(default=1, ge=1)
    """Goes up with every change of this bullet."""

    @property
    def available(self) -> bool:
        """Whether it may be offered to runs."""
        return True

    @property
    def index_metadata(self) -> dict[str, Any]:
        """What an index keeps of it beside its vector."""
        return {"has_tool_sequence": False, "domain": self.domain, "tool_count": 0, "success_rate": 0.0}


class DemonstratedCall(Entity):
    """One call of a demonstration. Values are placeholders, but for constants that mean the same in every task."""

    tool_name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    sources: dict[str, DemonstratedSource] = Field(default_factory=dict)
    """By argument."""
    places: dict[str, str] = Field(default_factory=dict)
    """By argument that came from a row of a result: ``first``, ``last``, ``only``, ``other``, or ``each``
    where the call was made for all of them."""
    result: str = ""
    """What of its result later calls used, as placeholders; never the result itself."""
    effect: bool = False


class WorkedExample(Entity):
    """One run of a demonstration as it is shown: with values of the same form, or its own where the teacher lets it."""

    request: str = Field(min_length=1)
    calls: tuple[dict[str, Any], ...] = ()
    """The arguments of each call."""
    values: tuple[str, ...] = ()
    """What of them belongs to no other task."""


class Demonstration(Entity):
    """A request and the calls that served it, without anybody's values."""

    request: str = Field(min_length=1)
    wordings: tuple[str, ...] = ()
    """Other requests that were served so, with the same placeholders."""
    calls: tuple[DemonstratedCall, ...] = Field(min_length=1)
    closing: str = ""
    """The answer, without values; empty where it says nothing."""
    examples: tuple[WorkedExample, ...] = ()
    """Runs that it was learned from, the latest last."""


def wilson(good: int, total: int, z: float) -> tuple[float, float]:
    """The interval of a success rate, ``z`` standard deviations to either side; all of it without evidence."""
    if not total:
        return 0.0, 1.0
    rate, square = good / total, z * z
    centre = rate + square / (2 * total)
    spread = z * math.sqrt(rate * (1 - rate) / total + square / (4 * total * total))
    return max(0.0, (centre - spread) / (1 + square / total)), min(1.0, (centre + spread) / (1 + square / total))


def rate_difference(good: int, total: int, other_good: int, other_total: int) -> tuple[float, float, float] | None:
    """By how much one rate is above another, with its 95 % interval (Newcombe's); None without evidence."""
    if not total or not other_total:
        return None
    one, other = good / total, other_good / other_total
    (low, high), (other_low, other_high) = wilson(good, total, 1.96), wilson(other_good, other_total, 1.96)
    return (
        one - other,
        one - other - math.sqrt((one - low) ** 2 + (other_high - other) ** 2),
        one - other + math.sqrt((high - one) ** 2 + (other - other_low) ** 2),
    )


RECENT = 20
"""How many of a strategy's latest uses are kept one by one."""


class ToolCallingStrategy(PlaybookBullet):
    """Advice with a tool sequence that has worked, or failed, for tasks like its example."""

    tool_sequence: tuple[str, ...] = Field(min_length=1)
    avg_iterations: float = Field(default=0.0, ge=0)
    example_task: str = ""
    sub_goal: str = ""
    """What was asked for, without personal values: the text it is found by. Empty: the example."""
    phrasings: tuple[str, ...] = ()
    """Other requests that it served, found by as well."""
    demonstration: Demonstration | None = None
    state: StrategyState = StrategyState.SHADOW
    state_reason: str = ""
    preconditions: tuple[str, ...] = ()
    label_sources: dict[LabelSource, int] = Field(default_factory=dict)
    """On whose labels its counters rest, and how many of each."""
    models: tuple[str, ...] = ()
    """Whose runs it was learned from."""
    recent: tuple[bool, ...] = ()
    """How its latest uses went, oldest first: runs that were given it."""
    holdout_helpful: int = Field(default=0, ge=0)
    holdout_harmful: int = Field(default=0, ge=0)
    """How runs went that would have been given it and were not."""
    shares: bool = False
    """Whether a person has offered a principal's strategy to everybody."""

    @derived
    def tool_success_rate(self) -> float:
        """Derived from the counters, so that it can never disagree with them; 0 without evidence."""
        uses = self.helpful_count + self.harmful_count
        return self.helpful_count / uses if uses else 0.0

    @property
    def effect(self) -> tuple[float, float, float] | None:
        """How much more often runs succeeded that were given it than holdouts, with the 95 % interval of that.

        Of its latest uses, since only those are kept one by one; None while one side has no run.
        """
        return rate_difference(sum(self.recent), len(self.recent), self.holdout_helpful, self.holdouts)

    @property
    def holdouts(self) -> int:
        return self.holdout_helpful + self.holdout_harmful

    @property
    def effect_text(self) -> str:
        """The same in words."""
        counted = f"{sum(self.recent)} of the last {len(self.recent)} runs with it, {self.holdout_helpful} of "
        counted += f"{self.holdouts} holdouts were good"
        if self.effect is None:
            return f"not known yet: {counted}"
        said = "{:+.2f} (95 %: {:+.2f} to {:+.2f}): ".format(*self.effect) + counted
        return f"too few runs to tell: {said}" if self.effect[1] <= 0 <= self.effect[2] else said

    @property
    def available(self) -> bool:
        return self.state is StrategyState.ACTIVE

    @property
    def texts(self) -> tuple[str, ...]:
        """What it is found by."""
        return tuple(dict.fromkeys(text for text in (self.sub_goal or self.example_task, *self.phrasings) if text))

    @property
    def index_metadata(self) -> dict[str, Any]:
        sequence = {"has_tool_sequence": True, "tool_count": len(self.tool_sequence)}
        return {**super().index_metadata, **sequence, "success_rate": self.tool_success_rate}


METADATA = ("has_tool_sequence", "domain", "tool_count", "success_rate")
"""What an index keeps of a bullet beside its vector."""


def read_bullet(data: str | bytes | Mapping[str, Any], *, domain: str | None = None) -> PlaybookBullet:
    """A bullet from its stored form; one with a ``tool_sequence`` is a strategy.

    Bullets of other programs have no id and no state: the id is made from what they say, so that it stays the same,
    and a strategy with more successes than failures is active.
    """
    content: dict[str, Any] = dict(data) if isinstance(data, Mapping) else json.loads(data)
    if domain is not None:
        content.setdefault("domain", domain)
    if "id" not in content:
        sequence = [str(name) for name in content.get("tool_sequence") or ()]
        content["id"] = f"bullet_{digest(str(content.get('content')), *sequence)[:24]}"
    if not content.get("tool_sequence"):
        return PlaybookBullet.stored(content)
    if "state" not in content:
        helped = content.get("helpful_count", 0) > content.get("harmful_count", 0)
        content["state"] = StrategyState.ACTIVE if helped else StrategyState.SHADOW
    return ToolCallingStrategy.stored(content)


class PlaybookState(Entity):
    """The bullets of a playbook that changed after a version, or all of them."""

    version: int = 0
    bullets: tuple[PlaybookBullet, ...] = ()
    removed: tuple[str, ...] = ()


class PlaybookVersion(Entity):
    """One change of a playbook."""

    version: int
    at: Moment
    reason: str = ""
    changed: int = 0
    removed: int = 0


class PlaybookChange(Entity):
    """What one commit writes to one playbook."""

    domain: str
    expected: int
    """The version that the change was made from."""
    bullets: tuple[PlaybookBullet, ...] = ()
    removed: tuple[str, ...] = ()
    reason: str = ""


class PlaybookStore(Protocol):
    """Where playbooks are kept, one for each domain. Every change is a version; none is lost."""

    async def read(self, domain: str, *, after: int = 0) -> PlaybookState:
        """What has changed since a version; everything with 0."""

    async def commit(
        self, changes: Sequence[PlaybookChange], *, now: float, batch: CursorBatch | None = None
    ) -> Mapping[str, int]:
        """Write changes and return the new version of each playbook.

        Raises PlaybookConflictError where a playbook is no longer at the version it was ``expected`` at. With
        ``batch`` the changes and the cursor's advance are written together, or neither.
        """

    async def at(self, domain: str, version: int) -> PlaybookState:
        """The whole playbook as it was. Raises ConfigurationError where there was no such version."""

    async def history(self, domain: str, *, limit: int = 50) -> Sequence[PlaybookVersion]:
        """The latest changes, newest first."""

    async def domains(self) -> Sequence[str]: ...


_BOOKKEEPING = {"id", "domain", "version", "created_at", "last_updated", "tool_success_rate"}
"""Fields that follow from others, or change with every change."""


class FieldChange(Entity):
    """One field of a bullet, before and after, as JSON."""

    field: str
    before: Any = None
    after: Any = None


class BulletDiff(Entity):
    """What became of one bullet."""

    id: str
    kind: Literal["added", "changed", "removed"]
    title: str
    """Its tools, or what it says."""
    principal_id: str | None = None
    fields: tuple[FieldChange, ...] = ()
    """What changed in it; of a bullet that was added or removed, what it says and how far it was trusted."""


class PlaybookDiff(Entity):
    """From one version of a playbook to another, which may be the earlier one."""

    domain: str
    since: int
    to: int
    bullets: tuple[BulletDiff, ...] = ()


def playbook_diff(domain: str, since: PlaybookState, to: PlaybookState) -> PlaybookDiff:
    """The bullets in which two states of a playbook differ: added first, then changed, then removed."""
    old, new = ({bullet.id: bullet for bullet in state.bullets} for state in (since, to))
    added = [_difference("added", None, bullet) for key, bullet in new.items() if key not in old]
    changed = [_difference("changed", old[key], bullet) for key, bullet in new.items() if key in old]
    removed = [_difference("removed", bullet, None) for key, bullet in old.items() if key not in new]
    differing = (*added, *(item for item in changed if item.fields), *removed)
    return PlaybookDiff(domain=domain, since=since.version, to=to.version, bullets=differing)


def _difference(
    kind: Literal["added", "changed", "removed"], old: PlaybookBullet | None, new: PlaybookBullet | None
) -> BulletDiff:
    [bullet, *_] = sides = [side for side in (new, old) if side is not None]
    compared = {"content", "state", "helpful_count", "harmful_count"} if len(sides) == 1 else None
    before, after = (
        {} if side is None or old == new else side.model_dump(mode="json", include=compared, exclude=_BOOKKEEPING)
        for side in (old, new)
    )
    fields = tuple(
        FieldChange(field=name, before=before.get(name), after=after.get(name))
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    )
    title = " → ".join(bullet.tool_sequence) if isinstance(bullet, ToolCallingStrategy) else bullet.content
    return BulletDiff(id=bullet.id, kind=kind, title=title, principal_id=bullet.principal_id, fields=fields)

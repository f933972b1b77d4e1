"""Who may do what, how bad a call can be, and the rules every call is held to.

Data: who enforces them is the execution room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from journeyman.core.data import Entity

PERMISSION = re.compile(r"[A-Za-z0-9_.\-]+(:[A-Za-z0-9_.\-]+)*(:\*)?|\*")


WRITE_ALL = "runs:write"
"""Who has it sees what belongs to others, speaks in their sessions, and cancels, resumes or deletes what is theirs."""


class _Any(Enum):
    PRINCIPAL = "any principal"


ANY_PRINCIPAL: Final = _Any.PRINCIPAL
PrincipalFilter: TypeAlias = str | Literal[_Any.PRINCIPAL] | None
"""Whose rows to list: those of the principal of this id, those of no principal (None), or all (ANY_PRINCIPAL)."""


def check_permissions(values: Iterable[str]) -> frozenset[str]:
    """Permissions look like ``orders:write``; a holder may have ``orders:*`` or ``*``."""
    permissions = frozenset(values)
    for value in sorted(permissions):
        if not PERMISSION.fullmatch(value):
            raise ValueError(f"permission {value!r} is not well-formed; write it like 'orders:write' or 'orders:*'")
    return permissions


Permissions = Annotated[frozenset[str], AfterValidator(check_permissions)]


class Principal(Entity):
    """A person or a program, and what it may do. No principal means no permissions."""

    id: str = Field(min_length=1)
    permissions: frozenset[str] = frozenset()

    def __init__(self, id: str = "", *, permissions: Iterable[str] = (), **unknown: Any) -> None:
        # Positional `id` reads better. A missing id and unknown fields are accepted here, so that the validator
        # refuses them in its own words.
        super().__init__(**{"id": id, "permissions": permissions, **unknown})

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # see Entity

    @field_validator("permissions", mode="before")
    @classmethod
    def _well_formed(cls, value: Iterable[str]) -> frozenset[str]:
        if isinstance(value, str):
            raise ValueError(f"permissions must be a collection of strings, not the string {value!r}")
        return check_permissions(value)

    def may(self, permission: str) -> bool:
        """Whether this principal holds a permission, itself or through a wildcard such as ``orders:*``."""
        if permission in self.permissions or "*" in self.permissions:
            return True
        parts = permission.split(":")
        return any(":".join([*parts[:i], "*"]) in self.permissions for i in range(1, len(parts)))


APPROVAL_CONFIDENCE = 0.85
"""Below this confidence (or without any) a call that is hard to undo needs a person."""


class RiskLevel(StrEnum):
    """What it takes to undo a call."""

    REVERSIBLE = "reversible"
    """A read, or anything undone by an ordinary later call."""
    REVERSIBLE_WITH_DELAY = "reversible_with_delay"
    """Can be undone for a while, or with somebody's help."""
    IRREVERSIBLE = "irreversible"
    """Cannot be undone."""

    @property
    def rank(self) -> int:
        return _RANK[self]


_RANK = {RiskLevel.REVERSIBLE: 0, RiskLevel.REVERSIBLE_WITH_DELAY: 1, RiskLevel.IRREVERSIBLE: 2}


def requires_approval(
    risk: RiskLevel | str, confidence: float | None, *, threshold: float = APPROVAL_CONFIDENCE
) -> bool:
    """Whether a person must agree: irreversible always, with delay when unsure, reversible never."""
    match RiskLevel(risk):
        case RiskLevel.IRREVERSIBLE:
            return True
        case RiskLevel.REVERSIBLE_WITH_DELAY:
            return confidence is None or not confidence >= threshold
        case RiskLevel.REVERSIBLE:
            return False


T = TypeVar("T")

MOST_SECONDS = 10 * 365 * 24 * 3600.0
"""Ten years: longer than any rule needs, and no date or timer overflows."""

Seconds = Annotated[float, Field(le=MOST_SECONDS, allow_inf_nan=False)]


Taken: TypeAlias = Sequence[tuple[float, float, int]]
"""The calls that were let through, oldest first: when the first and the last of some were, and how many they are."""
_MOST_SPANS = 32
"""Of calls that are remembered one by one; of more those that came close together are remembered as one span."""
_ROUNDING = 1e-6
"""Rounding must not make a caller that has waited wait again."""


class RateLimit(Entity):
    """At most so many calls in any so many seconds, together or for each principal."""

    calls: int = Field(gt=0)
    seconds: Seconds = Field(default=60.0, gt=0)
    per: Literal["tool", "principal"] = "tool"
    """Whether all principals share it. Categories are limited in the same way as tools."""
    burst: float = Field(default=1.0, ge=1, le=100, allow_inf_nan=False)
    """How many times ``calls`` may come at once, in so many times ``seconds``: on average it is never more."""

    @property
    def capacity(self) -> int:
        """How many calls may come at once."""
        return int(self.calls * self.burst)

    def take(self, taken: Taken, now: float) -> tuple[Taken, float]:
        """Let one more call through after those that were.

        Returns those that count from now on, and 0 if it was let through, else the seconds until it may be.
        """
        window = self.seconds * self.burst
        # A time to come was noted before the clock was set back, or by a clock that was wrong.
        counting = [(first, min(last, now), count) for first, last, count in taken if last + window > now + _ROUNDING]
        over = sum(count for _, _, count in counting) + 1 - self.capacity
        for _, last, count in counting:
            if over <= 0:
                break
            over -= count
            if over <= 0:
                return counting, last + window - now
        if len(counting) >= _MOST_SPANS and now - counting[-1][0] < window / _MOST_SPANS:
            first, _, count = counting.pop()
            return [*counting, (first, now, count + 1)], 0.0
        return [*counting, (now, now, 1)], 0.0


@dataclass(slots=True)
class BreakerState:
    """How a tool fares: its failures in a row, until when it rests, and the calls that try it out afterwards."""

    failures: int = 0
    open_until: float | None = None
    admitted: int = 0
    passed: int = 0


class BreakerRule(Entity):
    """After so many failures in a row a tool is not called for a while; then a few calls try it out.

    When all of these succeed, the tool is called as before; when one fails, it rests again.
    """

    failures: int = Field(default=5, gt=0)
    rest_seconds: Seconds = Field(default=60.0, gt=0)
    probes: int = Field(default=3, gt=0)

    def wait(self, health: BreakerState, now: float) -> float:
        """Seconds until the next try; 0 where a call may pass."""
        if health.open_until is None or now >= health.open_until or 0 < health.admitted < self.probes:
            return 0.0
        return health.open_until - now

    def admit(self, health: BreakerState, now: float) -> float:
        """The same; a call that passes is noted as one that tries the tool out."""
        if health.open_until is None or (wait := self.wait(health, now)) > 0:
            return 0.0 if health.open_until is None else wait
        if now >= health.open_until:
            # Probes that have not reported after another rest, never will.
            health.open_until, health.admitted, health.passed = now + self.rest_seconds, 0, 0
        health.admitted += 1
        return 0.0

    def note(self, health: BreakerState, now: float, *, healthy: bool) -> float:
        """Count how a call ended. What has recovered is blank again."""
        if not healthy:
            health.failures += 1
            if health.failures >= self.failures:
                health.open_until, health.admitted, health.passed = now + self.rest_seconds, 0, 0
            return 0.0
        health.passed += health.admitted > 0  # a call from before it opened proves nothing
        if health.open_until is None or health.passed >= self.probes:
            health.failures, health.open_until, health.admitted, health.passed = 0, None, 0, 0
        return 0.0


def check_reads(values: Iterable[str]) -> tuple[str, ...]:
    """What a tool reads: ``untrusted`` (others write it), ``private`` (the principal's), ``private:NAME`` (both)."""
    labels = tuple(values)
    for value in labels:
        if value not in ("untrusted", "private") and not (value.startswith("private:") and value[8:].strip()):
            raise ValueError(f"reads: {value!r} is none of 'untrusted', 'private' and 'private:NAME'")
    return labels


def listed(value: Any) -> Any:
    """One label may be written without a list around it."""
    return (value,) if isinstance(value, str) else value


Sends = Annotated[tuple[str, ...], BeforeValidator(listed)]
Reads = Annotated[Sends, AfterValidator(check_reads)]


class Policy(Entity):
    """What may run, how often, how long, and who must agree."""

    default_risk: RiskLevel = RiskLevel.IRREVERSIBLE
    """For a tool that declares nothing and whose name is not known."""
    risks: dict[str, RiskLevel] = Field(default_factory=dict)
    """The operator's word on single tools; wins over what a tool declares."""
    approval_confidence: float = Field(default=APPROVAL_CONFIDENCE, ge=0, le=1)
    approval_seconds: Seconds = Field(default=300.0, gt=0)
    """How long a question stays open where the run waits in its caller's process."""
    stored_approval_seconds: Seconds = Field(default=86_400.0, gt=0)
    """The same where the run waits in a store."""
    grounding: Literal["report", "ask", "refuse"] = "report"
    """What to do about identifiers in a call that stand in nothing said before, so that the model may have invented
    them: report them, ask a person before a call that has effects, or refuse the call and tell the model to look up."""
    flow: Literal["off", "report", "ask", "refuse"] = "ask"
    """What to do about a call with effects that untrusted words may have caused, and about private data that would
    leave: nothing, record it, ask a person, or refuse the call."""
    flow_spares: bool = False
    """Whether a call whose tool and arguments come from the person alone is spared the question that a tool which
    declares no risk gets otherwise."""
    reads: dict[str, Reads] = Field(default_factory=dict)
    """The operator's word on what tools read, by name or pattern; wins over what a tool declares."""
    sends: dict[str, Sends] = Field(default_factory=dict)
    """The same for where data goes."""
    four_eyes: bool = False
    """Whether whoever approves must be somebody else than the run's principal."""
    grant_risk: RiskLevel | None = RiskLevel.IRREVERSIBLE
    """Up to which risk a tool may be allowed for a whole session; None for none."""
    grant_uses: int = Field(default=20, gt=0)
    grant_seconds: Seconds = Field(default=3_600.0, gt=0)
    """How often, and how long, such a grant can be used."""
    least_risks: dict[str, RiskLevel] = Field(default_factory=dict)
    """By tool: its calls are graded at least so, whatever it declares."""
    rate_limits: dict[str, RateLimit] = Field(default_factory=dict)
    """By tool. A call takes a token from every limit that holds for it, or from none."""
    category_rate_limits: dict[str, RateLimit] = Field(default_factory=dict)
    principal_rate_limit: RateLimit | None = None
    """For all calls of one principal together, unless the next one names it."""
    principal_rate_limits: dict[str, RateLimit] = Field(default_factory=dict)
    overall_rate_limit: RateLimit | None = None
    """For all calls together."""
    breaker: BreakerRule | None = BreakerRule()
    wait_seconds: Seconds = Field(default=30.0, ge=0)
    """How long a call may wait for its turn under a rate limit, over and above its own timeouts."""
    retry_backoff_seconds: Seconds = Field(default=0.25, ge=0)
    """Before the second attempt; doubles with each further one."""
    max_argument_bytes: int = Field(default=1_000_000, gt=0)
    max_result_chars: int = Field(default=20_000, ge=200)
    """What a model sees of one result; the record keeps the whole."""
    max_result_bytes: int = Field(default=64_000_000, gt=0)
    """How large a tool's result may be as JSON. A larger one is an error that the model reads."""
    max_inline_bytes: int = Field(default=250_000, gt=0)
    """Larger results of durable runs are kept apart, and their records hold a reference."""
    max_offered_tools: int | None = Field(default=20, ge=3)
    """How many tools a model is told of at once; of more, those that fit the request, and ``find_tools`` for the rest.

    None tells it of all, up to what its provider takes (128 at most of them)."""
    capture_content: bool = False
    """Whether logs and spans may carry arguments and results."""

    def limits_of(self, tool_name: str, category: str, principal_id: str | None) -> dict[str, RateLimit]:
        """Every rate limit that holds for a call, by the name of its bucket. Names of tools hold no line breaks."""
        limits: dict[str, RateLimit] = {}
        if self.rate_limits and (limit := for_tool(self.rate_limits, tool_name)) is not None:
            limits[_bucket(tool_name, limit, principal_id)] = limit
        if self.category_rate_limits and (limit := self.category_rate_limits.get(category)) is not None:
            limits[_bucket(f"\ncategory\n{category}", limit, principal_id)] = limit
        if self.principal_rate_limit is not None or self.principal_rate_limits:
            own = self.principal_rate_limits.get(principal_id or "", self.principal_rate_limit)
            if own is not None:
                limits[f"\nprincipal\n{principal_id or ''}"] = own
        if self.overall_rate_limit is not None:
            limits["\nall"] = self.overall_rate_limit
        return limits


def is_pattern(name: str) -> bool:
    """Whether it stands for several tools, as ``files.move*`` does."""
    return "*" in name or "?" in name or "[" in name


def for_tool(values: Mapping[str, T], name: str) -> T | None:
    """What is given for a tool: under its name, else under the longest pattern that its name fits."""
    if (exact := values.get(name)) is not None:
        return exact
    fitting = [key for key in values if is_pattern(key) and fnmatchcase(name, key)]
    return values[max(fitting, key=len)] if fitting else None


def _bucket(name: str, limit: RateLimit, principal_id: str | None) -> str:
    return name if limit.per == "tool" or principal_id is None else f"{name}\n{principal_id}"

"""The rules every call is held to. Data: who enforces them is the execution room."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from journeyman.core.data import Entity
from journeyman.core.risk import APPROVAL_CONFIDENCE, RiskLevel

MOST_SECONDS = 10 * 365 * 24 * 3600.0
"""Ten years: longer than any rule needs, and no date or timer overflows."""

Seconds = Annotated[float, Field(le=MOST_SECONDS, allow_inf_nan=False)]


class RateLimit(Entity):
    """At most so many calls in so many seconds, together or for each principal."""

    calls: int = Field(gt=0)
    seconds: Seconds = Field(default=60.0, gt=0)
    per: Literal["tool", "principal"] = "tool"
    """Whether all principals share it. Categories are limited in the same way as tools."""
    burst: float = Field(default=1.0, ge=1, le=100, allow_inf_nan=False)
    """How many times ``calls`` may come at once after a quiet time. On average it is never more than ``calls``."""

    @property
    def capacity(self) -> float:
        """What a full bucket, and a new one, holds."""
        return self.calls * self.burst

    def take(self, tokens: float, since: float, now: float) -> tuple[float, float, float]:
        """Take one token from a bucket that held ``tokens`` at ``since``.

        Buckets refill evenly, up to ``capacity``. Returns the tokens left, the time they are counted at, and 0 if a
        token was taken, else the seconds until there is one.
        """
        rate = self.calls / self.seconds
        now = max(now, since)  # another process's clock may be ahead: then no time has passed
        tokens = min(self.capacity, tokens + (now - since) * rate)
        if tokens >= 1.0 - 1e-9:  # rounding must not make a caller that has waited wait again
            return tokens - 1.0, now, 0.0
        return tokens, now, (1.0 - tokens) / rate


class BreakerRule(Entity):
    """After so many failures in a row a tool is not called for a while; then a few calls try it out.

    When all of these succeed, the tool is called as before; when one fails, it rests again.
    """

    failures: int = Field(default=5, gt=0)
    rest_seconds: Seconds = Field(default=60.0, gt=0)
    probes: int = Field(default=3, gt=0)


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
        found: dict[str, RateLimit] = {}
        if self.rate_limits and (limit := self.rate_limits.get(tool_name)) is not None:
            found[_bucket(tool_name, limit, principal_id)] = limit
        if self.category_rate_limits and (limit := self.category_rate_limits.get(category)) is not None:
            found[_bucket(f"\ncategory\n{category}", limit, principal_id)] = limit
        if self.principal_rate_limit is not None or self.principal_rate_limits:
            own = self.principal_rate_limits.get(principal_id or "", self.principal_rate_limit)
            if own is not None:
                found[f"\nprincipal\n{principal_id or ''}"] = own
        if self.overall_rate_limit is not None:
            found["\nall"] = self.overall_rate_limit
        return found

    @property
    def inline_bytes(self) -> int:
        """How large a result may be that stays in its record: a model must be able to see all it may see."""
        return max(self.max_inline_bytes, 4 * self.max_result_chars)


def _bucket(name: str, limit: RateLimit, principal_id: str | None) -> str:
    return name if limit.per == "tool" or principal_id is None else f"{name}\n{principal_id}"

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
    """At most so many calls in so many seconds, for a tool or for each principal using it."""

    calls: int = Field(gt=0)
    seconds: Seconds = Field(default=60.0, gt=0)
    per: Literal["tool", "principal"] = "tool"

    def take(self, tokens: float, since: float, now: float) -> tuple[float, float, float]:
        """Take one token from a bucket that held ``tokens`` at ``since``; a new bucket holds ``calls``.

        Buckets refill evenly: bursts up to ``calls``, never more on average. Returns the tokens left, the time they
        are counted at, and 0 if a token was taken, else the seconds until there is one.
        """
        rate = self.calls / self.seconds
        now = max(now, since)  # another process's clock may be ahead: then no time has passed
        tokens = min(float(self.calls), tokens + (now - since) * rate)
        if tokens >= 1.0 - 1e-9:  # rounding must not make a caller that has waited wait again
            return tokens - 1.0, now, 0.0
        return tokens, now, (1.0 - tokens) / rate


class BreakerRule(Entity):
    """After so many failures in a row a tool rests for a while, then one call tries it out."""

    failures: int = Field(default=5, gt=0)
    rest_seconds: Seconds = Field(default=30.0, gt=0)


class Policy(Entity):
    """What may run, how often, how long, and who must agree."""

    default_risk: RiskLevel = RiskLevel.IRREVERSIBLE
    """For a tool that declares nothing and whose name is not known."""
    risks: dict[str, RiskLevel] = Field(default_factory=dict)
    """The operator's word on single tools; wins over what a tool declares."""
    approval_confidence: float = Field(default=APPROVAL_CONFIDENCE, ge=0, le=1)
    approval_seconds: Seconds = Field(default=300.0, gt=0)
    rate_limits: dict[str, RateLimit] = Field(default_factory=dict)
    breaker: BreakerRule | None = BreakerRule()
    wait_seconds: Seconds = Field(default=30.0, ge=0)
    """How long a call may wait for its turn under a rate limit, over and above its own timeouts."""
    retry_backoff_seconds: Seconds = Field(default=0.25, ge=0)
    """Before the second attempt; doubles with each further one."""
    max_argument_bytes: int = Field(default=1_000_000, gt=0)
    max_result_chars: int = Field(default=20_000, ge=200)
    """What a model sees of one result; the record keeps the whole."""
    max_offered_tools: int | None = Field(default=128, gt=0)
    """How many tools a model is told of; where there are more, those that fit the task best. Providers refuse more."""
    capture_content: bool = False
    """Whether logs and spans may carry arguments and results."""

"""A circuit breaker in this process. A shared one implements the same protocol over a store."""

from __future__ import annotations

from dataclasses import dataclass

from journeyman.core.policy import BreakerRule
from journeyman.core.protocols import Clock


@dataclass(slots=True)
class _Health:
    failures: int = 0
    open_until: float | None = None


class LocalBreaker:
    """Counts failures in a row; once open, lets one call through per rest to see whether the tool is back."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._tools: dict[str, _Health] = {}

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        health = self._tools.get(tool_name)
        if health is None or health.open_until is None:
            return 0.0
        now = self._clock.monotonic()
        if now < health.open_until:
            return health.open_until - now
        # This call is the probe; others keep waiting until it has reported.
        health.open_until = now + rule.rest_seconds
        return 0.0

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        if healthy:
            self._tools.pop(tool_name, None)
            return
        health = self._tools.setdefault(tool_name, _Health())
        health.failures += 1
        if health.failures >= rule.failures:
            health.open_until = self._clock.monotonic() + rule.rest_seconds

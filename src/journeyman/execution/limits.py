"""Rate limits, circuit breaker and result cache of one process. Stores have shared ones behind the same protocols."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.core.protocols import Clock


class TokenBuckets:
    """One token bucket a key, full at first."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    async def take(self, key: str, limit: RateLimit) -> float:
        now = self._clock.monotonic()
        tokens, since = self._buckets.get(key, (float(limit.calls), now))
        tokens, since, wait = limit.take(tokens, since, now)
        self._buckets[key] = (tokens, since)
        return wait


@dataclass(slots=True)
class _Health:
    failures: int = 0
    open_until: float | None = None


class LocalBreaker:
    """Opens after failures in a row; then lets one probe through per ``rest_seconds``."""

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
        # This call is the probe; others stay blocked until it has reported.
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


MISS = object()


class ResultCache:
    """Results of read-only tools that opted in; least recently used entries are evicted first.

    Values are kept as JSON, so that a caller who changes one changes its copy only.
    """

    def __init__(self, *, clock: Clock, entries: int = 1_000) -> None:
        self._clock = clock
        self._max_entries = entries
        self._entries: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def get(self, key: str) -> Any:
        """The value, or ``MISS``."""
        entry = self._entries.get(key)
        if entry is None:
            return MISS
        expires_at, data = entry
        if self._clock.monotonic() >= expires_at:
            del self._entries[key]
            return MISS
        self._entries.move_to_end(key)
        return from_json(data)

    def put(self, key: str, value: Any, *, seconds: float) -> None:
        self._entries[key] = (self._clock.monotonic() + seconds, to_json(value))
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

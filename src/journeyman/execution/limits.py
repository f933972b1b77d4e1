"""Rate limits, circuit breaker and result cache of one process. Stores have shared ones behind the same protocols."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.core.protocols import Clock


class TokenBuckets:
    """Token buckets by name, full at first, and the pauses of tools."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._pauses: dict[str, float] = {}

    async def take(self, tool_name: str, limits: Mapping[str, RateLimit]) -> float:
        now, longest = self._clock.monotonic(), 0.0
        if self._pauses and (until := self._pauses.get(tool_name)) is not None:
            if now < until:
                return until - now
            del self._pauses[tool_name]
        taken: dict[str, tuple[float, float]] = {}
        for name, limit in limits.items():
            tokens, since = self._buckets.get(name, (limit.capacity, now))
            tokens, since, wait = limit.take(tokens, since, now)
            taken[name], longest = (tokens, since), max(longest, wait)
        if not longest:
            self._buckets.update(taken)
        return longest

    async def pause(self, tool_name: str, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        self._pauses[tool_name] = max(until, self._pauses.get(tool_name, until))


@dataclass(slots=True)
class _Health:
    failures: int = 0
    open_until: float | None = None
    admitted: int = 0
    passed: int = 0


class LocalBreaker:
    """Opens after failures in a row; after ``rest_seconds`` lets some probes through, and closes when all succeed."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._tools: dict[str, _Health] = {}

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        health = self._tools.get(tool_name)
        if health is None or health.open_until is None:
            return 0.0
        now = self._clock.monotonic()
        if now >= health.open_until:
            # Probes that have not reported after another rest, never will.
            health.open_until, health.admitted, health.passed = now + rule.rest_seconds, 0, 0
        elif not 0 < health.admitted < rule.probes:
            return health.open_until - now
        health.admitted += 1
        return 0.0

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        if healthy:
            health = self._tools.get(tool_name)
            if health is not None and health.open_until is not None:
                health.passed += health.admitted > 0  # a call from before it opened proves nothing
                if health.passed < rule.probes:
                    return
            self._tools.pop(tool_name, None)
            return
        health = self._tools.setdefault(tool_name, _Health())
        health.failures += 1
        if health.failures >= rule.failures:
            health.open_until = self._clock.monotonic() + rule.rest_seconds
            health.admitted = health.passed = 0


MISS = object()


class ResultCache:
    """Results of read-only tools that opted in; least recently used entries are evicted first.

    Neither their number nor all of them together grow without bound; what would take up much of it is not kept.

    Values are kept as JSON, so that a caller who changes one changes its copy only.
    """

    def __init__(self, *, clock: Clock, entries: int = 1_000, max_bytes: int = 64_000_000) -> None:
        self._clock = clock
        self._max_entries = entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def get(self, key: str) -> Any:
        """The value, or ``MISS``."""
        entry = self._entries.get(key)
        if entry is None:
            return MISS
        expires_at, data = entry
        if self._clock.monotonic() >= expires_at:
            self._drop(key)
            return MISS
        self._entries.move_to_end(key)
        return from_json(data)

    def put(self, key: str, value: Any, *, seconds: float, size: int = 0) -> None:
        """Keep a value, unless its ``size`` says that it would take the place of too many others."""
        self._drop(key)
        if size > self._max_bytes // 8:
            return
        data = to_json(value)
        self._entries[key] = (self._clock.monotonic() + seconds, data)
        self._bytes += len(data)
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: str) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._bytes -= len(entry[1])

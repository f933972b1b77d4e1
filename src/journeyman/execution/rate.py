"""Token buckets in this process. Shared ones implement the same protocol over a store."""

from __future__ import annotations

from journeyman.core.policy import RateLimit
from journeyman.core.protocols import Clock


class TokenBuckets:
    """One bucket a key, full at first, refilled evenly: bursts up to the limit, never more on average."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    async def take(self, key: str, limit: RateLimit) -> float:
        now = self._clock.monotonic()
        rate = limit.calls / limit.seconds
        tokens, since = self._buckets.get(key, (float(limit.calls), now))
        tokens = min(float(limit.calls), tokens + (now - since) * rate)
        if tokens >= 1.0 - 1e-9:
            self._buckets[key] = (tokens - 1.0, now)
            return 0.0
        self._buckets[key] = (tokens, now)
        return (1.0 - tokens) / rate

"""How often Slack may be called: its own limits for each method, and the pauses that it asks for.

Counted by workspace where all processes on one store see it: bots and tools in several of them share what Slack allows.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from types import MappingProxyType

from journeyman.core.errors import StoreError
from journeyman.core.policy import RateLimit
from journeyman.core.protocols import Clock, RateLimiter, SystemClock

_TIER_1, _TIER_3, _TIER_4 = (RateLimit(calls=calls) for calls in (1, 50, 100))
METHODS: Mapping[str, RateLimit] = MappingProxyType(
    {
        "apps.connections.open": _TIER_1,
        "auth.test": _TIER_4,
        "chat.postEphemeral": _TIER_4,
        # In one channel: one a second, and a few more now and then.
        "chat.postMessage": RateLimit(calls=1, seconds=1, burst=5),
        "chat.update": _TIER_3,
        "conversations.history": _TIER_3,
        "conversations.info": _TIER_3,
        "conversations.members": _TIER_4,
        "conversations.replies": _TIER_3,
    }
)
"""What Slack allows of each method that is used here, in one workspace: most belong to tiers of 1, 20, 50 or 100 calls
a minute."""
IN_ONE_CHANNEL = frozenset({"chat.postMessage"})
"""Methods that are limited for each channel alone."""
LONGEST_SLEEP = 5.0
"""Another process may find that Slack wants no pause any more; and a clock may be wrong."""


class Pace:
    """Lets calls through as Slack's limits allow; ``limits`` are others, by method, and one without any is not held up.

    What Slack itself asks for (``Retry-After``) holds in any case.
    """

    def __init__(
        self, limiter: RateLimiter, *, limits: Mapping[str, RateLimit] = METHODS, clock: Clock | None = None
    ) -> None:
        self._limiter = limiter
        self._limits = limits
        self._clock = clock or SystemClock()
        self._turns: dict[str, asyncio.Lock] = {}
        """One of those that wait for the same looks at the store, and the others stand behind it."""
        self._short: set[str] = set()
        """What somebody waits for, who goes first."""

    async def turn(self, team: str, method: str, channel: str = "") -> None:
        """Wait until a method may be called, in the order in which this process asks."""
        bucket = self._bucket(team, method, channel)
        async with self._turns.setdefault(bucket, asyncio.Lock()):
            try:
                while (wait := await self._take(team, method, bucket)) > 0:
                    self._short.add(bucket)
                    await self._clock.sleep(min(wait, LONGEST_SLEEP))
            finally:
                self._short.discard(bucket)

    async def room(self, team: str, method: str, channel: str = "") -> float:
        """0 when a method may be called right now, which then counts as called; else the seconds to wait at least."""
        bucket = self._bucket(team, method, channel)
        return 1.0 if bucket in self._short else await self._take(team, method, bucket)

    async def _take(self, team: str, method: str, bucket: str) -> float:
        limits = {bucket: self._limits[method]} if method in self._limits else {}
        try:
            return await self._limiter.take(_name(team, method), limits)
        except StoreError:
            return 0.0  # Slack itself says when it is too much

    async def pause(self, team: str, method: str, seconds: float) -> None:
        """Slack wants no call of a method for so long."""
        with contextlib.suppress(StoreError):
            await self._limiter.pause(_name(team, method), seconds)

    def _bucket(self, team: str, method: str, channel: str) -> str:
        name = _name(team, method)
        return f"{name}:{channel}" if method in IN_ONE_CHANNEL else name


def _name(team: str, method: str) -> str:
    return f"slack:{team}:{method}"


def retry_after(value: str | None) -> float:
    """The seconds of a ``Retry-After`` header; half a minute where it says none."""
    return float(value) if value is not None and value.isdigit() else 30.0

"""Rate limits and circuit breakers that all processes on one database share. They go by the database's clock.

What a process remembers of them is in its own monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pydantic_core import from_json, to_json

from journeyman.core.policy import BreakerRule, BreakerState, RateLimit, Taken
from journeyman.core.protocols import Clock
from journeyman.stores.connection import Connection
from journeyman.stores.database import Aggregate, Database, writes

FRESH_SECONDS = 1.0
"""How long a process may go by what it last read of the breakers and of the pauses.

Nearly always there is none, and a read for every call would cost more than the call.
"""


class _Remembering(Aggregate):
    """Reads anew what it remembers of the database when that is no longer fresh."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock
        self._fresh_until = float("-inf")

    async def _refresh(self) -> None:
        now = self._clock.monotonic()
        if now >= self._fresh_until:
            # Before the read: calls that come meanwhile go by what is known.
            self._fresh_until = now + FRESH_SECONDS
            await self._read()

    async def _read(self) -> None:
        raise NotImplementedError


class SqlBuckets(_Remembering):
    """Which calls were let through, by the names of their limits, and the pauses of tools."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        super().__init__(database, clock=clock)
        self._pauses: dict[str, float] = {}
        """Until when tools are not called, in this process's monotonic seconds."""

    async def take(self, tool_name: str, limits: Mapping[str, RateLimit]) -> float:
        await self._refresh()
        now = self._clock.monotonic()
        if (until := self._pauses.get(tool_name, now)) > now:
            return until - now
        if not limits:
            return 0.0
        return await self._take(limits)

    @writes(sync=False)
    def _take(self, connection: Connection, limits: Mapping[str, RateLimit]) -> float:
        left: dict[str, Taken] = {}
        longest = now = 0.0
        for name, limit in sorted(limits.items()):  # in one order everywhere, or two processes wait for each other
            # An update that changes nothing, but locks the row until this transaction ends.
            [(taken, now)] = connection.query(
                "INSERT INTO buckets (bucket, tokens, since) VALUES (?, 0, @now) "
                "ON CONFLICT (bucket) DO UPDATE SET bucket = excluded.bucket RETURNING taken, @now",
                name,
            )
            left[name], wait = limit.take(from_json(taken or "[]"), now)
            longest = max(longest, wait)
        if not longest:
            for name, calls in left.items():
                written = to_json(calls).decode()
                connection.execute("UPDATE buckets SET taken = ?, since = ? WHERE bucket = ?", written, now, name)
        return longest

    async def pause(self, tool_name: str, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        self._pauses[tool_name] = max(until, self._pauses.get(tool_name, until))
        await self._pause(tool_name, seconds)

    @writes(sync=False)
    def _pause(self, connection: Connection, tool_name: str, seconds: float) -> None:
        connection.execute(
            "INSERT INTO pauses (tool_name, until) VALUES (?, @now + ?) "
            "ON CONFLICT (tool_name) DO UPDATE SET until = "
            "CASE WHEN excluded.until > pauses.until THEN excluded.until ELSE pauses.until END",
            *(tool_name, seconds),
        )

    async def _read(self) -> None:
        rows = await self._query("SELECT tool_name, until - @now FROM pauses WHERE until > @now")
        self._pauses = {name: self._clock.monotonic() + left for name, left in rows}


_HEALTH = "failures, open_until, admitted, passed"


class SqlBreaker(_Remembering):
    """How tools fare over all processes."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        super().__init__(database, clock=clock)
        self._ailing: dict[str, BreakerState] = {}
        """Tools with failures, in this process's monotonic seconds."""

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        await self._refresh()
        health = self._ailing.get(tool_name)
        if health is None or health.open_until is None:
            return 0.0
        return rule.wait(health, self._clock.monotonic()) or await self._change(tool_name, rule.admit)

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        if healthy:
            await self._refresh()
        if not healthy or tool_name in self._ailing:
            await self._change(tool_name, partial(rule.note, healthy=healthy))

    async def _read(self) -> None:
        rows = await self._query(f"SELECT tool_name, @now, {_HEALTH} FROM breakers")
        self._ailing = {}
        for name, now, *values in rows:
            self._remember(name, BreakerState(*values), now)

    async def _change(self, tool_name: str, change: Callable[[BreakerState, float], float]) -> float:
        """What a rule says of a tool, and makes of how it fares."""
        said, health, now = await self._write(tool_name, change)
        self._remember(tool_name, health, now)
        return said

    @writes(sync=False)
    def _write(
        self, connection: Connection, tool_name: str, change: Callable[[BreakerState, float], float]
    ) -> tuple[float, BreakerState, float]:
        # An update that changes nothing, but locks the row until this transaction ends.
        [(now, *values)] = connection.query(
            "INSERT INTO breakers (tool_name, failures) VALUES (?, 0) ON CONFLICT (tool_name) DO UPDATE "
            f"SET failures = breakers.failures RETURNING @now, {_HEALTH}",
            tool_name,
        )
        health = BreakerState(*values)
        said = change(health, now)
        if health.failures:
            sql = f"UPDATE breakers SET ({_HEALTH}) = (?, ?, ?, ?) WHERE tool_name = ?"
            connection.execute(sql, health.failures, health.open_until, health.admitted, health.passed, tool_name)
        else:
            connection.execute("DELETE FROM breakers WHERE tool_name = ?", tool_name)
        return said, health, now

    def _remember(self, tool_name: str, health: BreakerState, now: float) -> None:
        if health.open_until is not None:
            health.open_until += self._clock.monotonic() - now
        self._ailing[tool_name] = health
        if not health.failures:
            del self._ailing[tool_name]

"""Rate limits and circuit breakers that all processes on one database share. They go by wall-clock time."""

from __future__ import annotations

from functools import partial

from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.core.protocols import Clock
from journeyman.stores.connection import Connection
from journeyman.stores.database import Database

FRESH_SECONDS = 1.0
"""How long a process may go by what it last read of the breakers.

Nearly always none is open, and a read for every call would cost more than the call.
"""


class SqlBuckets:
    """One token bucket a key, full at first."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def take(self, key: str, limit: RateLimit) -> float:
        return await self._database.write(partial(_take, key=key, limit=limit, now=self._clock.time()), sync=False)


def _take(connection: Connection, *, key: str, limit: RateLimit, now: float) -> float:
    # An update that changes nothing, but locks the row until this transaction ends.
    [(tokens, since)] = connection.query(
        "INSERT INTO buckets (bucket, tokens, since) VALUES (?, ?, ?) "
        "ON CONFLICT (bucket) DO UPDATE SET bucket = excluded.bucket RETURNING tokens, since",
        *(key, float(limit.calls), now),
    )
    left, counted_at, wait = limit.take(tokens, since, now)
    connection.execute("UPDATE buckets SET tokens = ?, since = ? WHERE bucket = ?", left, counted_at, key)
    return wait


class SqlBreaker:
    """Counts failures in a row over all processes; once open, lets one call through per rest to try the tool out."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._ailing: dict[str, float | None] = {}
        """Tools with failures, and until when they rest."""
        self._fresh_until = float("-inf")

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        await self._refresh()
        open_until = self._ailing.get(tool_name)
        if open_until is None:
            return 0.0
        now = self._clock.time()
        if now < open_until:
            return open_until - now
        until, probing = await self._database.write(
            partial(_probe, tool_name=tool_name, now=now, until=now + rule.rest_seconds), sync=False
        )
        self._ailing[tool_name] = until
        return 0.0 if probing or until is None else max(0.0, until - now)

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        if not healthy:
            self._ailing[tool_name] = await self._database.write(
                partial(_failed, tool_name=tool_name, rule=rule, now=self._clock.time()), sync=False
            )
            return
        await self._refresh()
        if tool_name in self._ailing:
            await self._database.write(
                lambda connection: connection.execute("DELETE FROM breakers WHERE tool_name = ?", tool_name),
                sync=False,
            )
            self._ailing.pop(tool_name, None)

    async def _refresh(self) -> None:
        now = self._clock.monotonic()
        if now < self._fresh_until:
            return
        # Before the read: calls that come meanwhile go by what is known.
        self._fresh_until = now + FRESH_SECONDS
        rows = await self._database.read(
            lambda connection: connection.query("SELECT tool_name, open_until FROM breakers")
        )
        self._ailing = dict(rows)


def _probe(connection: Connection, *, tool_name: str, now: float, until: float) -> tuple[float | None, bool]:
    """Until when the tool rests, and whether the caller is the one to try it out."""
    if connection.execute(
        "UPDATE breakers SET open_until = ? WHERE tool_name = ? AND open_until <= ?", until, tool_name, now
    ):
        return until, True
    rows = connection.query("SELECT open_until FROM breakers WHERE tool_name = ?", tool_name)
    return (rows[0][0] if rows else None), False


def _failed(connection: Connection, *, tool_name: str, rule: BreakerRule, now: float) -> float | None:
    [(failures, open_until)] = connection.query(
        "INSERT INTO breakers (tool_name, failures) VALUES (?, 1) "
        "ON CONFLICT (tool_name) DO UPDATE SET failures = breakers.failures + 1 RETURNING failures, open_until",
        tool_name,
    )
    if failures < rule.failures:
        return None if open_until is None else float(open_until)
    until = now + rule.rest_seconds
    connection.execute("UPDATE breakers SET open_until = ? WHERE tool_name = ?", until, tool_name)
    return until

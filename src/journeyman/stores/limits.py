"""Rate limits and circuit breakers that all processes on one database share. They go by wall-clock time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.core.protocols import Clock
from journeyman.stores.connection import Connection
from journeyman.stores.database import Database

FRESH_SECONDS = 1.0
"""How long a process may go by what it last read of the breakers and of the pauses.

Nearly always there is none, and a read for every call would cost more than the call.
"""


class SqlBuckets:
    """Token buckets by name, full at first, and the pauses of tools."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._pauses: dict[str, float] = {}
        self._fresh_until = float("-inf")

    async def take(self, tool_name: str, limits: Mapping[str, RateLimit]) -> float:
        await self._refresh()
        now = self._clock.time()
        if (until := self._pauses.get(tool_name, now)) > now:
            return until - now
        if not limits:
            return 0.0
        return await self._database.write(partial(_take, limits=limits, now=now), sync=False)

    async def pause(self, tool_name: str, seconds: float) -> None:
        until = self._clock.time() + seconds
        self._pauses[tool_name] = max(until, self._pauses.get(tool_name, until))
        await self._database.write(partial(_pause, tool_name=tool_name, until=until), sync=False)

    async def _refresh(self) -> None:
        now = self._clock.monotonic()
        if now < self._fresh_until:
            return
        # Before the read: calls that come meanwhile go by what is known.
        self._fresh_until = now + FRESH_SECONDS
        rows = await self._database.read(
            lambda connection: connection.query(
                "SELECT tool_name, until FROM pauses WHERE until > ?", self._clock.time()
            )
        )
        self._pauses = dict(rows)


def _take(connection: Connection, *, limits: Mapping[str, RateLimit], now: float) -> float:
    left: dict[str, tuple[float, float]] = {}
    longest = 0.0
    for name, limit in sorted(limits.items()):  # in one order everywhere, or two processes wait for each other
        # An update that changes nothing, but locks the row until this transaction ends.
        [(tokens, since)] = connection.query(
            "INSERT INTO buckets (bucket, tokens, since) VALUES (?, ?, ?) "
            "ON CONFLICT (bucket) DO UPDATE SET bucket = excluded.bucket RETURNING tokens, since",
            *(name, limit.capacity, now),
        )
        tokens, since, wait = limit.take(tokens, since, now)
        left[name], longest = (tokens, since), max(longest, wait)
    if not longest:
        for name, (tokens, since) in left.items():
            connection.execute("UPDATE buckets SET tokens = ?, since = ? WHERE bucket = ?", tokens, since, name)
    return longest


def _pause(connection: Connection, *, tool_name: str, until: float) -> None:
    connection.execute(
        "INSERT INTO pauses (tool_name, until) VALUES (?, ?) ON CONFLICT (tool_name) DO UPDATE SET until = "
        "CASE WHEN excluded.until > pauses.until THEN excluded.until ELSE pauses.until END",
        *(tool_name, until),
    )


class SqlBreaker:
    """Counts failures in a row over all processes; once open, lets some calls through per rest to try the tool out."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._ailing: dict[str, tuple[float | None, int]] = {}
        """Tools with failures: until when they rest, and how many calls try them out meanwhile."""
        self._fresh_until = float("-inf")

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        await self._refresh()
        open_until, admitted = self._ailing.get(tool_name, (None, 0))
        if open_until is None:
            return 0.0
        now = self._clock.time()
        if now < open_until and not 0 < admitted < rule.probes:
            return open_until - now
        until, admitted, probing = await self._database.write(
            partial(_probe, tool_name=tool_name, rule=rule, now=now), sync=False
        )
        self._ailing[tool_name] = until, admitted
        return 0.0 if probing or until is None else max(0.0, until - now)

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        if not healthy:
            until = await self._database.write(
                partial(_failed, tool_name=tool_name, rule=rule, now=self._clock.time()), sync=False
            )
            self._ailing[tool_name] = until, 0
            return
        await self._refresh()
        if tool_name in self._ailing and await self._database.write(
            partial(_passed, tool_name=tool_name, rule=rule), sync=False
        ):
            self._ailing.pop(tool_name, None)

    async def _refresh(self) -> None:
        now = self._clock.monotonic()
        if now < self._fresh_until:
            return
        # Before the read: calls that come meanwhile go by what is known.
        self._fresh_until = now + FRESH_SECONDS
        rows = await self._database.read(
            lambda connection: connection.query("SELECT tool_name, open_until, admitted FROM breakers")
        )
        self._ailing = {name: (open_until, admitted) for name, open_until, admitted in rows}


def _probe(connection: Connection, *, tool_name: str, rule: BreakerRule, now: float) -> tuple[float | None, int, bool]:
    """Until when the tool rests, how many calls try it out, and whether the caller's is one of them."""
    until = now + rule.rest_seconds
    # Probes that have not reported after another rest, never will.
    if connection.execute(
        "UPDATE breakers SET open_until = ?, admitted = 1, passed = 0 WHERE tool_name = ? AND open_until <= ?",
        *(until, tool_name, now),
    ):
        return until, 1, True
    probing = connection.execute(
        "UPDATE breakers SET admitted = admitted + 1 WHERE tool_name = ? AND admitted > 0 AND admitted < ?",
        *(tool_name, rule.probes),
    )
    rows = connection.query("SELECT open_until, admitted FROM breakers WHERE tool_name = ?", tool_name)
    return (*(rows[0] if rows else (None, 0)), bool(probing))


def _passed(connection: Connection, *, tool_name: str, rule: BreakerRule) -> bool:
    """Note a success; True when the tool's failures are forgotten."""
    # A call from before it opened proves nothing.
    connection.execute("UPDATE breakers SET passed = passed + 1 WHERE tool_name = ? AND admitted > 0", tool_name)
    return bool(
        connection.execute(
            "DELETE FROM breakers WHERE tool_name = ? AND (open_until IS NULL OR passed >= ?)", tool_name, rule.probes
        )
    )


def _failed(connection: Connection, *, tool_name: str, rule: BreakerRule, now: float) -> float | None:
    [(failures, open_until)] = connection.query(
        "INSERT INTO breakers (tool_name, failures) VALUES (?, 1) "
        "ON CONFLICT (tool_name) DO UPDATE SET failures = breakers.failures + 1 RETURNING failures, open_until",
        tool_name,
    )
    if failures < rule.failures:
        return None if open_until is None else float(open_until)
    until = now + rule.rest_seconds
    connection.execute(
        "UPDATE breakers SET open_until = ?, admitted = 0, passed = 0 WHERE tool_name = ?", until, tool_name
    )
    return until

"""Rate limits and circuit breakers that all processes on one database share. They go by the database's clock.

What a process remembers of them is in its own monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pydantic_core import from_json, to_json

from journeyman.core.policy import BreakerRule, RateLimit, Taken
from journeyman.core.protocols import Clock
from journeyman.stores.connection import Connection
from journeyman.stores.database import Aggregate, Database

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
        return await self._database.write(partial(_take, limits=limits), sync=False)

    async def pause(self, tool_name: str, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        self._pauses[tool_name] = max(until, self._pauses.get(tool_name, until))
        await self._database.write(partial(_pause, tool_name=tool_name, seconds=seconds), sync=False)

    async def _read(self) -> None:
        rows = await self._query(
            lambda connection: (
                f"SELECT tool_name, until - {connection.clock} FROM pauses WHERE until > {connection.clock}"
            )
        )
        self._pauses = {name: self._clock.monotonic() + left for name, left in rows}


def _take(connection: Connection, *, limits: Mapping[str, RateLimit]) -> float:
    left: dict[str, Taken] = {}
    longest = now = 0.0
    for name, limit in sorted(limits.items()):  # in one order everywhere, or two processes wait for each other
        # An update that changes nothing, but locks the row until this transaction ends.
        [(taken, now)] = connection.query(
            f"INSERT INTO buckets (bucket, tokens, since) VALUES (?, 0, {connection.clock}) "
            f"ON CONFLICT (bucket) DO UPDATE SET bucket = excluded.bucket RETURNING taken, {connection.clock}",
            name,
        )
        left[name], wait = limit.take(from_json(taken or "[]"), now)
        longest = max(longest, wait)
    if not longest:
        for name, calls in left.items():
            written = to_json(calls).decode()
            connection.execute("UPDATE buckets SET taken = ?, since = ? WHERE bucket = ?", written, now, name)
    return longest


def _pause(connection: Connection, *, tool_name: str, seconds: float) -> None:
    connection.execute(
        f"INSERT INTO pauses (tool_name, until) VALUES (?, {connection.clock} + ?) "
        "ON CONFLICT (tool_name) DO UPDATE SET until = "
        "CASE WHEN excluded.until > pauses.until THEN excluded.until ELSE pauses.until END",
        *(tool_name, seconds),
    )


class SqlBreaker(_Remembering):
    """Counts failures in a row over all processes; once open, lets some calls through per rest to try the tool out."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        super().__init__(database, clock=clock)
        self._ailing: dict[str, tuple[float | None, int]] = {}
        """Tools with failures: until when they rest, in this process's monotonic seconds, and how many calls try them
        out meanwhile."""

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        await self._refresh()
        open_until, admitted = self._ailing.get(tool_name, (None, 0))
        if open_until is None:
            return 0.0
        now = self._clock.monotonic()
        if now < open_until and not 0 < admitted < rule.probes:
            return open_until - now
        left, admitted, probing = await self._database.write(
            partial(_probe, tool_name=tool_name, rule=rule), sync=False
        )
        self._remember(tool_name, left, admitted)
        return 0.0 if probing or left is None else max(0.0, left)

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        if not healthy:
            left = await self._database.write(partial(_failed, tool_name=tool_name, rule=rule), sync=False)
            self._remember(tool_name, left, 0)
            return
        await self._refresh()
        if tool_name in self._ailing and await self._database.write(
            partial(_passed, tool_name=tool_name, rule=rule), sync=False
        ):
            self._ailing.pop(tool_name, None)

    async def _read(self) -> None:
        rows = await self._query(
            lambda connection: f"SELECT tool_name, open_until - {connection.clock}, admitted FROM breakers"
        )
        self._ailing = {}
        for name, left, admitted in rows:
            self._remember(name, left, admitted)

    def _remember(self, tool_name: str, left: float | None, admitted: int) -> None:
        self._ailing[tool_name] = None if left is None else self._clock.monotonic() + left, admitted


def _probe(connection: Connection, *, tool_name: str, rule: BreakerRule) -> tuple[float | None, int, bool]:
    """For how long the tool rests, how many calls try it out, and whether the caller's is one of them."""
    now = connection.clock
    # Probes that have not reported after another rest, never will.
    if connection.execute(
        f"UPDATE breakers SET open_until = {now} + ?, admitted = 1, passed = 0 "
        f"WHERE tool_name = ? AND open_until <= {now}",
        *(rule.rest_seconds, tool_name),
    ):
        return rule.rest_seconds, 1, True
    probing = connection.execute(
        "UPDATE breakers SET admitted = admitted + 1 WHERE tool_name = ? AND admitted > 0 AND admitted < ?",
        *(tool_name, rule.probes),
    )
    rows = connection.query(f"SELECT open_until - {now}, admitted FROM breakers WHERE tool_name = ?", tool_name)
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


def _failed(connection: Connection, *, tool_name: str, rule: BreakerRule) -> float | None:
    """For how long the tool rests now, if it does."""
    now = connection.clock
    [(failures, left)] = connection.query(
        "INSERT INTO breakers (tool_name, failures) VALUES (?, 1) ON CONFLICT (tool_name) DO UPDATE "
        f"SET failures = breakers.failures + 1 RETURNING failures, open_until - {now}",
        tool_name,
    )
    if failures < rule.failures:
        return None if left is None else float(left)
    connection.execute(
        f"UPDATE breakers SET open_until = {now} + ?, admitted = 0, passed = 0 WHERE tool_name = ?",
        *(rule.rest_seconds, tool_name),
    )
    return rule.rest_seconds

"""Leases: what one process at a time may do, who does it, and until when by the database's clock.

One table for all of them: working on a run, reading with a cursor, showing the runs of Slack. Each taking begins a new
epoch, which whoever writes under a lease has to name: a process that has lost it, and does not know yet, is refused.

Also requests that clients may send again, and the runs that answer them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from journeyman.core.storing import LONGEST_LEASE, Lease, NotedRequest, checked_lease
from journeyman.stores.connection import Connection, Row, columns, entities, marks
from journeyman.stores.database import Aggregate

Kind: TypeAlias = Literal["run", "cursor", "duty"]

_STALE_AFTER = 2 * LONGEST_LEASE
"""A lease that ends later than that was not given by the clock as it is now: it was set back since."""


class Taken(NamedTuple):
    """A lease that its owner has now."""

    epoch: int
    taken_from: str | None
    """Who had it before; None where it was given back."""
    taken_until: float
    """Until when they had it."""


def take(
    connection: Connection,
    kind: Kind,
    name: str,
    *,
    owner: str,
    seconds: float,
    dead: Collection[str] = (),
    only: tuple[str, Sequence[Any]] = ("SELECT 1", ()),
) -> Taken | None:
    """Take a lease that nobody has, that is over, or that the taker itself or somebody ``dead`` has; else None.

    ``only`` is a SELECT, with its values, that has a row where the lease may be taken at all.
    """
    takeable = (owner, *dead)
    select, values = only
    rows = connection.query(
        "INSERT INTO leases (kind, name, epoch, owner, until) "
        f"SELECT CAST(? AS TEXT), CAST(? AS TEXT), 1, CAST(? AS TEXT), {connection.clock} + ? WHERE EXISTS ({select}) "
        "ON CONFLICT (kind, name) DO UPDATE SET epoch = leases.epoch + 1, taken_from = leases.owner, "
        "taken_until = leases.until, owner = excluded.owner, until = excluded.until "
        f"WHERE {free(connection, 'leases', takeable)} RETURNING epoch, taken_from, COALESCE(taken_until, 0)",
        *(kind, name, owner, checked_lease(seconds), *values, *takeable),
    )
    return Taken(*rows[0]) if rows else None


def free(connection: Connection, table: str, takeable: Sequence[str] = ()) -> str:
    """The condition that nobody has a lease, or one of these does; wants their names."""
    now = connection.clock
    condition = f"{table}.owner IS NULL OR {table}.until <= {now} OR {table}.until > {now} + {_STALE_AFTER}"
    if takeable:
        condition += f" OR {table}.owner IN ({marks(takeable)})"
    return f"({condition})"


def renew(connection: Connection, kind: Kind, *, owner: str, seconds: float, returning: str) -> Sequence[Row]:
    """Prolong all leases of one kind that an owner has, whatever the time; ``returning`` is SQL for each of them."""
    return connection.query(
        f"UPDATE leases SET until = {connection.clock} + ? WHERE kind = ? AND owner = ? RETURNING {returning}",
        *(checked_lease(seconds), kind, owner),
    )


def release(connection: Connection, kind: Kind, name: str, *, epoch: int) -> bool:
    """Give a lease back; False where it was taken by somebody since."""
    sql = "UPDATE leases SET owner = NULL, until = 0 WHERE kind = ? AND name = ? AND epoch = ?"
    return connection.execute(sql, kind, name, epoch) == 1


def end(connection: Connection, kind: Kind, name: str, *, epoch: int) -> None:
    """Forget a lease that nobody will take again."""
    connection.execute("DELETE FROM leases WHERE kind = ? AND name = ? AND epoch = ?", kind, name, epoch)


class SqlLeases(Aggregate):
    """Duties: leases of which nothing else is stored."""

    async def take(self, name: str, *, owner: str, lease_seconds: float, dead: Collection[str] = ()) -> Lease:
        """Take a duty, or keep it for so much longer, unless another process has it that is not ``dead``.

        Returns who has it now. Leases begin and end by the database's clock.
        """
        return await self._database.write(
            partial(_take_duty, name=name, owner=owner, seconds=lease_seconds, dead=dead), sync=False
        )

    async def release(self, name: str, *, epoch: int) -> None:
        """Give a duty back, if it is still the one of this epoch."""
        await self._database.write(lambda connection: release(connection, "duty", name, epoch=epoch), sync=False)


def _take_duty(connection: Connection, *, name: str, owner: str, seconds: float, dead: Collection[str]) -> Lease:
    take(connection, "duty", name, owner=owner, seconds=seconds, dead=dead)
    [row] = connection.query("SELECT owner, epoch FROM leases WHERE kind = 'duty' AND name = ?", name)
    return Lease(owner=row[0], epoch=row[1])


KEPT_SECONDS = 2 * 24 * 3600.0
"""Longer than any client goes on trying."""
UNANSWERED_SECONDS = 60 * 24 * 3600.0
"""How long one is kept whose client was told to ask again: longer than people take to decide."""

_NEVER = 1e18
"""Later than any request."""


class SqlIdempotency(Aggregate):
    """Requests in a database, by digest."""

    async def note(self, request: NotedRequest, *, unless_since: float | None = None) -> NotedRequest:
        """Note a request, unless the same was noted since then; returns the one that counts."""
        return await self._database.write(partial(_note, request=request, unless_since=unless_since), sync=False)

    async def find(self, digest: str) -> NotedRequest | None:
        sql = f"SELECT {columns(NotedRequest)} FROM idempotency WHERE digest = ?"
        rows = await self._query(sql, digest)
        return entities(NotedRequest, rows)[0] if rows else None

    async def mark(self, digest: str, run_id: str, *, unanswered: bool) -> None:
        """Say whether its client still has an answer to come, if this run is still the one that gives it."""
        sql = "UPDATE idempotency SET unanswered = ? WHERE digest = ? AND run_id = ?"
        await self._database.write(lambda connection: connection.execute(sql, int(unanswered), digest, run_id))

    async def forget(self, digest: str, run_id: str) -> None:
        """Its client has its answer, and would mean another request by the same words."""
        sql = "DELETE FROM idempotency WHERE digest = ? AND run_id = ?"
        await self._database.write(lambda connection: connection.execute(sql, digest, run_id), sync=False)


def _note(connection: Connection, *, request: NotedRequest, unless_since: float | None) -> NotedRequest:
    now = connection.clock  # a process whose clock is ahead would forget what others are asked again
    connection.execute(
        f"DELETE FROM idempotency WHERE asked_at < {now} - ? AND (unanswered = 0 OR asked_at < {now} - ?)",
        *(KEPT_SECONDS, UNANSWERED_SECONDS),
    )
    # Of requests that come at once, only the first is new: the update waits for whoever writes the same row.
    connection.execute(
        f"INSERT INTO idempotency ({columns(NotedRequest)}) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
        "run_id = excluded.run_id, asked_at = excluded.asked_at, unanswered = excluded.unanswered "
        "WHERE idempotency.asked_at < ?",
        *(
            request.digest,
            request.run_id,
            request.asked_at,
            int(request.unanswered),
            _NEVER if unless_since is None else unless_since,
        ),
    )
    sql = f"SELECT {columns(NotedRequest)} FROM idempotency WHERE digest = ?"
    return entities(NotedRequest, connection.query(sql, request.digest))[0]

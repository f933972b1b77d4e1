"""Requests that clients may send again, and the runs that answer them."""

from __future__ import annotations

from functools import partial

from journeyman.core.storing import NotedRequest
from journeyman.stores.connection import Connection, columns, entities
from journeyman.stores.database import Database

KEPT_SECONDS = 2 * 24 * 3600.0
"""Longer than any client goes on trying."""
UNANSWERED_SECONDS = 60 * 24 * 3600.0
"""How long one is kept whose client was told to ask again: longer than people take to decide."""

_NEVER = 1e18
"""Later than any request."""


class SqlRequests:
    """Requests in a database, by digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, request: NotedRequest, *, unless_since: float | None = None) -> NotedRequest:
        return await self._database.write(partial(_note, request=request, unless_since=unless_since), sync=False)

    async def find(self, digest: str) -> NotedRequest | None:
        sql = f"SELECT {columns(NotedRequest)} FROM requests WHERE digest = ?"
        rows = await self._database.read(lambda connection: connection.query(sql, digest))
        return entities(NotedRequest, rows)[0] if rows else None

    async def mark(self, digest: str, run_id: str, *, unanswered: bool) -> None:
        sql = "UPDATE requests SET unanswered = ? WHERE digest = ? AND run_id = ?"
        await self._database.write(lambda connection: connection.execute(sql, int(unanswered), digest, run_id))

    async def forget(self, digest: str, run_id: str) -> None:
        sql = "DELETE FROM requests WHERE digest = ? AND run_id = ?"
        await self._database.write(lambda connection: connection.execute(sql, digest, run_id), sync=False)


def _note(connection: Connection, *, request: NotedRequest, unless_since: float | None) -> NotedRequest:
    connection.execute(
        "DELETE FROM requests WHERE asked_at < ? AND (unanswered = 0 OR asked_at < ?)",
        *(request.asked_at - KEPT_SECONDS, request.asked_at - UNANSWERED_SECONDS),
    )
    # Of requests that come at once, only the first is new: the update waits for whoever writes the same row.
    connection.execute(
        f"INSERT INTO requests ({columns(NotedRequest)}) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
        "run_id = excluded.run_id, asked_at = excluded.asked_at, unanswered = excluded.unanswered "
        "WHERE requests.asked_at < ?",
        *(
            request.digest,
            request.run_id,
            request.asked_at,
            int(request.unanswered),
            _NEVER if unless_since is None else unless_since,
        ),
    )
    sql = f"SELECT {columns(NotedRequest)} FROM requests WHERE digest = ?"
    return entities(NotedRequest, connection.query(sql, request.digest))[0]

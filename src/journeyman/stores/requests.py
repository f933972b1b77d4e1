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


class SqlRequests:
    """Requests in a database, by digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(self, request: NotedRequest) -> None:
        await self._database.write(partial(_note, request=request), sync=False)

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


def _note(connection: Connection, *, request: NotedRequest) -> None:
    connection.execute(
        "DELETE FROM requests WHERE asked_at < ? AND (unanswered = 0 OR asked_at < ?)",
        *(request.asked_at - KEPT_SECONDS, request.asked_at - UNANSWERED_SECONDS),
    )
    connection.execute(
        f"INSERT INTO requests ({columns(NotedRequest)}) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
        "run_id = excluded.run_id, asked_at = excluded.asked_at, unanswered = excluded.unanswered",
        *(request.digest, request.run_id, request.asked_at, int(request.unanswered)),
    )

"""Which programs are at work on this database, and the format version that all of them can read."""

from __future__ import annotations

from functools import partial

from journeyman.core.data import FORMAT
from journeyman.stores.connection import Connection
from journeyman.stores.database import Database


class SqlPrograms:
    """Programs in a database. Each announces itself again and again; one that stops is forgotten after a while."""

    def __init__(self, database: Database, *, format: int = FORMAT) -> None:
        self._database = database
        self._own = format

    async def announce(self, owner: str, *, now: float, alive_since: float) -> int:
        """Say that this program is at work; returns the lowest format version of those that are."""
        return await self._database.write(
            partial(_announce, owner=owner, format=self._own, now=now, alive_since=alive_since), sync=False
        )

    async def leave(self, owner: str) -> None:
        await self._database.write(
            lambda connection: connection.execute("DELETE FROM programs WHERE owner = ?", owner), sync=False
        )


def _announce(connection: Connection, *, owner: str, format: int, now: float, alive_since: float) -> int:
    connection.execute(
        "INSERT INTO programs (owner, format, seen_at) VALUES (?, ?, ?) "
        "ON CONFLICT (owner) DO UPDATE SET format = excluded.format, seen_at = excluded.seen_at",
        *(owner, format, now),
    )
    connection.execute("DELETE FROM programs WHERE seen_at < ?", alive_since)
    [(lowest,)] = connection.query("SELECT MIN(format) FROM programs")
    return int(lowest)

"""Which programs are at work on this database, and the format version that all of them can read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from journeyman.core.data import FORMAT
from journeyman.stores.connection import Connection
from journeyman.stores.database import Database
from journeyman.stores.reports import heard_of


class SqlPrograms:
    """Programs in a database. Each announces itself again and again; one that stops is forgotten after a while."""

    def __init__(self, database: Database, *, format: int = FORMAT) -> None:
        self._database = database
        self._own = format

    async def announce(self, owner: str, *, silent_seconds: float, executes: bool = True) -> int:
        """Say that this program is at work; returns the lowest format version of those that are.

        One that was silent for so long is not. All by the database's clock.
        """
        row = (owner, self._own, int(executes))
        return await self._database.write(partial(_announce, row=row, silent_seconds=silent_seconds), sync=False)

    async def executing(self, *, silent_seconds: float) -> Sequence[str]:
        return await self._database.read(partial(_executing, silent_seconds=silent_seconds))

    async def leave(self, owner: str) -> None:
        await self._database.write(partial(_leave, owner=owner), sync=False)


def _leave(connection: Connection, *, owner: str) -> None:
    heard_of(connection, owner)
    connection.execute("DELETE FROM programs WHERE owner = ?", owner)
    # Nor has it anything left to report.
    connection.execute("DELETE FROM former_owners WHERE owner = ?", owner)


def _executing(connection: Connection, *, silent_seconds: float) -> tuple[str, ...]:
    sql = f"SELECT owner FROM programs WHERE executes = 1 AND seen_at >= {connection.clock} - ?"
    return tuple(owner for (owner,) in connection.query(sql, silent_seconds))


def _announce(connection: Connection, *, row: tuple[str, int, int], silent_seconds: float) -> int:
    now, owner = connection.clock, row[0]
    heard_of(connection, owner)
    connection.execute(
        f"INSERT INTO programs (owner, format, executes, seen_at) VALUES (?, ?, ?, {now}) "
        "ON CONFLICT (owner) DO UPDATE SET format = excluded.format, seen_at = excluded.seen_at",
        *row,
    )
    connection.execute(f"DELETE FROM programs WHERE owner <> ? AND seen_at < {now} - ?", owner, silent_seconds)
    [(lowest,)] = connection.query("SELECT MIN(format) FROM programs")
    return int(lowest)

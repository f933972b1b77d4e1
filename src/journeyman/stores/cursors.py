"""Cursors over ended runs: each reader sees every ended run once, in the order in which the ends were committed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from journeyman.core.errors import JournalConflictError
from journeyman.core.storing import CursorBatch, RunRow
from journeyman.stores.connection import Connection, columns, entities
from journeyman.stores.database import Database


class SqlCursors:
    """Cursors in a database. One process at a time holds a cursor; its lease and epoch work like a run's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take(self, name: str, *, owner: str, lease_seconds: float, limit: int = 100) -> CursorBatch | None:
        """The next ended runs, oldest first; None when there are none, or another process holds the cursor."""
        return await self._database.write(
            partial(_take, name=name, owner=owner, lease_seconds=lease_seconds, limit=limit)
        )

    async def advance(self, batch: CursorBatch, *, work: Callable[[Connection], None] | None = None) -> None:
        """Commit that a batch was read, together with what ``work`` writes to this database: both or neither.

        Raises JournalConflictError where another process has taken the cursor over; then nothing is written.
        """
        await self._database.write(partial(advance_cursor, batch=batch, work=work))


def number_end(connection: Connection, run_id: str) -> None:
    """Give a run that ends in this transaction its place among all ends.

    The update locks the counter until the commit, so numbers are visible in order: a reader that has seen one has seen
    all before it.
    """
    [(number,)] = connection.query("UPDATE run_ends SET number = number + 1 WHERE id = 1 RETURNING number")
    connection.execute("UPDATE runs SET end_number = ? WHERE id = ?", number, run_id)


def _take(connection: Connection, *, name: str, owner: str, lease_seconds: float, limit: int) -> CursorBatch | None:
    connection.execute(
        "INSERT INTO cursors (name, position, epoch, lease_until) VALUES (?, 0, 0, 0) ON CONFLICT (name) DO NOTHING",
        name,
    )
    rows = connection.query(
        f"UPDATE cursors SET epoch = epoch + 1, owner = ?, lease_until = {connection.clock} + ? "
        f"WHERE name = ? AND (owner IS NULL OR owner = ? OR lease_until <= {connection.clock}) "
        "RETURNING position, epoch",
        *(owner, lease_seconds, name, owner),
    )
    if not rows:
        return None
    [(position, epoch)] = rows
    found = connection.query(
        f"SELECT end_number, {columns(RunRow)} FROM runs WHERE end_number > ? ORDER BY end_number LIMIT ?",
        *(position, limit),
    )
    if not found:
        connection.execute("UPDATE cursors SET owner = NULL, lease_until = 0 WHERE name = ?", name)
        return None
    runs = entities(RunRow, (row[1:] for row in found))
    return CursorBatch(name=name, epoch=epoch, after=position, up_to=found[-1][0], runs=runs)


def advance_cursor(connection: Connection, *, batch: CursorBatch, work: Callable[[Connection], None] | None) -> None:
    moved = connection.execute(
        "UPDATE cursors SET position = ?, owner = NULL, lease_until = 0 WHERE name = ? AND epoch = ? AND position = ?",
        *(batch.up_to, batch.name, batch.epoch, batch.after),
    )
    if not moved:
        raise JournalConflictError(f"cursor {batch.name!r} was taken over by another process; read it again")
    if work is not None:
        work(connection)

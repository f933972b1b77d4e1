"""Signals (deltas, progress) on their way from the process that works on a run to those that show it.

They are rows for a moment, which readers poll: that works on SQLite, and through a connection pool that a notification
would not pass.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from journeyman.core.storing import SignalBatch
from journeyman.stores.connection import Connection, columns, entities
from journeyman.stores.database import Database


class SqlSignals:
    """Signals in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_until(self, run_id: str, until: float) -> None:
        sql = (
            "INSERT INTO signal_readers (run_id, reads_until) VALUES (?, ?) ON CONFLICT (run_id) DO UPDATE "
            "SET reads_until = excluded.reads_until WHERE signal_readers.reads_until < excluded.reads_until"
        )
        await self._database.write(lambda connection: connection.execute(sql, run_id, until), sync=False)

    async def readers(self, *, now: float) -> Collection[str]:
        sql = "SELECT run_id FROM signal_readers WHERE reads_until > ?"
        rows = await self._database.read(lambda connection: connection.query(sql, now))
        return {run_id for (run_id,) in rows}

    async def put(self, batches: Sequence[SignalBatch]) -> None:
        await self._database.write(partial(_put, batches=batches), sync=False)

    async def after(self, run_id: str, after_seq: int, number: int) -> Sequence[SignalBatch]:
        sql = f"""
            SELECT {columns(SignalBatch)} FROM signals
            WHERE run_id = ? AND (after_seq > ? OR (after_seq = ? AND number > ?)) ORDER BY after_seq, number
        """
        rows = await self._database.read(lambda connection: connection.query(sql, run_id, after_seq, after_seq, number))
        return entities(SignalBatch, rows)

    async def purge(self, *, before: float) -> None:
        await self._database.write(partial(_purge, before=before), sync=False)


def _put(connection: Connection, *, batches: Sequence[SignalBatch]) -> None:
    for batch in batches:
        # What came before an earlier fact is in that fact, or of no more use.
        connection.execute("DELETE FROM signals WHERE run_id = ? AND after_seq < ?", batch.run_id, batch.after_seq)
        connection.execute(
            f"INSERT INTO signals ({columns(SignalBatch)}) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (run_id, after_seq, number) DO NOTHING",
            *(batch.run_id, batch.after_seq, batch.number, batch.written_at, batch.content),
        )


def _purge(connection: Connection, *, before: float) -> None:
    connection.execute("DELETE FROM signals WHERE written_at < ?", before)
    connection.execute("DELETE FROM signal_readers WHERE reads_until < ?", before)

"""SQLite: one file in WAL mode. Only what is special about it; the SQL is in the aggregates."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from journeyman.stores.connection import Fault, Row, storable

BUSY_SECONDS = 1.0
"""How long SQLite itself waits for a lock before the writer looks at its own retry_seconds."""


class SqliteConnection:
    """One connection, with transactions under our own hand."""

    def __init__(self, path: str, *, writes: bool) -> None:
        # The thread that closes a connection is not always the one that used it.
        self._raw = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        try:
            self._raw.execute("PRAGMA journal_mode = WAL")
            self._raw.execute("PRAGMA foreign_keys = ON")
            self._raw.execute("PRAGMA synchronous = FULL")
            if not writes:
                self._raw.execute("PRAGMA query_only = ON")
        except sqlite3.Error:
            self._raw.close()
            raise
        self._synced = True

    def query(self, sql: str, *values: Any) -> Sequence[Row]:
        # To the last row: a write with RETURNING is not over before, and would hold up its commit.
        return self._run(sql, values).fetchall()

    def execute(self, sql: str, *values: Any) -> int:
        return self._run(sql, values).rowcount

    def _run(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        try:
            return self._raw.execute(sql, values)
        except UnicodeEncodeError:
            return self._raw.execute(sql, [storable(value) for value in values])

    def begin(self, *, sync: bool) -> None:
        if sync is not self._synced:
            # In WAL mode NORMAL leaves out the fsync of a commit and nothing else.
            self._raw.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self._synced = sync
        self._raw.execute("BEGIN IMMEDIATE")

    def begin_reading(self) -> None:
        self._raw.execute("BEGIN")

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def rollback(self) -> None:
        # A full disk ends the transaction by itself.
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")

    def close(self) -> None:
        self._raw.close()

    def lock(self, name: str) -> None:
        """Nothing to do: a transaction that writes is alone."""

    def lock_schema(self) -> None:
        """Nothing to do: a transaction that writes is alone."""


class SqliteDriver:
    """Connections to one file."""

    shared = False

    def __init__(self, path: str) -> None:
        self._path = path

    def connect(self, *, writes: bool) -> SqliteConnection:
        return SqliteConnection(self._path, writes=writes)

    def fault(self, error: Exception) -> Fault | None:
        if not isinstance(error, sqlite3.Error):
            return None
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                hint, passing, broken = "another process holds its lock: end that process, or wait for it", True, False
            case sqlite3.SQLITE_FULL:
                hint, passing, broken = "the disk is full: make room, what was committed is safe", False, False
            case sqlite3.SQLITE_IOERR:
                hint = "reading or writing failed: look at the disk, its quota and the limits of this process"
                passing, broken = False, True
            case sqlite3.SQLITE_CANTOPEN:
                hint = "the file cannot be opened: make its directory, and check who may write there"
                passing, broken = False, True
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                hint, passing, broken = "the file may not be written: check its permissions", False, True
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                hint, passing, broken = "the file is damaged or no database: put a backup in its place", False, True
            case _:
                return None
        return Fault(f"SQLite database {self._path!r}: {hint} ({error})", passing=passing, broken=broken)

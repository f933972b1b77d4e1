"""SQLite: one file in WAL mode. Only what is special about it; the SQL is in the aggregates."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from journeyman.stores.audit import AuditKeys
from journeyman.stores.connection import AtEnd, Fault, Row, storable

INCREMENTAL = 2
PAGES_AT_ONCE = 500
BUSY_SECONDS = 1.0
"""How long SQLite itself waits for a lock before the writer looks at its own retry_seconds."""


MOST_FOUND = 20
"""Damages that are told of one file."""

FileId: TypeAlias = tuple[int, int]
"""Device and inode: which file it is, whatever its name."""


class FileGoneError(sqlite3.OperationalError):
    """The file under the database's name is not the one that was opened: what is written now would be lost."""


class ReadOnlyError(sqlite3.OperationalError):
    """The file can be read here, and not be written."""


def can_only_be_read(path: str) -> bool:
    """Whether a database is there that cannot be written: on a read-only medium, or for want of permission.

    SQLite makes files beside it, so that the folder counts as well.
    """
    effective = os.access in os.supports_effective_ids
    return os.path.exists(path) and not all(
        os.access(name, os.W_OK, effective_ids=effective) for name in (path, os.path.dirname(path))
    )


def file_id(path: str) -> FileId | None:
    """None where there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class SqliteConnection:
    """One connection, with transactions under our own hand.

    ``check`` raises where the file has gone. It is asked before every transaction: SQLite itself goes on writing to a
    file that was deleted, and every commit succeeds.
    """

    dialect: Literal["sqlite", "postgresql"] = "sqlite"
    for_update = ""  # a transaction that writes is alone
    audit_keys: AuditKeys
    at_end: dict[AtEnd, list[Any]]
    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(
        self,
        path: str,
        *,
        writes: bool,
        create: bool = True,
        read_only: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._path, self._check = path, check
        self._log: FileId | None = None
        """The write-ahead log. SQLite keeps it as long as anybody has the database open."""
        if create:
            # What runs say is nobody else's business. SQLite gives its -wal and -shm files the mode of the database; a
            # file that is there keeps its own, which 'journeyman doctor' looks at. What fails here is told by SQLite.
            with suppress(OSError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        mode = "rwc" if create else "rw"
        if read_only:
            # With a write-ahead log beside it, only with that: it holds what was committed last.
            mode = "ro" if os.path.exists(f"{path}-wal") else "ro&immutable=1"
        self._raw = sqlite3.connect(
            f"file:{quote(path)}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,  # the thread that closes a connection is not always the one that used it
            cached_statements=256,
        )
        try:
            if writes and self._raw.execute("PRAGMA page_count").fetchone() == (0,):
                # It is made now: what is deleted later can be given back little by little.
                self._raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
            if not read_only:
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
        self._check()
        log = file_id(f"{self._path}-wal")
        if self._log is None:
            self._log = log
        elif log != self._log:
            raise FileGoneError(f"'{self._path}-wal' was deleted, moved or replaced")

    def begin_reading(self) -> None:
        self._check()
        self._raw.execute("BEGIN")

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def rollback(self) -> None:
        # A full disk ends the transaction by itself.
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")

    def close(self) -> None:
        self._raw.close()

    def abort(self) -> None:
        self._raw.interrupt()

    def lock(self, name: str) -> None:
        """Nothing to do: a transaction that writes is alone."""

    def lock_schema(self) -> None:
        """Nothing to do: a transaction that writes is alone."""


def check_file(path: str) -> Sequence[str]:
    """What SQLite finds wrong with a file, page by page; nothing where all is well."""
    mode = "ro&immutable=1" if can_only_be_read(path) and not os.path.exists(f"{path}-wal") else "ro"
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode={mode}", uri=True, timeout=BUSY_SECONDS)) as raw:
            found = [str(line) for (line,) in raw.execute(f"PRAGMA integrity_check({MOST_FOUND})")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if found == ["ok"] else found


class SqliteDriver:
    """Connections to one file: the one that was there when the first was made, or that it made."""

    shared = False
    pool_size = 5
    now: Callable[[], float] | None = None

    def __init__(self, path: str, *, audit_keys: AuditKeys | None = None) -> None:
        # Whole: the program may change its directory.
        self._path = os.path.abspath(path)
        self._file: FileId | None = None
        self.read_only = False
        self.audit_keys = audit_keys or AuditKeys(make_file=True)

    def connect(self, *, writes: bool) -> SqliteConnection:
        if self._file is not None:
            self._check()  # a new file in its place would be made, or taken for it
        else:
            self.read_only = can_only_be_read(self._path)
        if self.read_only and writes:
            raise ReadOnlyError(f"{self._path!r} or its folder may not be written")
        create = self._file is None and not self.read_only
        connection = SqliteConnection(
            self._path, writes=writes, create=create, read_only=self.read_only, check=self._check
        )
        self._file = self._file or file_id(self._path)
        return connection

    def _check(self) -> None:
        if file_id(self._path) != self._file:
            raise FileGoneError(f"{self._path!r} was deleted, moved or replaced")

    def file(self) -> Path:
        return Path(self._path)

    def size(self) -> int:
        return sum(file.stat().st_size for end in ("", "-wal") if (file := Path(f"{self._path}{end}")).exists())

    def shrink(self) -> None:
        with closing(sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)) as raw:
            [(mode,)] = raw.execute("PRAGMA auto_vacuum")
            if mode != INCREMENTAL:
                # Made by an earlier version: rewritten once, as a whole.
                raw.execute("PRAGMA auto_vacuum = INCREMENTAL")
                raw.execute("VACUUM")
            free = 1
            while free:
                raw.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
                before, [(free,)] = free, raw.execute("PRAGMA freelist_count").fetchall()
                if free == before:
                    break  # somebody else fills what we free
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def fault(self, error: Exception) -> Fault | None:
        if not isinstance(error, sqlite3.Error):
            return None
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:
            case _ if isinstance(error, FileGoneError):
                hint = "its file is not there any more: put it back as it was, or restart the program to use another"
                passing, broken = False, False
            case _ if isinstance(error, ReadOnlyError):
                hint = (
                    "it can only be read here: copy it, with its -wal file if it has one, to a folder of yours to work"
                )
                passing, broken = False, False
            case sqlite3.SQLITE_CANTOPEN if self.read_only:
                hint = "its -wal file cannot be read without a folder that can be written: copy both to one"
                passing, broken = False, True
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
                hint, passing, broken = "another process holds its lock: end that process, or wait for it", True, False
            case sqlite3.SQLITE_FULL:
                hint, passing, broken = "the disk is full: make room, what was committed is safe", False, False
            case sqlite3.SQLITE_IOERR:
                hint = "reading or writing failed: look at the disk, its quota and the limits of this process"
                passing, broken = False, True
            case sqlite3.SQLITE_CANTOPEN:
                hint = "the file cannot be opened: make its directory, and check who may write there"
                passing, broken = False, True
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                hint, passing, broken = "the file may not be written: check its permissions", False, True
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
                # Pages that nobody reads stay unnoticed: what can still be read of it is worth a copy.
                hint = (
                    "the file is damaged or no database: 'journeyman db check' says where; keep a copy of it, then "
                    "'journeyman db restore BACKUP' into a new store"
                )
                passing, broken = False, True
            case _ if isinstance(error, sqlite3.OperationalError) and "Could not decode" in str(error):
                hint, passing = "the file is damaged, a text in it is none: 'journeyman db restore BACKUP'", False
                broken = False
            case sqlite3.SQLITE_INTERRUPT | sqlite3.SQLITE_NOMEM | sqlite3.SQLITE_SCHEMA | sqlite3.SQLITE_ABORT:
                hint, passing, broken = "a statement was cut off: look at the memory of this machine", True, True
            case _ if isinstance(error, sqlite3.ProgrammingError) and "closed database" in str(error):
                hint, passing, broken = "it was closed", False, True
            case _:
                return None
        return Fault(f"SQLite database {self._path!r}: {hint} ({error})", passing=passing, broken=broken)

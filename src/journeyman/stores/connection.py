"""A connection to a database, in one thread.

Aggregates are plain functions over a ``Connection``, written once in SQL that SQLite and PostgreSQL both understand:
JSON as TEXT, times as DOUBLE PRECISION seconds, ``?`` for values. What differs between the two is in a ``Driver``.

And SQLite, one file in WAL mode: only what is special about it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar
from urllib.parse import quote

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from journeyman.core.data import FORMAT, Entity
from journeyman.core.policy import ANY_PRINCIPAL, PrincipalFilter

if TYPE_CHECKING:
    from journeyman.stores.audit import AuditKeys

E = TypeVar("E", bound=Entity)
Row: TypeAlias = tuple[Any, ...]
AtEnd: TypeAlias = Callable[["Connection", list[Any]], Any]

EVERY = 2**62
"""As a LIMIT: all rows."""
MOST_WORDS = 20
"""Of a text that is looked for; each is a condition of its own."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the database itself."""

    message: str
    passing: bool = False
    """Whether it may be over in a moment: a lock, a restart."""
    broken: bool = False
    """Whether the connection is of no further use."""


class Connection:
    """One connection in one thread, with transactions under our own hand. Values go in with ``?``."""

    audit_keys: AuditKeys
    """With which rows of the audit get their macs."""
    audit_shard: int | None = None
    """The chain of the audit that it writes to often; None where it writes alone."""
    for_update = ""
    """What a SELECT ends with that must lock its rows."""
    at_end: dict[AtEnd, list[Any]]
    """What is to be done last in the transaction, and with what: the place for a lock that everybody wants. So it is
    held for a short time, and nobody who has it waits for another."""

    dialect: Literal["sqlite", "postgresql"]
    """Whose SQL it takes, for the few statements that the two do not share."""
    each: str
    """SQL for ``@each``, which makes rows of the texts in a JSON array."""
    clock: str
    """SQL for ``@now``, the time by the database's own clock, which all its programs share: seconds since 1970.

    Whatever processes have to agree on goes by it: leases, expiry, retention, limits. What a process takes for the
    time only says when something happened there.
    """
    _raw: Any

    def query(self, sql: str, *values: Any) -> Sequence[Row]:
        """The rows of a SELECT, or of a write with RETURNING."""
        # To the last row: a write with RETURNING is not over before, and would hold up its commit.
        rows: Sequence[Row] = self._run(self._own(sql), values).fetchall()
        return rows

    def execute(self, sql: str, *values: Any) -> int:
        """Run a statement that gives no rows; returns how many it changed."""
        return int(self._run(self._own(sql), values).rowcount)

    def insert(self, into: str, rows: Sequence[Row], *, at_once: int, row: str | None = None) -> None:
        """Many rows with few statements: each is a way to the server and back. ``row`` is how one is written."""
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            values = ", ".join([row or f"({marks(some[0])})"] * len(some))
            self.execute(f"INSERT INTO {into} VALUES {values}", *(value for each in some for value in each))

    def put(self, table: str, row: Mapping[str, Any], *, key: str = "", replaced: Iterable[str] = ()) -> int:
        """Add a row, given by its columns; returns how many were written.

        Where there is one with the same ``key``, that one stays, but for the columns that are ``replaced``.
        """
        return self.execute(_put_sql(table, tuple(row), key, tuple(replaced)), *row.values())

    def _own(self, sql: str) -> str:
        return sql.replace("@now", self.clock).replace("@each", self.each) if "@" in sql else sql

    def _run(self, sql: str, values: Sequence[Any]) -> Any:
        raise NotImplementedError

    def begin(self, *, sync: bool) -> None:
        """Start a transaction that writes. With ``sync`` its commit survives power loss."""
        raise NotImplementedError

    def begin_reading(self) -> None:
        """Start a transaction that sees one unchanging state of the database."""
        raise NotImplementedError

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def rollback(self) -> None:
        self._raw.execute("ROLLBACK")

    def close(self) -> None:
        self._raw.close()

    def abort(self) -> None:
        """From any thread: end the statement under way, with an error in its own thread."""
        raise NotImplementedError

    def lock(self, name: str) -> None:
        """Let nobody else hold the lock of this name until the transaction ends. One that writes may be alone."""

    def lock_schema(self) -> None:
        """Let nobody else change the schema until the transaction ends."""


class Driver:
    """What is different from one database to the next."""

    shared = False
    """Whether several processes are expected to work on it at once."""
    pool_size = 5
    """How many connections one process may have."""
    read_only = False
    """Whether it can be read here and not be written, as the first connection has found."""
    now: Callable[[], float] | None = None
    """What tells the time instead of the database's clock: tests move it. None otherwise."""

    def __init__(self, name: str, audit_keys: AuditKeys) -> None:
        self.name = name
        """For messages."""
        self.audit_keys = audit_keys

    def connect(self, *, writes: bool) -> Connection:
        raise NotImplementedError

    def size(self) -> int:
        """How many bytes the database takes up on its disk."""
        raise NotImplementedError

    def shrink(self) -> None:
        """Give back the room of what was deleted, in small steps where that can be done."""
        raise NotImplementedError

    def file(self) -> Path | None:
        """The file it is in; None for one on a server."""
        return None

    def fault(self, error: Exception) -> Fault | None:
        """What an exception says about the database; None when it is not the database's fault."""
        if (fault := self._fault(error)) is None:
            return None
        return replace(fault, message=f"{self.name}: {fault.message} ({str(error).strip()})")

    def _fault(self, error: Exception) -> Fault | None:
        raise NotImplementedError


def entities(kind: type[E], rows: Iterable[Row]) -> tuple[E, ...]:
    """Rows whose columns are an entity's fields, in order, as those entities."""
    names = tuple(kind.model_fields)
    return tuple(kind.model_validate(dict(zip(names, row, strict=True))) for row in rows)


def columns(kind: type[Entity]) -> str:
    """An entity's fields as the columns of a SELECT."""
    return ", ".join(kind.model_fields)


def marks(values: Sequence[Any]) -> str:
    """``?, ?, ?``: as many as there are values."""
    return ", ".join("?" * len(values))


@lru_cache
def _put_sql(table: str, names: Sequence[str], key: str, replaced: Sequence[str]) -> str:
    sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks(names)})"
    if key:
        changes = ", ".join(f"{name} = excluded.{name}" for name in replaced)
        sql += f" ON CONFLICT ({key}) DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}"
    return sql


class Where:
    """What holds for rows that are wanted. A value that is None asks for nothing."""

    def __init__(self) -> None:
        self.tests: list[str] = []
        self.values: list[Any] = []

    @property
    def clause(self) -> str:
        return f"WHERE {' AND '.join(self.tests)}" if self.tests else ""

    def holds(self, test: str, *values: Any) -> Self:
        self.tests.append(test)
        self.values += values
        return self

    def equals(self, **columns: Any) -> Self:
        for column, value in columns.items():
            if value is not None:
                self.holds(f"{column} = ?", value)
        return self

    def of(self, principal_id: PrincipalFilter) -> Self:
        """Those of one principal; None is nobody."""
        if principal_id is None:
            return self.holds("principal_id IS NULL")
        return self if principal_id is ANY_PRINCIPAL else self.equals(principal_id=principal_id)

    def within(self, column: str, since: float | None, until: float | None = None) -> Self:
        """From the one on, and before the other."""
        for sign, time in ((">=", since), ("<", until)):
            if time is not None:
                self.holds(f"{column} {sign} ?", time)
        return self

    def words(self, column: str, text: str) -> Self:
        """Each word of a text occurs in a column of casefolded text."""
        for test, word in each_word(column, text):
            self.holds(test, word)
        return self

    def after(self, table: str, order: str, row_id: str | None, *, newest_first: bool = False) -> Self:
        """What comes after the row of this id in a list that goes by these columns."""
        if row_id is None:
            return self
        return self.holds(
            f"({order}) {'<' if newest_first else '>'} (SELECT {order} FROM {table} WHERE id = ?)", row_id
        )


def is_among(column: str) -> str:
    """The condition that a column has one of many texts, which are given together as a JSON array."""
    return f"{column} IN (SELECT value FROM @each(?))"


_FORMAT = f'{{"format":{FORMAT}'


_LITERALLY = str.maketrans({special: f"!{special}" for special in "!%_"})


def each_word(column: str, text: str) -> list[tuple[str, str]]:
    """A condition for each word of a text that is looked for in a column of casefolded text, and its value."""
    words = list(dict.fromkeys(text.casefold().split()))[:MOST_WORDS]
    return [(f"{column} LIKE ? ESCAPE '!'", f"%{word.translate(_LITERALLY)}%") for word in words]


def json_text(data: BaseModel) -> str:
    """Data as JSON text that every database takes, with the version of its format. ``Entity.stored`` reads it."""
    try:
        # What ``model_dump_json`` calls: to pass it its fifteen defaults takes as long as a small fact.
        text = data.__pydantic_serializer__.to_json(data).decode()
    except PydanticSerializationError:
        # Models write halves of characters, for which UTF-8 has no place.
        text = json.dumps(data.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))
        text = text.encode("utf-8", "replace").decode()
    return f"{_FORMAT},{text[1:]}" if text != "{}" else f"{_FORMAT}}}"


def json_text_over(before: str, data: BaseModel) -> str:
    """The text of data that takes the place of an earlier text. Fields that a newer version put there stay."""
    kept: dict[str, Any] = {
        name: value
        for name, value in json.loads(before).items()
        if name != "format" and name not in type(data).model_fields and name not in type(data).model_computed_fields
    }
    text = json_text(data)
    return f"{text[:-1]},{json.dumps(kept, ensure_ascii=False)[1:]}" if kept else text


def storable(value: Any) -> Any:
    """Text without what no database takes: halves of characters and NUL."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


# --- SQLite

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

    fault = Fault("its file is not there any more: put it back as it was, or restart the program to use another")


class ReadOnlyError(sqlite3.OperationalError):
    """The file can be read here, and not be written."""

    fault = Fault("it can only be read here: copy it, with its -wal file if it has one, to a folder of yours to work")


_NO_LOG = Fault("its -wal file cannot be read without a folder that can be written: copy both to one", broken=True)
_FAULTS: dict[int, Fault] = {
    **dict.fromkeys(
        (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL),
        Fault("another process holds its lock: end that process, or wait for it", passing=True),
    ),
    sqlite3.SQLITE_FULL: Fault("the disk is full: make room, what was committed is safe"),
    sqlite3.SQLITE_IOERR: Fault(
        "reading or writing failed: look at the disk, its quota and the limits of this process", broken=True
    ),
    sqlite3.SQLITE_CANTOPEN: Fault(
        "the file cannot be opened: make its directory, and check who may write there", broken=True
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
        Fault("the file may not be written: check its permissions", broken=True),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT),
        # Pages that nobody reads stay unnoticed: what can still be read of it is worth a copy.
        Fault(
            "the file is damaged or no database: 'journeyman db check' says where; keep a copy of it, then "
            "'journeyman db restore BACKUP' into a new store",
            broken=True,
        ),
    ),
    **dict.fromkeys(
        (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ABORT),
        Fault("a statement was cut off: look at the memory of this machine", passing=True, broken=True),
    ),
}
_FAULTS_BY_WORDS = {
    "Could not decode": Fault("the file is damaged, a text in it is none: 'journeyman db restore BACKUP'"),
    "closed database": Fault("it was closed", broken=True),
}
"""Of errors of Python's own module, which have no code."""


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
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


class SqliteConnection(Connection):
    """A transaction that writes is alone, so there is nothing to lock.

    ``check`` raises where the file has gone. It is asked before every transaction: SQLite itself goes on writing to a
    file that was deleted, and every commit succeeds.
    """

    dialect = "sqlite"
    each = "json_each"
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

    def _run(self, sql: str, values: Sequence[Any]) -> Any:
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

    def rollback(self) -> None:
        # A full disk ends the transaction by itself.
        if self._raw.in_transaction:
            super().rollback()

    def abort(self) -> None:
        self._raw.interrupt()


def check_file(path: str) -> Sequence[str]:
    """What SQLite finds wrong with a file, page by page; nothing where all is well."""
    mode = "ro&immutable=1" if can_only_be_read(path) and not os.path.exists(f"{path}-wal") else "ro"
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode={mode}", uri=True, timeout=BUSY_SECONDS)) as raw:
            lines = [str(line) for (line,) in raw.execute(f"PRAGMA integrity_check({MOST_FOUND})")]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [] if lines == ["ok"] else lines


class SqliteDriver(Driver):
    """Connections to one file: the one that was there when the first was made, or that it made."""

    def __init__(self, path: str, *, audit_keys: AuditKeys | None = None) -> None:
        from journeyman.stores.audit import AuditKeys

        # Whole: the program may change its directory.
        self._path = os.path.abspath(path)
        self._file: FileId | None = None
        super().__init__(f"SQLite database {self._path!r}", audit_keys or AuditKeys(make_file=True))

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

    def _fault(self, error: Exception) -> Fault | None:
        if not isinstance(error, sqlite3.Error):
            return None
        if isinstance(error, FileGoneError | ReadOnlyError):
            return error.fault
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CANTOPEN and self.read_only:
            return _NO_LOG
        by_words = (fault for words, fault in _FAULTS_BY_WORDS.items() if words in str(error))
        return _FAULTS.get(code) or next(by_words, None)

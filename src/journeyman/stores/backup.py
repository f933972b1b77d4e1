"""A whole store in one file, and back. The file is an SQLite database with the same schema, whatever the store is on.

So a backup can be looked at like any store, restored on the other kind of database, and read by any later version.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from journeyman.core.errors import ConfigurationError
from journeyman.stores import migrations
from journeyman.stores.connection import Connection, Row, SqliteConnection

ROWS_AT_ONCE = 100
NOT_CONTENT = frozenset({"schema_version", "programs"})
"""Tables that say something about the database itself, or about who works on it."""
ALWAYS_THERE = frozenset({"audit_head", "run_ends", "memory_head"})
"""Tables that have a row from the beginning."""
IDENTITY = "store_identity"
"""Has one, too. It is restored with the rest: what was confirmed is the store that the rows come from."""


# --- out of a store


def begin(path: Path) -> Path:
    """Where to write a backup before it gets its name. Nothing that is there is written over."""
    if path.exists():
        raise ConfigurationError(f"{str(path)!r} exists already; name a new file for the backup")
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    return part


def copy_rows(connection: Connection, path: Path) -> None:
    """Every row of a store on a server, as one transaction sees them, into a new file."""
    [(have,)] = connection.query("SELECT version FROM schema_version WHERE id = 1")
    if have > len(migrations.MIGRATIONS):
        raise ConfigurationError(
            f"the store has schema version {have}, this program knows up to {len(migrations.MIGRATIONS)}: "
            "make the backup with the program that works on it"
        )
    file = SqliteConnection(str(path), writes=True)
    try:
        file.begin(sync=True)
        migrations.upgrade(file, to=have)
        for table, columns in _tables(file).items():
            file.execute(f"DELETE FROM {table}")
            names = ", ".join(columns)
            connection.execute(f"DECLARE journeyman_rows NO SCROLL CURSOR FOR SELECT {names} FROM {table}")
            while rows := connection.query(f"FETCH {ROWS_AT_ONCE} FROM journeyman_rows"):
                file.insert(f"{table} ({names})", rows, at_once=ROWS_AT_ONCE)
            connection.execute("CLOSE journeyman_rows")
        file.commit()
    finally:
        file.close()


def copy_file(source: Path, path: Path) -> None:
    """A store in a file, as it is at one moment; whoever works on it goes on."""
    # Closing a connection by hand: sqlite3's own context manager only commits.
    with closing(sqlite3.connect(source)) as whole, closing(sqlite3.connect(path)) as copy:
        whole.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without others beside it


def finish(part: Path, path: Path) -> None:
    """Give a backup that is whole its name. It holds what people said: only its owner may read it."""
    part.chmod(0o600)
    with closing(sqlite3.connect(part)) as made:
        made.execute("PRAGMA journal_mode = DELETE")
        [(verdict,)] = made.execute("PRAGMA integrity_check")
        if verdict != "ok":
            raise ConfigurationError(f"the backup is damaged ({verdict}); the store may be, too")
    part.replace(path)


# --- and back


class Backup:
    """A backup that is being read, brought up to the schema of this program in a copy."""

    def __init__(self, path: Path) -> None:
        with ExitStack() as opened:
            copy = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="journeyman-restore-")), "backup.db")
            try:
                os.close(os.open(copy, os.O_CREAT | os.O_WRONLY, 0o600))
                shutil.copyfile(path, copy)
                self._file = opened.enter_context(closing(SqliteConnection(str(copy), writes=True)))
                self._upgrade(path)
            except (OSError, sqlite3.Error) as error:
                raise ConfigurationError(f"{str(path)!r} cannot be read as a backup: {error}") from error
            self._opened = opened.pop_all()

    def _upgrade(self, path: Path) -> None:
        if not self._file.query("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'"):
            raise ConfigurationError(f"{str(path)!r} is no backup of a store: it has no schema version")
        self._file.begin(sync=False)
        migrations.upgrade(self._file)
        self._file.commit()

    def close(self) -> None:
        self._opened.close()

    def put_into(self, connection: Connection, *, replace: bool) -> int:
        """All rows, in the transaction under way; returns how many. Refuses a store that holds something.

        Whoever held a run when the backup was made does not hold this one: the runs go on with whoever takes them up.
        """
        tables = _tables(self._file)
        if not replace:
            _must_be_empty(connection, tables)
        for table in reversed(tables):
            connection.execute(f"DELETE FROM {table}")
        count = 0
        for table, columns in tables.items():
            for rows in self._rows(table, columns):
                connection.insert(f"{table} ({', '.join(columns)})", rows, at_once=ROWS_AT_ONCE)
                count += len(rows)
        connection.execute("UPDATE leases SET owner = NULL, until = 0, epoch = epoch + 1")
        connection.execute("UPDATE runs SET epoch = epoch + 1 WHERE ended_at IS NULL AND epoch > 0")
        return count

    def _rows(self, table: str, columns: Sequence[str]) -> Iterator[Sequence[Row]]:
        last = 0
        names = ", ".join(columns)
        sql = f"SELECT rowid, {names} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT {ROWS_AT_ONCE}"
        while rows := self._file.query(sql, last):
            yield [row[1:] for row in rows]
            last = rows[-1][0]


def _must_be_empty(connection: Connection, tables: dict[str, list[str]]) -> None:
    for table in tables:
        if table not in {*ALWAYS_THERE, IDENTITY} and connection.query(f"SELECT 1 FROM {table} LIMIT 1"):
            raise ConfigurationError(
                f"the store holds something already (in {table!r}): restore into an empty one, or say --replace to "
                "forget what is there"
            )
    for table in ALWAYS_THERE:
        if connection.query(f"SELECT 1 FROM {table} WHERE {'seq' if table == 'audit_head' else 'number'} > 0"):
            raise ConfigurationError("the store was used before: restore into a new one, or say --replace")


def _tables(file: SqliteConnection) -> dict[str, list[str]]:
    """Our tables with their columns, each after those it refers to."""
    tables = [name for (name,) in file.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    # Triggers keep the index of text, which has tables of its own.
    ours = [name for name in tables if not name.startswith(("sqlite_", "memory_text"))]
    names = [name for name in ours if name not in NOT_CONTENT]
    needs = {name: {row[2] for row in file.query(f"PRAGMA foreign_key_list({name})")} - {name} for name in names}
    ordered: list[str] = []
    while len(ordered) < len(names):
        ordered += [name for name in names if name not in ordered and needs[name] <= set(ordered)]
    return {name: [row[1] for row in file.query(f"PRAGMA table_info({name})")] for name in ordered}

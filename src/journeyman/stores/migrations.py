"""Bringing the schema up to date, and back. Its steps are in ``migrations.sql``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from journeyman.core.errors import ConfigurationError
from journeyman.core.words import packaged_text
from journeyman.stores.connection import Connection


class Statement(NamedTuple):
    """One piece of SQL, for both databases or ``only`` one of them."""

    sql: str
    only: str | None


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. ``down`` undoes ``up``, data included.

    Programs of an older version go on working on the database while it is upgraded. So a step only adds tables,
    indexes, and columns that may be left out. One that cannot keep to that is ``breaking``: programs that do not know
    it refuse the database.
    """

    name: str
    up: tuple[Statement, ...]
    down: tuple[Statement, ...]
    breaking: bool = False


def _read() -> Iterator[Migration]:
    _, *steps = packaged_text("journeyman.stores", "migrations.sql").split("\n--- step ")
    for step in steps:
        name, rest = step.split("\n", 1)
        about, up, down = re.split(r"\n--- (?:up|down)\n", f"\n{rest}")
        yield Migration(name, tuple(_statements(up)), tuple(_statements(down)), breaking="--- breaking" in about)


def _statements(text: str) -> Iterator[Statement]:
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        only = [line.removeprefix(_ONLY) for line in lines if line.startswith(_ONLY)]
        sql = "\n".join(line for line in lines if not line.startswith("--"))
        yield Statement(sql.removesuffix(";"), only[0] if only else None)


_ONLY = "--- only "
MIGRATIONS = tuple(_read())
"""Version N of the schema is the first N of these."""
_TELLS_OLDEST = 11
"""The version from which on the database says what the oldest program is that can work with it."""


def version(connection: Connection) -> int:
    """How many migrations the database has had. Makes the place where that is kept, if need be."""
    # Before anything else: two processes may be starting at once.
    connection.lock_schema()
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (id INTEGER PRIMARY KEY, version INTEGER NOT NULL)")
    rows = connection.query("SELECT version FROM schema_version WHERE id = 1")
    return int(rows[0][0]) if rows else 0


def upgrade(connection: Connection, *, to: int | None = None) -> int:
    """Bring the schema up to date, in the transaction under way; returns the version.

    ``to`` an earlier version only for a copy of a store that has it.
    """
    have, to = version(connection), len(MIGRATIONS) if to is None else to
    if have > len(MIGRATIONS):
        _must_be_known(connection, have)
        return have  # all that was added since can be left alone
    for migration in MIGRATIONS[have:to]:
        _execute(connection, migration.up)
    return _note(connection, max(have, to))


def must_be_readable(connection: Connection) -> None:
    """Raise where this program cannot read the schema as it is, of an SQLite database that cannot be written."""
    made = connection.query("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'")
    [(have,)] = connection.query("SELECT version FROM schema_version WHERE id = 1") if made else [(0,)]
    if have < len(MIGRATIONS):
        raise ConfigurationError(
            f"the database has schema version {have}, this program works with {len(MIGRATIONS)}, and the database can "
            "only be read here: copy it to a folder that can be written"
        )
    if have > len(MIGRATIONS):
        _must_be_known(connection, have)


def _must_be_known(connection: Connection, have: int) -> None:
    [(oldest,)] = connection.query("SELECT oldest FROM schema_version WHERE id = 1")
    if oldest is None or oldest > len(MIGRATIONS):
        raise ConfigurationError(
            f"the database has schema version {have}, this program knows up to {len(MIGRATIONS)}: "
            "update the program, or downgrade the database with the program that made it"
        )


def downgrade(connection: Connection, *, to: int) -> int:
    """Undo migrations, and lose what they hold, down to a version; returns it."""
    have = version(connection)
    if not 0 <= to <= have:
        raise ConfigurationError(f"cannot downgrade from schema version {have} to {to}: give a number from 0 to {have}")
    for migration in reversed(MIGRATIONS[to:have]):
        _execute(connection, migration.down)
    return _note(connection, to)


def _execute(connection: Connection, statements: Iterable[Statement]) -> None:
    for statement in statements:
        if statement.only in (None, connection.dialect):
            connection.execute(statement.sql)


def _note(connection: Connection, number: int) -> int:
    connection.execute(
        "INSERT INTO schema_version (id, version) VALUES (1, ?) "
        "ON CONFLICT (id) DO UPDATE SET version = excluded.version",
        number,
    )
    known = MIGRATIONS[:number]
    if number >= _TELLS_OLDEST:
        # The oldest program that can work with this schema: it must know the last breaking step.
        oldest = max((at for at, migration in enumerate(known, start=1) if migration.breaking), default=0)
        connection.execute("UPDATE schema_version SET oldest = ? WHERE id = 1", oldest)
    return number

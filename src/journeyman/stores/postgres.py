"""PostgreSQL through psycopg. Only what is special about it; the SQL is in the aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from journeyman.stores.connection import Fault, Row, storable

SCHEMA_LOCK = 0x6A6F7572
"""The key of the advisory lock under which the schema is changed."""
SESSION = (
    # Another worker that was stopped in the middle of a transaction must not hold up everybody else: the server gives
    # up on it before we give up on the lock it holds.
    "SET idle_in_transaction_session_timeout = '4s'; SET lock_timeout = '6s'; SET client_encoding = 'UTF8'"
)
CONNECTING: dict[str, str | int] = {
    "application_name": "journeyman",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Unless the URL says otherwise."""


@cache
def translated(sql: str) -> bytes:
    """Our placeholders as psycopg's. Every statement is a constant, so this stays small."""
    return sql.replace("%", "%%").replace("?", "%s").encode()


class PostgresConnection:
    """One connection, with transactions under our own hand."""

    def __init__(self, conninfo: str) -> None:
        self._raw = psycopg.connect(conninfo, autocommit=True)
        try:
            self._raw.execute(SESSION)
        except psycopg.Error:
            self._raw.close()
            raise
        self._cursor = self._raw.cursor()

    def query(self, sql: str, *values: Any) -> Sequence[Row]:
        self._run(sql, values)
        return self._cursor.fetchall()

    def execute(self, sql: str, *values: Any) -> int:
        self._run(sql, values)
        return self._cursor.rowcount

    def _run(self, sql: str, values: Sequence[Any]) -> None:
        try:
            self._cursor.execute(translated(sql), values or None)
        except (UnicodeEncodeError, psycopg.DataError) as error:
            # Both before anything was sent: the server has no say in what cannot be encoded.
            if isinstance(error, psycopg.DataError) and error.sqlstate is not None:
                raise
            self._cursor.execute(translated(sql), [storable(value) for value in values])

    def begin(self, *, sync: bool) -> None:
        self._raw.execute("BEGIN" if sync else "BEGIN; SET LOCAL synchronous_commit = off")

    def begin_reading(self) -> None:
        self._raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def rollback(self) -> None:
        self._raw.execute("ROLLBACK")

    def close(self) -> None:
        self._raw.close()

    def lock(self, name: str) -> None:
        self._raw.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))

    def lock_schema(self) -> None:
        self._raw.execute(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")


class PostgresDriver:
    """Connections to one database."""

    shared = True

    def __init__(self, url: str) -> None:
        given = conninfo_to_dict(url)
        self._conninfo = make_conninfo(url, **{key: value for key, value in CONNECTING.items() if key not in given})
        self._name = f"{given.get('host', 'localhost')}/{given.get('dbname', '')}"

    def connect(self, *, writes: bool) -> PostgresConnection:
        return PostgresConnection(self._conninfo)

    def fault(self, error: Exception) -> Fault | None:
        if not isinstance(error, psycopg.Error):
            return None
        state = error.sqlstate or ""
        passing, broken = False, False
        if state.startswith("40") or state == "55P03":
            hint, passing = "another process holds a lock: wait for it, or end it", True
        elif state == "53100":
            hint = "its disk is full: make room, what was committed is safe"
        elif (
            state.startswith(("08", "53", "57P"))
            or state in ("25P03", "25P04")
            or (not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError))
        ):
            hint, passing, broken = "no connection: check that the server runs and that the URL is right", True, True
        elif state.startswith(("28", "3D", "58")):
            hint, broken = "it cannot be used: check the URL's user, password and database, and the server's log", True
        else:
            return None
        # The name leaves out user and password.
        return Fault(
            f"PostgreSQL database {self._name!r}: {hint} ({str(error).strip()})", passing=passing, broken=broken
        )

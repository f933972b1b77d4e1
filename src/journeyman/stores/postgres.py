"""PostgreSQL through psycopg. Only what is special about it; the SQL is in the aggregates."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from journeyman.core.errors import ConfigurationError
from journeyman.stores.audit import SHARDS, AuditKeys
from journeyman.stores.connection import Connection, Driver, Fault, storable

SCHEMA_LOCK = 0x6A6F7572
"""The key of the advisory lock under which the schema is changed."""
TIMEOUTS = {
    # Another worker that was stopped in the middle of a transaction must not hold up everybody else: the server gives
    # up on it before we give up on the lock it holds.
    "idle_in_transaction_session_timeout": "4s",
    "lock_timeout": "6s",
}
SESSION = "; ".join(f"SET {name} = '{value}'" for name, value in TIMEOUTS.items())
LOCAL = "".join(f"; SET LOCAL {name} = '{value}'" for name, value in TIMEOUTS.items())
POOL_SIZE = 4
"""Connections of one process, unless the URL says ``pool_size=N``."""
CONNECTING: dict[str, str | int] = {
    "application_name": "journeyman",
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Unless the URL says otherwise."""


def conninfo(url: str) -> str:
    """How to connect, with what is not said in the URL."""
    given = conninfo_to_dict(url)
    return make_conninfo(url, **{key: value for key, value in CONNECTING.items() if key not in given})


@cache
def translated(sql: str) -> bytes:
    """Our placeholders as psycopg's. Every statement is a constant, so this stays small."""
    return sql.replace("%", "%%").replace("?", "%s").encode()


def split_pool_size(url: str) -> tuple[str, int]:
    """A URL without our own ``pool_size``, which libpq does not know, and how many connections it allows."""
    parts = urlsplit(url)
    given = parse_qsl(parts.query, keep_blank_values=True)
    sizes = [value for name, value in given if name == "pool_size"]
    if not sizes:
        return url, POOL_SIZE
    if not sizes[-1].isdecimal() or int(sizes[-1]) < 2:
        raise ConfigurationError(f"pool_size is a whole number from 2 on, not {sizes[-1]!r}")
    kept = [pair for pair in parts.query.split("&") if not pair.startswith("pool_size=")]
    return urlunsplit(parts._replace(query="&".join(kept))), int(sizes[-1])


def is_pooled(raw: psycopg.Connection[Any]) -> bool:
    """Whether a pooler stands between us and the server: then the process it tells us of is not the server's."""
    row = raw.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != raw.info.backend_pid


class PostgresConnection(Connection):
    """Behind a pooler (pgbouncer in transaction mode) each transaction may be on another session of the server.

    So nothing is set, prepared or locked for longer than a transaction.
    """

    dialect = "postgresql"
    for_update = "FOR UPDATE"
    each = "json_array_elements_text"
    clock = "extract(epoch FROM clock_timestamp())::double precision"

    def __init__(self, conninfo: str) -> None:
        self._raw = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
        try:
            self.pooled = is_pooled(self._raw)
            if not self.pooled:
                self._raw.prepare_threshold = 5
                self._raw.execute(SESSION)
        except psycopg.Error:
            self._raw.close()
            raise
        self._cursor = self._raw.cursor()
        self.audit_shard = secrets.randbelow(SHARDS)

    def _run(self, sql: str, values: Sequence[Any]) -> Any:
        try:
            return self._cursor.execute(translated(sql), values or None)
        except (UnicodeEncodeError, psycopg.DataError) as error:
            # Both before anything was sent: the server has no say in what cannot be encoded.
            if isinstance(error, psycopg.DataError) and error.sqlstate is not None:
                raise
            return self._cursor.execute(translated(sql), [storable(value) for value in values])

    def begin(self, *, sync: bool) -> None:
        begin = "BEGIN" if sync else "BEGIN; SET LOCAL synchronous_commit = off"
        self._raw.execute(f"{begin}{LOCAL}" if self.pooled else begin)

    def begin_reading(self) -> None:
        self._raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def abort(self) -> None:
        # Not by a request to the server, which may be the one that does not answer.
        with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self._raw.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    def lock(self, name: str) -> None:
        self._raw.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))

    def lock_schema(self) -> None:
        self._raw.execute(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})")


class PostgresDriver(Driver):
    """Connections to one database."""

    shared = True

    def __init__(self, url: str, *, audit_keys: AuditKeys | None = None) -> None:
        url, self.pool_size = split_pool_size(url)
        self._conninfo, given = conninfo(url), conninfo_to_dict(url)
        # The name leaves out user and password. A key of its own on every machine would vouch for nothing: one is given
        # to all of them, or there is none.
        name = f"{given.get('host', 'localhost')}/{given.get('dbname', '')}"
        super().__init__(f"PostgreSQL database {name!r}", audit_keys or AuditKeys())

    def connect(self, *, writes: bool) -> PostgresConnection:
        return PostgresConnection(self._conninfo)

    def size(self) -> int:
        with psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None) as raw:
            row = raw.execute(
                "SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind = 'r'"
            ).fetchone()
        return 0 if row is None else int(row[0])

    def shrink(self) -> None:
        """Lets the room be used again; the server gives back what is free at the end of a table."""
        with psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None) as raw:
            for table in ("facts", "artifacts", "messages", "calls", "runs", "sessions", "approvals"):
                raw.execute(f"VACUUM {table}".encode())

    def _fault(self, error: Exception) -> Fault | None:
        if not isinstance(error, psycopg.Error):
            return None
        state = error.sqlstate or ""
        if not state:
            # Nothing came from the server: no route, no name, a reset, a time-out. Others are of the driver's user.
            return _UNREACHABLE if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) else None
        if state == "0A000" and _STALE_PLAN in str(error):
            return _UNREACHABLE  # another program has changed the schema meanwhile: a new connection plans anew
        return next((fault for states, fault in _FAULTS.items() if state.startswith(states)), None)


_STALE_PLAN = "cached plan must not change result type"
_UNREACHABLE = Fault("no connection: check that the server runs and that the URL is right", passing=True, broken=True)
_FAULTS: dict[tuple[str, ...], Fault] = {
    ("40", "55"): Fault("another process holds a lock: wait for it, or end it", passing=True),
    ("57014",): Fault(
        "a statement was cancelled or took longer than the server allows: see statement_timeout and what slows it down",
        passing=True,
    ),
    ("53100",): Fault("its disk is full: make room, what was committed is safe"),
    # The connection is to a server that has become a standby, or is about to end.
    ("25006",): Fault(
        "it takes no writes at the moment: wait until the failover is over, or check that the URL is the primary's",
        passing=True,
        broken=True,
    ),
    ("08", "25", "26", "53", "57"): _UNREACHABLE,
    ("28", "3D", "42501", "58", "F0", "XX"): Fault(
        "it cannot be used: check the URL's user, password and database, and the server's log", broken=True
    ),
}
"""By how SQLSTATEs begin; the first that fits counts. All else is a fault of ours: a statement or value is wrong."""

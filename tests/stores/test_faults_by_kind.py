"""Which errors of a database make runs pause, and which are faults of ours."""

from __future__ import annotations

import sqlite3

import psycopg
import pytest

from journeyman.stores.connection import SqliteDriver
from journeyman.stores.postgres import PostgresDriver

PASSING = {
    "57014": "a statement timeout, or a statement that was cancelled",
    "25006": "read only, after a failover",
    "25P02": "in a failed transaction",
    "25P03": "idle in a transaction for too long",
    "57P01": "shut down by an administrator",
    "57P02": "crash shutdown",
    "57P03": "cannot connect now",
    "57P05": "idle session",
    "53300": "too many connections",
    "53200": "out of memory",
    "40P01": "a deadlock",
    "40001": "a serialization failure",
    "55P03": "a lock timeout",
    "55006": "in use",
    "08006": "the connection failed",
    "08001": "no connection",
    "26000": "a prepared statement that a pooler has lost",
}
LASTING = {
    "53100": "the disk is full",
    "28P01": "a password that changed",
    "3D000": "no such database",
    "42501": "rights that were taken away",
    "58030": "an input or output error",
    "XX000": "an internal error",
}
OURS = {
    "42601": "a syntax error",
    "42P01": "no such table",
    "23505": "a unique violation",
    "22003": "a number out of range",
    "0A000": "a feature there is not",
}
POSTGRES = PostgresDriver("postgresql://ada@localhost/nothing")
SQLITE = SqliteDriver("nothing.db")


@pytest.mark.parametrize("state", PASSING, ids=PASSING.get)
def test_what_may_be_over_in_a_moment_is_waited_out(state: str) -> None:
    fault = POSTGRES.fault(psycopg.errors.lookup(state)("x"))
    assert fault is not None
    assert fault.passing


@pytest.mark.parametrize("state", LASTING, ids=LASTING.get)
def test_what_lasts_until_somebody_mends_it_is_a_fault_of_the_database_all_the_same(state: str) -> None:
    fault = POSTGRES.fault(psycopg.errors.lookup(state)("x"))
    assert fault is not None
    assert not fault.passing


@pytest.mark.parametrize("state", OURS, ids=OURS.get)
def test_what_is_wrong_with_a_statement_is_ours(state: str) -> None:
    assert POSTGRES.fault(psycopg.errors.lookup(state)("x")) is None


@pytest.mark.parametrize("text", ["failed to resolve host", "connection reset by peer", "server closed the connection"])
def test_what_the_server_never_said_is_no_connection(text: str) -> None:
    fault = POSTGRES.fault(psycopg.OperationalError(text))
    assert fault is not None
    assert (fault.passing, fault.broken) == (True, True)


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("x")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "passing"),
    [
        (sqlite3.SQLITE_BUSY, True),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, True),
        (sqlite3.SQLITE_LOCKED, True),
        (sqlite3.SQLITE_PROTOCOL, True),
        (sqlite3.SQLITE_INTERRUPT, True),
        (sqlite3.SQLITE_NOMEM, True),
        (sqlite3.SQLITE_SCHEMA, True),
        (sqlite3.SQLITE_FULL, False),
        (sqlite3.SQLITE_IOERR_FSYNC, False),
        (sqlite3.SQLITE_CANTOPEN, False),
        (sqlite3.SQLITE_READONLY, False),
        (sqlite3.SQLITE_CORRUPT, False),
    ],
)
def test_what_sqlite_says_of_its_file_makes_runs_pause(code: int, passing: bool) -> None:
    fault = SQLITE.fault(sqlite_error(code))
    assert fault is not None
    assert fault.passing is passing


def test_a_wrong_statement_is_ours_on_sqlite_too() -> None:
    assert SQLITE.fault(sqlite_error(sqlite3.SQLITE_ERROR)) is None
    assert SQLITE.fault(sqlite_error(sqlite3.SQLITE_CONSTRAINT)) is None

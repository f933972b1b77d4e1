"""Forgetting what is old, a little at a time: no statement holds a lock for long, whatever has piled up."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from journeyman.core.storing import Purged
from journeyman.stores.connection import Connection, marks
from journeyman.stores.conversations import forget_runs
from journeyman.stores.database import Database

RUNS_AT_ONCE = 50
ROWS_AT_ONCE = 2_000
"""To a transaction, so that others get their turn in between."""

_OF_RUN = {"facts": "events", "artifacts": "artifacts", "approvals": "approvals"}
_FREE_SESSION = """
    updated_at < ? AND NOT EXISTS (
        SELECT 1 FROM runs WHERE runs.session_id = sessions.id AND runs.ended_at IS NULL
    )
"""
_OLD: dict[str, tuple[str, str, str]] = {
    # A question of a run that goes on is part of it; what nobody can answer any more is not.
    "approvals": (
        "approvals",
        "id",
        "requested_at < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = approvals.run_id)",
    ),
    "grants": (
        "grants",
        "id",
        "granted_at < ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = grants.session_id)",
    ),
    # Nor is a call of a run that goes on: a person may have to say how it ended.
    "calls": (
        "calls",
        "execution_id",
        "started_at < ? AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = calls.run_id AND runs.ended_at IS NULL)",
    ),
    "gaps": ("gaps", "id", "created_at < ?"),
    "rate limits": ("buckets", "bucket", "since < ?"),
}


async def purge_runs(database: Database, *, ended_before: float, counts: dict[str, int]) -> None:
    """Ended runs with their events, artifacts and approvals."""
    while found := await database.read(partial(_ended, before=ended_before)):
        for table, kind in _OF_RUN.items():
            some = partial(_forget_of_runs, table=table, run_ids=found)
            counts[kind] = counts.get(kind, 0) + await _until_none(database, some)
        counts["runs"] = counts.get("runs", 0) + await database.write(partial(forget_runs, run_ids=found), sync=False)


async def purge(database: Database, *, before: float) -> Purged:
    """Everything that is older: runs that ended, sessions nobody used since, calls, gaps, rate limits."""
    counts: dict[str, int] = {}
    await purge_runs(database, ended_before=before, counts=counts)
    while sessions := await database.read(partial(_unused, before=before)):
        messages = partial(_forget_messages, session_ids=sessions)
        counts["messages"] = counts.get("messages", 0) + await _until_none(database, messages)
        counts["sessions"] = counts.get("sessions", 0) + await database.write(
            partial(_forget_sessions, session_ids=sessions, before=before), sync=False
        )
    for kind, (table, key, condition) in _OLD.items():
        some = partial(_forget_old, table=table, key=key, condition=condition, before=before)
        counts[kind] = counts.get(kind, 0) + await _until_none(database, some)
    return Purged(counts={kind: count for kind, count in counts.items() if count})


async def _until_none(database: Database, some: Callable[[Connection], int]) -> int:
    gone = 0
    while count := await database.write(some, sync=False):
        gone += count
    return gone


def _ended(connection: Connection, *, before: float) -> list[str]:
    sql = "SELECT id FROM runs WHERE ended_at < ? ORDER BY ended_at LIMIT ?"
    return [run_id for (run_id,) in connection.query(sql, before, RUNS_AT_ONCE)]


def _forget_of_runs(connection: Connection, *, table: str, run_ids: list[str]) -> int:
    """Some of what belongs to these runs. The latest events first: what is left is the beginning of a run."""
    of_runs = f"run_id IN ({marks(run_ids)})"
    key, order = {
        "facts": ("run_id, seq", "ORDER BY run_id, seq DESC"),
        "artifacts": ("run_id, id, number", ""),
        "approvals": ("id", ""),
    }[table]
    return connection.execute(
        f"DELETE FROM {table} WHERE ({key}) IN "
        f"(SELECT {key} FROM {table} WHERE {of_runs} {order} LIMIT {ROWS_AT_ONCE})",
        *run_ids,
    )


def _unused(connection: Connection, *, before: float) -> list[str]:
    sql = f"SELECT id FROM sessions WHERE {_FREE_SESSION} ORDER BY updated_at LIMIT ?"
    return [session_id for (session_id,) in connection.query(sql, before, RUNS_AT_ONCE)]


def _forget_messages(connection: Connection, *, session_ids: list[str]) -> int:
    return connection.execute(
        "DELETE FROM messages WHERE (session_id, number) IN (SELECT session_id, number FROM messages "
        f"WHERE session_id IN ({marks(session_ids)}) LIMIT {ROWS_AT_ONCE})",
        *session_ids,
    )


def _forget_sessions(connection: Connection, *, session_ids: list[str], before: float) -> int:
    return connection.execute(
        f"DELETE FROM sessions WHERE id IN ({marks(session_ids)}) AND {_FREE_SESSION}", *session_ids, before
    )


def _forget_old(connection: Connection, *, table: str, key: str, condition: str, before: float) -> int:
    return connection.execute(
        f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {condition} LIMIT {ROWS_AT_ONCE})", before
    )

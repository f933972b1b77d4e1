"""Forgetting what is old, a little at a time: no statement holds a lock for long, whatever has piled up."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from journeyman.core.storing import Purged
from journeyman.stores.connection import Connection, marks
from journeyman.stores.conversations import forget_runs
from journeyman.stores.database import Database

RUNS_AT_ONCE = 50
ROWS_AT_ONCE = 2_000
"""To a transaction, so that others get their turn in between."""

_OF_RUN = {
    # The latest events first: what is left is the beginning of a run.
    "events": ("facts", "run_id, seq", "ORDER BY run_id, seq DESC"),
    "artifacts": ("artifacts", "run_id, id, number", ""),
    "approvals": ("approvals", "id", ""),
}
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


async def purge_runs(database: Database, *, ended_before: float, counts: Counter[str]) -> None:
    """Ended runs with their events, artifacts and approvals."""
    # What others share is their past, too: it goes with the last of them.
    shared = "EXISTS (SELECT 1 FROM runs AS fork WHERE fork.parent_id = runs.id)"
    ended = f"runs WHERE ended_at < ? AND NOT {shared} ORDER BY ended_at"
    while runs := await database.read(partial(_some_ids, of=ended, before=ended_before)):
        for kind, (table, key, order) in _OF_RUN.items():
            counts[kind] += await _forget(database, table, key, f"run_id IN ({marks(runs)}) {order}", *runs)
        counts["runs"] += await database.write(partial(forget_runs, run_ids=runs), sync=False)


async def purge(database: Database, *, before: float) -> Purged:
    """Everything that is older: runs that ended, sessions nobody used since, calls, gaps, rate limits."""
    counts: Counter[str] = Counter()
    await purge_runs(database, ended_before=before, counts=counts)
    unused = f"sessions WHERE {_FREE_SESSION} ORDER BY updated_at"
    while sessions := await database.read(partial(_some_ids, of=unused, before=before)):
        of_sessions = f"session_id IN ({marks(sessions)})"
        counts["messages"] += await _forget(database, "messages", "session_id, number", of_sessions, *sessions)
        gone = f"id IN ({marks(sessions)}) AND {_FREE_SESSION}"
        counts["sessions"] += await _forget(database, "sessions", "id", gone, *sessions, before)
    for kind, (table, key, condition) in _OLD.items():
        counts[kind] += await _forget(database, table, key, condition, before)
    return Purged(counts={kind: count for kind, count in counts.items() if count})


def _some_ids(connection: Connection, *, of: str, before: float) -> list[str]:
    return [row_id for (row_id,) in connection.query(f"SELECT id FROM {of} LIMIT ?", before, RUNS_AT_ONCE)]


async def _forget(database: Database, table: str, key: str, condition: str, *values: Any) -> int:
    """Delete the rows that fulfil a condition, some at a time; returns how many."""
    some = f"SELECT {key} FROM {table} WHERE {condition} LIMIT {ROWS_AT_ONCE}"
    sql, gone = f"DELETE FROM {table} WHERE ({key}) IN ({some})", 0
    while count := await database.write(lambda connection: connection.execute(sql, *values), sync=False):
        gone += count
    return gone

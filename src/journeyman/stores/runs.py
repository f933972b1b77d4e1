"""Runs: who holds which, what is due, what has ended. Their facts are written by ``journal``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from journeyman.core.events import Fact
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.protocols import Journal
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunOrder, RunRow
from journeyman.stores.connection import (
    Connection,
    Row,
    belongs_to,
    columns,
    entities,
    equals,
    json_text,
    marks,
    where,
)
from journeyman.stores.conversations import forget_runs, touch_session
from journeyman.stores.database import Database
from journeyman.stores.journal import SqlJournal, read_facts

PURGED_AT_ONCE = 200
"""Runs to a transaction, so that others get their turn in between."""

_SESSION_FREE = """
    NOT EXISTS (
        SELECT 1 FROM runs AS earlier
        WHERE earlier.session_id = runs.session_id AND earlier.turn < runs.turn AND earlier.ended_at IS NULL
    )
"""
_AHEAD = f"""
    SELECT {columns(RunRow)} FROM runs
    WHERE session_id = (SELECT session_id FROM runs WHERE id = ? AND status = ?)
    AND turn < (SELECT turn FROM runs WHERE id = ?) AND ended_at IS NULL
    ORDER BY turn LIMIT 1
"""
_PRINCIPAL_FREE = """
    AND (
        runs.principal_id IS NULL
        OR (
            SELECT COUNT(*) FROM runs AS other
            WHERE other.principal_id = runs.principal_id AND other.id <> runs.id
            AND other.owner IS NOT NULL AND other.lease_until > ? AND other.ended_at IS NULL
        ) < ?
    )
"""
_UNFINISHED = f"""
    ended_at IS NULL AND status IN ({", ".join(f"'{status.value}'" for status in RunStatus if not status.ended)})
"""
"""With a status that this version knows: a newer one may have runs that only it can go on with."""
_DECIDED = """
    EXISTS (
        SELECT 1 FROM approvals
        WHERE approvals.run_id = runs.id AND approvals.consumed = 0
        AND (approvals.status <> 'pending' OR approvals.expires_at <= ?)
    )
"""


class SqlRuns:
    """Runs in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, order: RunOrder) -> bool:
        return await self._database.write(partial(_create, order=order))

    async def order(self, run_id: str) -> RunOrder | None:
        rows = await self._database.read(
            lambda connection: connection.query("SELECT asked FROM runs WHERE id = ?", run_id)
        )
        return RunOrder.stored(rows[0][0]) if rows else None

    async def get(self, run_id: str) -> RunRow | None:
        rows = await self._database.read(
            lambda connection: connection.query(f"SELECT {columns(RunRow)} FROM runs WHERE id = ?", run_id)
        )
        return entities(RunRow, rows)[0] if rows else None

    async def list(
        self,
        *,
        statuses: Collection[RunStatus] | None = None,
        session_id: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[RunRow]:
        if statuses is not None and not statuses:
            return ()
        wanted = None if statuses is None else tuple(status.value for status in statuses)
        clause, values = where(
            None if wanted is None else (f"status IN ({marks(wanted)})", wanted),
            # Says nothing new, but lets the indexes over unfinished runs be used.
            ("ended_at IS NULL", ()) if statuses and not any(status.ended for status in statuses) else None,
            equals("session_id", session_id),
            belongs_to(principal_id),
        )
        order = "created_at DESC, id DESC" if session_id is None else "turn DESC"
        sql = f"SELECT {columns(RunRow)} FROM runs {clause} ORDER BY {order} LIMIT ? OFFSET ?"
        return entities(
            RunRow, await self._database.read(lambda connection: connection.query(sql, *values, limit, offset))
        )

    async def ahead_of(self, run_id: str) -> RunRow | None:
        rows = await self._database.read(
            lambda connection: connection.query(_AHEAD, run_id, RunStatus.QUEUED.value, run_id)
        )
        return entities(RunRow, rows)[0] if rows else None

    async def claim(
        self,
        run_id: str,
        *,
        owner: str,
        now: float,
        lease_until: float,
        dead: Collection[str] = (),
        principal_limit: int | None = None,
        in_turn: bool = True,
    ) -> int | None:
        free, counted = (_PRINCIPAL_FREE, (now, principal_limit)) if principal_limit is not None else ("", ())
        if in_turn:
            free = f"AND {_SESSION_FREE} {free}"

        # Synced: a server that forgot an epoch would give the same one to two holders.
        def take(connection: Connection) -> Sequence[Row]:
            if principal_limit is not None:
                # Two who count at the same time would both find a free place.
                for (principal_id,) in connection.query("SELECT principal_id FROM runs WHERE id = ?", run_id):
                    connection.lock(f"principal {principal_id}")
            return connection.query(
                "UPDATE runs SET epoch = epoch + 1, owner = ?, lease_until = ?, updated_at = ? WHERE id = ? "
                f"AND {_UNFINISHED} AND {_unheld([owner, *dead])} {free} RETURNING epoch",
                *(owner, lease_until, now, run_id, now, owner, *dead, *counted),
            )

        rows = await self._database.write(take)
        return int(rows[0][0]) if rows else None

    async def renew(self, owner: str, *, lease_until: float) -> Sequence[str]:
        rows = await self._database.write(
            lambda connection: connection.query(
                "UPDATE runs SET lease_until = ? WHERE owner = ? RETURNING id, cancel_wanted", lease_until, owner
            ),
            sync=False,
        )
        return tuple(run_id for run_id, wanted in rows if wanted)

    async def request_cancel(self, run_id: str) -> bool:
        rows = await self._database.write(
            lambda connection: connection.query(
                "UPDATE runs SET cancel_wanted = 1 WHERE id = ? AND ended_at IS NULL RETURNING id", run_id
            )
        )
        return bool(rows)

    async def owners(self) -> Sequence[str]:
        sql = "SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL AND ended_at IS NULL"
        rows = await self._database.read(lambda connection: connection.query(sql))
        return tuple(owner for (owner,) in rows)

    async def release(self, run_id: str, *, epoch: int) -> None:
        await self._database.write(
            lambda connection: connection.execute(
                "UPDATE runs SET owner = NULL, lease_until = 0 WHERE id = ? AND epoch = ?", run_id, epoch
            ),
            sync=False,
        )

    async def due(
        self, *, now: float, dead: Collection[str] = (), run_id: str | None = None, limit: int = 100, offset: int = 0
    ) -> Sequence[str]:
        which, named = ("", ()) if run_id is None else ("id = ? AND", (run_id,))
        rows = await self._database.read(
            lambda connection: connection.query(
                f"""
                SELECT id FROM runs
                WHERE {which} ended_at IS NULL AND {_unheld(dead)} AND (
                    status = '{RunStatus.RUNNING.value}'
                    OR (status = '{RunStatus.QUEUED.value}' AND {_SESSION_FREE})
                    OR (status = '{RunStatus.AWAITING_APPROVAL.value}' AND {_DECIDED})
                )
                ORDER BY priority DESC, created_at, id LIMIT ? OFFSET ?
                """,
                *(*named, now, *dead, now, limit, offset),
            )
        )
        return tuple(found for (found,) in rows)

    def journal(self, run_id: str, *, epoch: int) -> Journal:
        return SqlJournal(self._database, run_id, epoch)

    async def facts(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[Fact]:
        return await self._database.read(partial(read_facts, run_id=run_id, after=after, limit=limit))

    async def purge(self, *, ended_before: float) -> int:
        """Forget ended runs that are older, with their facts and approvals; returns how many.

        Conversations, the call log and the audit stay.
        """
        purged = 0
        while some := await self._database.write(partial(_purge, ended_before=ended_before), sync=False):
            purged += some
        return purged


def _create(connection: Connection, *, order: RunOrder) -> bool:
    principal = order.principal or order.task.principal
    principal_id = None if principal is None else principal.id
    session_id, turn = order.task.session_id, None
    if session_id is not None:
        touch_session(connection, session_id, principal_id=principal_id, now=order.created_at)
        [(turn,)] = connection.query("SELECT COALESCE(MAX(turn), 0) + 1 FROM runs WHERE session_id = ?", session_id)
    values = {
        "id": order.run_id,
        "task_id": order.task.task_id,
        "agent_name": str(order.agent.get("name", "")),
        "session_id": session_id,
        "turn": turn,
        "principal_id": principal_id,
        "status": RunStatus.QUEUED.value,
        "priority": order.priority,
        "epoch": 0,
        "lease_until": 0.0,
        "last_seq": 0,
        "history_length": 0,
        "created_at": order.created_at,
        "updated_at": order.created_at,
        "asked": json_text(order),
    }
    sql = f"INSERT INTO runs ({', '.join(values)}) VALUES ({marks(tuple(values))}) ON CONFLICT (id) DO NOTHING"
    return connection.execute(sql, *values.values()) == 1


def _unheld(takeable: Collection[str]) -> str:
    """The condition that nobody holds a run, or one of these does; wants the time, then the names."""
    condition = "owner IS NULL OR lease_until <= ?"
    if takeable:
        condition += f" OR owner IN ({marks(tuple(takeable))})"
    return f"({condition})"


def _purge(connection: Connection, *, ended_before: float) -> int:
    rows = connection.query(
        "SELECT id FROM runs WHERE ended_at < ? ORDER BY ended_at LIMIT ?", ended_before, PURGED_AT_ONCE
    )
    return forget_runs(connection, [run_id for (run_id,) in rows])

"""Sessions and what was said in them. Ended runs leave their messages here; see ``journal``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from journeyman.core.conversations import SessionRow
from journeyman.core.messages import Message
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.protocols import Clock
from journeyman.stores.approvals import revoke_all
from journeyman.stores.connection import Connection, belongs_to, entities, equals, json_text, marks, where
from journeyman.stores.database import Database

FORGOTTEN_AT_ONCE = 200
"""Runs to a statement: databases limit how many values one may hold."""
_SESSIONS = """
    SELECT id, principal_id, created_at, updated_at, (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id)
    FROM sessions
"""


def touch_session(connection: Connection, session_id: str, *, principal_id: str | None, now: float) -> None:
    """Make sure the session is there, and that nobody else adds to it while this transaction lasts."""
    connection.execute(
        "INSERT INTO sessions (id, principal_id, created_at, updated_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at",
        *(session_id, principal_id, now, now),
    )


def add_messages(connection: Connection, session_id: str, run_id: str, messages: Sequence[Message]) -> None:
    """Add to a session that this transaction has touched."""
    [(last,)] = connection.query("SELECT COALESCE(MAX(number), 0) FROM messages WHERE session_id = ?", session_id)
    for number, message in enumerate(messages, start=last + 1):
        connection.execute(
            "INSERT INTO messages (session_id, number, run_id, body) VALUES (?, ?, ?, ?)",
            *(session_id, number, run_id, json_text(message)),
        )


class SqlConversations:
    """Conversations in a database."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def messages(self, session_id: str, *, last: int | None = None) -> Sequence[Message]:
        return await self._database.read(partial(_messages, session_id=session_id, last=last))

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[SessionRow]:
        clause, values = where(belongs_to(principal_id))
        sql = f"{_SESSIONS} {clause} ORDER BY updated_at DESC, id DESC LIMIT ? OFFSET ?"
        rows = await self._database.read(lambda connection: connection.query(sql, *values, limit, offset))
        return entities(SessionRow, rows)

    async def get(self, session_id: str) -> SessionRow | None:
        clause, values = where(equals("id", session_id))
        rows = await self._database.read(lambda connection: connection.query(f"{_SESSIONS} {clause}", *values))
        return entities(SessionRow, rows)[0] if rows else None

    async def delete(self, session_id: str) -> bool:
        return await self._database.write(partial(_delete, session_id=session_id, now=self._clock.time()))


def _messages(connection: Connection, *, session_id: str, last: int | None) -> Sequence[Message]:
    sql = "SELECT body FROM messages WHERE session_id = ? ORDER BY number DESC"
    rows = connection.query(sql, session_id) if last is None else connection.query(f"{sql} LIMIT ?", session_id, last)
    return tuple(Message.stored(body) for (body,) in reversed(rows))


def _delete(connection: Connection, *, session_id: str, now: float) -> bool:
    deleted = connection.execute("DELETE FROM sessions WHERE id = ?", session_id) > 0
    revoke_all(connection, session_id, now=now)
    sql = "SELECT id FROM runs WHERE session_id = ? AND ended_at IS NOT NULL"
    forget_runs(connection, [run_id for (run_id,) in connection.query(sql, session_id)])
    return deleted


def forget_runs(connection: Connection, run_ids: Sequence[str]) -> int:
    """Delete runs with their facts and approvals; the call log and the audit, which hold no content, stay."""
    for start in range(0, len(run_ids), FORGOTTEN_AT_ONCE):
        some = run_ids[start : start + FORGOTTEN_AT_ONCE]
        connection.execute(f"DELETE FROM approvals WHERE run_id IN ({marks(some)})", *some)
        connection.execute(f"DELETE FROM runs WHERE id IN ({marks(some)})", *some)
    return len(run_ids)

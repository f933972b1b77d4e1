"""Sessions and what was said in them. Ended runs leave their messages here; see ``journal``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from journeyman.core.policy import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.protocols import Clock
from journeyman.core.runs import Message, Role, SessionHistory, SessionPlace, SessionRow
from journeyman.stores.approvals import revoke_grants
from journeyman.stores.audit import add_audit
from journeyman.stores.connection import EVERY, Connection, Where, each_word, entities, is_among, json_text, storable
from journeyman.stores.database import Aggregate, Database, reads, writes

LONGEST_TITLE = 200
_SESSIONS = """
    SELECT id, principal_id, created_at, updated_at, (SELECT COUNT(*) FROM messages WHERE session_id = sessions.id),
        title
    FROM sessions
"""
_SAID = "EXISTS (SELECT 1 FROM messages WHERE messages.session_id = sessions.id AND {test})"
_SPOKEN = frozenset({Role.USER, Role.ASSISTANT})


def touch_session(
    connection: Connection,
    session_id: str,
    *,
    principal_id: str | None,
    now: float,
    said: str | None = None,
    anybodys: bool = False,
) -> bool:
    """Make sure the session is there, and that nobody else adds to it while this transaction lasts.

    One write decides whose a session is: False, and nothing is changed, where another principal has begun it; unless
    ``anybodys`` will do. A new one is titled by what was ``said`` to begin it.
    """
    title = None if said is None else titled(said)
    # No principal has an empty id.
    whose = "" if anybodys else "WHERE COALESCE(sessions.principal_id, '') = COALESCE(excluded.principal_id, '') "
    rows = connection.query(
        "INSERT INTO sessions (id, principal_id, created_at, updated_at, title, words) VALUES (?, ?, ?, ?, ?, ?) "
        f"ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at {whose}RETURNING id",
        *(session_id, principal_id, now, now, title, None if title is None else title.casefold()),
    )
    return bool(rows)


def drop_unused_session(connection: Connection, session_id: str) -> None:
    """Forget a session that this transaction has made for nothing."""
    connection.execute(
        "DELETE FROM sessions WHERE id = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE session_id = sessions.id) "
        "AND NOT EXISTS (SELECT 1 FROM messages WHERE session_id = sessions.id)",
        session_id,
    )


def titled(said: str) -> str:
    """How a conversation is called that began with these words."""
    return str(storable(" ".join(said[: 4 * LONGEST_TITLE].split())[:LONGEST_TITLE]))


def add_messages(connection: Connection, session_id: str, run_id: str, messages: Sequence[Message]) -> None:
    """Add to a session that this transaction has touched."""
    [(last,)] = connection.query("SELECT COALESCE(MAX(number), 0) FROM messages WHERE session_id = ?", session_id)
    for number, message in enumerate(messages, start=last + 1):
        # What people and models said is found, not what tools answered.
        words = storable(message.content.casefold()) if message.role in _SPOKEN else ""
        place = {"session_id": session_id, "number": number, "run_id": run_id}
        connection.put("messages", {**place, "body": json_text(message), "words": words})


class SqlConversations(Aggregate):
    """Conversations in a database."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock

    async def messages(self, session_id: str, **part: Any) -> Sequence[Message]:
        """In order; with ``last``, only the latest so many. None of a session that is another principal's.

        ``part`` as for ``history``.
        """
        return (await self.history(session_id, **part))[1]

    @reads
    def history(
        self,
        connection: Connection,
        session_id: str,
        *,
        last: int | None = None,
        offset: int = 0,
        limit: int | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
    ) -> tuple[SessionHistory, Sequence[Message]]:
        """The same messages, and which they are."""
        where = Where().equals(session_id=session_id)
        if principal_id is not ANY_PRINCIPAL:
            # In the same statement: whoever asked whose it is before may have been told of a session that is gone.
            whose = Where().equals(id=session_id).of(principal_id)
            where.holds(f"session_id IN (SELECT id FROM sessions {whose.clause})", *whose.values)
        sql = f"SELECT number, body FROM messages {where.clause} ORDER BY number"
        if limit is not None:
            rows = connection.query(f"{sql} LIMIT ? OFFSET ?", *where.values, limit, offset)[::-1]
        else:
            rows = connection.query(f"{sql} DESC LIMIT ?", *where.values, EVERY if last is None else last)
        span = SessionHistory(session_id=session_id, first=rows[-1][0] if rows else 0, last=rows[0][0] if rows else 0)
        return span, tuple(Message.stored(body) for _, body in reversed(rows))

    async def list(
        self,
        *,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        text: str = "",
        after: SessionPlace | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[SessionRow]:
        """Most recently used first; with ``text``, those in whose title or messages each of its words occurs."""
        where = _mentioning(text).of(principal_id)
        if after is not None:
            where.holds("(updated_at < ? OR (updated_at = ? AND id < ?))", after[0], *after)
        which = f"{where.clause} ORDER BY updated_at DESC, id DESC LIMIT ? OFFSET ?"
        return await self._rows(which, *where.values, limit, offset)

    async def count(self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, text: str = "") -> int:
        return await self._count("sessions", _mentioning(text).of(principal_id))

    async def get(self, session_id: str) -> SessionRow | None:
        rows = await self._rows("WHERE id = ?", session_id)
        return rows[0] if rows else None

    @reads
    def _rows(self, connection: Connection, which: str, *values: Any) -> Sequence[SessionRow]:
        rows = []
        for *row, title in connection.query(f"{_SESSIONS} {which}", *values):
            if title is None:
                # One of an older program: how it began is in its first message.
                sql = "SELECT body FROM messages WHERE session_id = ? ORDER BY number LIMIT 1"
                first = connection.query(sql, row[0])
                title = titled(Message.stored(first[0][0]).content) if first else ""
            rows.append((*row, title))
        return entities(SessionRow, rows)

    @writes(sync=True)
    def rename(
        self,
        connection: Connection,
        session_id: str,
        title: str,
        *,
        by: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
    ) -> bool:
        """Give a session a title of its own. False when there is none of that principal."""
        where = Where().equals(id=session_id).of(principal_id)
        sql = f"UPDATE sessions SET title = ?, words = ? {where.clause}"
        renamed = connection.execute(sql, title, title.casefold(), *where.values) > 0
        if renamed:
            add_audit(connection, "session_renamed", actor=by, subject=session_id, now=self._clock.time())
        return renamed

    @writes(sync=True)
    def delete(
        self,
        connection: Connection,
        session_id: str,
        *,
        by: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
    ) -> bool:
        """Forget a session: what was said, its runs, what was allowed in it.

        False, and nothing is forgotten, when there is none of that principal, or one of its runs has not ended.
        """

        # Changes nothing, but whoever wants to begin a run in it must wait; what is begun by now is seen below.
        connection.execute("UPDATE sessions SET updated_at = updated_at WHERE id = ?", session_id)
        where = Where().equals(id=session_id).of(principal_id)
        where.holds("NOT EXISTS (SELECT 1 FROM runs WHERE session_id = sessions.id AND ended_at IS NULL)")
        rows = connection.query(f"DELETE FROM sessions {where.clause} RETURNING principal_id", *where.values)
        if not rows:
            return False
        now = self._clock.time()
        revoke_grants(connection, "session_id", session_id, by=by, now=now)
        said = [run_id for (run_id,) in connection.query("SELECT id FROM runs WHERE session_id = ?", session_id)]
        for run_id in said:  # which grows meanwhile: what was forked from them repeats what was said
            said += [fork for (fork,) in connection.query("SELECT id FROM runs WHERE parent_id = ?", run_id)]
        runs = forget_runs(connection, said)
        details = {"principal_id": rows[0][0], "runs": runs}
        add_audit(connection, "session_deleted", actor=by, subject=session_id, details=details, now=now)
        return True


def _mentioning(text: str) -> Where:
    """Sessions in whose title or messages each word of a text occurs."""
    where = Where()
    # Messages of older programs have no words of their own; their JSON holds them.
    said = each_word("COALESCE(messages.words, LOWER(messages.body))", text)
    for (title, word), (message, _) in zip(each_word("sessions.words", text), said, strict=True):
        where.holds(f"({title} OR {_SAID.format(test=message)})", word, word)
    return where


def read_history(connection: Connection, span: SessionHistory) -> tuple[Message, ...]:
    """The messages a run began with, as far as the session still has them."""
    rows = connection.query(
        "SELECT body FROM messages WHERE session_id = ? AND number BETWEEN ? AND ? ORDER BY number",
        *(span.session_id, span.first, span.last),
    )
    return tuple(Message.stored(body) for (body,) in rows)


def forget_runs(connection: Connection, run_ids: Sequence[str]) -> int:
    """Delete runs with their facts and approvals; the call log and the audit, which hold no content, stay."""
    for table, column in (("approvals", "run_id"), ("signals", "run_id"), ("runs", "id")):
        connection.execute(f"DELETE FROM {table} WHERE {is_among(column)}", json.dumps([*run_ids]))
    return len(run_ids)

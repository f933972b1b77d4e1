"""Questions to people, their answers, and what they allowed for a whole session. Every decision leaves an audit row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from journeyman.core.approvals import Approval, ApprovalStatus, Grant
from journeyman.core.data import canonical_json, digest
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.protocols import moment
from journeyman.stores.audit import add_audit
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
from journeyman.stores.database import Database

_COLUMNS = "question, status, decided_at, decided_by, reason"
PENDING = ApprovalStatus.PENDING.value
EXPIRED_AT_ONCE = 200
"""Approvals to a transaction, so that others get their turn in between."""


class SqlApprovals:
    """Approvals in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ask(self, approval: Approval) -> Approval:
        return await self._database.write(partial(_ask, approval=approval))

    async def get(self, approval_id: str) -> Approval | None:
        rows = await self._database.read(
            lambda connection: connection.query(f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", approval_id)
        )
        return _approval(rows[0]) if rows else None

    async def list(
        self,
        *,
        status: ApprovalStatus | None = None,
        run_id: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Approval]:
        clause, values = where(
            # Written out: a partial index is used only where the condition is known before the values are.
            None if status is None else (f"status = '{status.value}'", ()),
            equals("run_id", run_id),
            belongs_to(principal_id),
        )
        sql = f"SELECT {_COLUMNS} FROM approvals {clause} ORDER BY requested_at, id LIMIT ? OFFSET ?"
        rows = await self._database.read(lambda connection: connection.query(sql, *values, limit, offset))
        return tuple(_approval(row) for row in rows)

    async def count(self, *, status: ApprovalStatus, principal_id: PrincipalFilter = ANY_PRINCIPAL) -> int:
        clause, values = where((f"status = '{status.value}'", ()), belongs_to(principal_id))
        sql = f"SELECT COUNT(*) FROM approvals {clause}"
        [(count,)] = await self._database.read(lambda connection: connection.query(sql, *values))
        return int(count)

    async def decide(
        self,
        approval_id: str,
        status: ApprovalStatus,
        *,
        by: str,
        now: float,
        reason: str | None = None,
        arguments: dict[str, Any] | None = None,
        grant: Grant | None = None,
    ) -> Approval | None:
        if not status.final:
            raise ValueError(f"approval {approval_id!r} cannot become {status.value!r}: give a final status")
        edited = None if arguments is None else canonical_json(arguments)

        def decided(connection: Connection) -> Approval | None:
            found = _decide(
                connection, approval_id=approval_id, status=status, by=by, now=now, reason=reason, edited=edited
            )
            if found is not None and grant is not None:
                _grant(connection, grant=grant)
            return found

        return await self._database.write(decided)

    async def edited_arguments(self, approval_id: str) -> dict[str, Any] | None:
        rows = await self._database.read(
            lambda connection: connection.query("SELECT edited FROM approvals WHERE id = ?", approval_id)
        )
        if not rows or rows[0][0] is None:
            return None
        edited: dict[str, Any] = json.loads(rows[0][0])
        return edited

    async def expire(self, *, now: float) -> Sequence[Approval]:
        first = await self.next_expiry()
        if first is None or first > now:  # looking costs nobody a turn at writing
            return ()
        expired: list[Approval] = []
        while some := await self._database.write(partial(_expire, now=now)):
            expired += some
            if len(some) < EXPIRED_AT_ONCE:
                break
        return tuple(expired)

    async def next_expiry(self) -> float | None:
        """When the first pending approval expires; None when none is pending."""
        [(first,)] = await self._database.read(
            lambda connection: connection.query(f"SELECT MIN(expires_at) FROM approvals WHERE status = '{PENDING}'")
        )
        return None if first is None else float(first)


def _ask(connection: Connection, *, approval: Approval) -> Approval:
    connection.execute(
        "INSERT INTO approvals (id, run_id, principal_id, status, requested_at, expires_at, consumed, question) "
        "VALUES (?, ?, ?, ?, ?, ?, 0, ?) ON CONFLICT (id) DO NOTHING",
        approval.id,
        approval.run_id,
        None if approval.principal is None else approval.principal.id,
        approval.status.value,
        approval.requested_at.timestamp(),
        approval.expires_at.timestamp(),
        json_text(approval),
    )
    [row] = connection.query(f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", approval.id)
    return _approval(row)


def _decide(
    connection: Connection,
    *,
    approval_id: str,
    status: ApprovalStatus,
    by: str,
    now: float,
    reason: str | None,
    edited: str | None,
) -> Approval | None:
    rows = connection.query(
        "UPDATE approvals SET status = ?, decided_at = ?, decided_by = ?, reason = ?, edited = ?, consumed = ? "
        f"WHERE id = ? AND status = '{PENDING}' AND expires_at > ? RETURNING {_COLUMNS}",
        # A question that was replaced is nobody's reason to go on with the run.
        *(status.value, now, by, reason, edited, int(status is ApprovalStatus.SUPERSEDED)),
        *(approval_id, now),
    )
    if not rows:
        return None
    approval = _approval(rows[0])
    _audit(connection, approval, now=now, edited=edited)
    return approval


def _expire(connection: Connection, *, now: float) -> Sequence[Approval]:
    rows = connection.query(
        "UPDATE approvals SET status = ?, decided_at = ? "
        f"WHERE id IN (SELECT id FROM approvals WHERE status = '{PENDING}' AND expires_at <= ? "
        f"ORDER BY requested_at, id LIMIT ?) AND status = '{PENDING}' RETURNING {_COLUMNS}",
        *(ApprovalStatus.EXPIRED.value, now, now, EXPIRED_AT_ONCE),
    )
    expired = sorted((_approval(row) for row in rows), key=lambda approval: (approval.requested_at, approval.id))
    for approval in expired:
        _audit(connection, approval, now=now)
    return tuple(expired)


def withdraw(connection: Connection, run_id: str, *, keep: Sequence[str] = (), now: float) -> None:
    """Withdraw the questions of a run that it no longer waits for: nobody can use the answers, given or not."""
    others = f"run_id = ? AND id NOT IN ({marks(keep)})" if keep else "run_id = ?"
    rows = connection.query(
        "UPDATE approvals SET status = ?, decided_at = ?, consumed = 1 "
        f"WHERE {others} AND status = '{PENDING}' RETURNING {_COLUMNS}",
        *(ApprovalStatus.SUPERSEDED.value, now, run_id, *keep),
    )
    for row in rows:
        _audit(connection, _approval(row), now=now)
    # An answer that came too late would wake the run again and again.
    connection.execute(f"UPDATE approvals SET consumed = 1 WHERE {others} AND consumed = 0", run_id, *keep)


def supersede(connection: Connection, approval_id: str, *, now: float) -> None:
    """The run asks anew, about a tool that has changed: of this question even a yes that was given is void."""
    rows = connection.query(
        "UPDATE approvals SET status = ?, decided_at = ?, consumed = 1 "
        f"WHERE id = ? AND status IN ('{PENDING}', '{ApprovalStatus.APPROVED.value}') RETURNING {_COLUMNS}",
        *(ApprovalStatus.SUPERSEDED.value, now, approval_id),
    )
    for row in rows:
        _audit(connection, _approval(row), now=now)


def _audit(connection: Connection, approval: Approval, *, now: float, edited: str | None = None) -> None:
    add_audit(
        connection,
        f"approval_{approval.status.value}",
        actor=approval.decided_by,
        run_id=approval.run_id,
        subject=approval.id,
        details={
            "tool": approval.tool_name,
            "call_id": approval.call_id,
            "digest": approval.digest,
            "risk": approval.risk.value,
            "edited": edited is not None,
            # Whoever has the arguments can tell by it whether they are the ones that were allowed.
            **({} if edited is None else {"edited_digest": digest(edited)}),
        },
        now=now,
    )


def _approval(row: Row) -> Approval:
    question, status, decided_at, decided_by, reason = row
    return Approval.stored(question).model_copy(
        update={
            "status": ApprovalStatus(status),
            "decided_at": None if decided_at is None else moment(decided_at),
            "decided_by": decided_by,
            "reason": reason,
        }
    )


# --- grants


class SqlGrants:
    """Grants in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def grant(self, grant: Grant) -> None:
        await self._database.write(partial(_grant, grant=grant))

    async def revoke(self, grant_id: str, *, by: str, now: float) -> bool:
        """Whether it was still in force."""
        return await self._database.write(lambda connection: _revoke(connection, "id", grant_id, by=by, now=now) > 0)

    async def list(self, *, session_id: str | None = None, active_only: bool = True) -> Sequence[Grant]:
        clause, values = where(("revoked_at IS NULL", ()) if active_only else None, equals("session_id", session_id))
        sql = f"SELECT {columns(Grant)} FROM grants {clause} ORDER BY granted_at, id"
        return entities(Grant, await self._database.read(lambda connection: connection.query(sql, *values)))

    async def use(self, approval: Approval, *, session_id: str, now: float) -> Approval | None:
        return await self._database.write(partial(_use, approval=approval, session_id=session_id, now=now))


def _grant(connection: Connection, *, grant: Grant) -> None:
    values = tuple(grant.model_dump(mode="json").values())
    kept = connection.execute(
        f"INSERT INTO grants ({columns(Grant)}) VALUES ({marks(values)}) ON CONFLICT (id) DO NOTHING", *values
    )
    if kept:
        _audit_grant(connection, "grant_given", grant, actor=grant.granted_by, now=grant.granted_at)


def _use(connection: Connection, *, approval: Approval, session_id: str, now: float) -> Approval | None:
    if approval.risk_raised:
        return None
    principal_id = None if approval.principal is None else approval.principal.id
    clause, values = where(
        equals("session_id", session_id),
        equals("tool_name", approval.tool_name),
        equals("tool_digest", approval.tool_digest),
        ("revoked_at IS NULL AND uses_left > 0 AND expires_at > ?", (now,)),
        belongs_to(principal_id),
        ("granted_by <> ?", (principal_id,)) if approval.four_eyes and principal_id is not None else None,
    )
    found = connection.query(f"SELECT {columns(Grant)} FROM grants {clause} ORDER BY granted_at, id", *values)
    for grant in entities(Grant, found):
        if grant.risk is None or grant.risk.rank < approval.risk.rank:
            continue
        # One conditional write: another process may have used it up, or a person revoked it, since it was read.
        took = connection.execute(
            "UPDATE grants SET uses_left = uses_left - 1 WHERE id = ? AND uses_left > 0 AND revoked_at IS NULL",
            grant.id,
        )
        if not took:
            continue
        by = f"{grant.granted_by} (grant {grant.id})"
        approved = ApprovalStatus.APPROVED
        decided = _decide(
            connection, approval_id=approval.id, status=approved, by=by, now=now, reason=None, edited=None
        )
        if decided is None:  # somebody has decided it meanwhile
            connection.execute("UPDATE grants SET uses_left = uses_left + 1 WHERE id = ?", grant.id)
        return decided
    return None


def revoke_all(connection: Connection, session_id: str, *, by: str | None, now: float) -> None:
    """End every grant of a session."""
    _revoke(connection, "session_id", session_id, by=by, now=now)


def _revoke(connection: Connection, column: str, value: str, *, by: str | None, now: float) -> int:
    rows = connection.query(
        f"UPDATE grants SET revoked_at = ?, revoked_by = ? WHERE {column} = ? AND revoked_at IS NULL "
        f"RETURNING {columns(Grant)}",
        *(now, by, value),
    )
    for grant in entities(Grant, rows):
        _audit_grant(connection, "grant_revoked", grant, actor=by, now=now)
    return len(rows)


def _audit_grant(connection: Connection, kind: str, grant: Grant, *, actor: str | None, now: float) -> None:
    details = {
        "tool": grant.tool_name,
        "session_id": grant.session_id,
        "principal_id": grant.principal_id,
        "risk": None if grant.risk is None else grant.risk.value,
        "uses": grant.uses,
        "expires_at": grant.expires_at,
    }
    add_audit(connection, kind, actor=actor, run_id=None, subject=grant.id, details=details, now=now)

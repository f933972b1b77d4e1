"""Questions to people, their answers, and what they allowed for a whole session. Every decision leaves an audit row.

And what people and verifiers say of runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from journeyman.core.approvals import DECISIVE, Approval, ApprovalStatus, Grant, Label, LabelSource, best_label
from journeyman.core.data import canonical_json, digest, moment
from journeyman.core.errors import ConfigurationError
from journeyman.core.policy import ANY_PRINCIPAL, PrincipalFilter
from journeyman.stores.audit import add_audit
from journeyman.stores.connection import Connection, Row, Where, columns, entities, is_among, json_text, marks
from journeyman.stores.database import Aggregate, writes

_COLUMNS = "question, status, expires_at, decided_at, decided_by, reason"
PENDING = ApprovalStatus.PENDING.value
EXPIRED_AT_ONCE = 200
"""Approvals to a transaction, so that others get their turn in between."""


class ApprovalFilter(TypedDict, total=False):
    """Which approvals are listed; with ``text``, those in whose question each of its words occurs."""

    status: ApprovalStatus | Sequence[ApprovalStatus] | None
    run_id: str | None
    principal_id: PrincipalFilter
    text: str


def _asked(only: ApprovalFilter) -> Where:
    where = Where().equals(run_id=only.get("run_id")).of(only.get("principal_id", ANY_PRINCIPAL))
    where.words("LOWER(question)", only.get("text", ""))
    if (status := only.get("status")) is None:
        return where
    # Written out: a partial index is used only where the condition is known before the values are.
    if isinstance(status, ApprovalStatus):
        return where.holds(f"status = '{status.value}'")
    return where.holds(f"status IN ({', '.join(repr(item.value) for item in status)})")


class SqlApprovals(Aggregate):
    """Approvals in a database."""

    @writes(sync=True)
    def ask(self, connection: Connection, approval: Approval) -> Approval:
        """Keep the question (once) and return it as it stands now."""
        # So many seconds from now, whatever the process that asks takes for the time.
        connection.execute(
            "INSERT INTO approvals (id, run_id, principal_id, status, requested_at, expires_at, consumed, question) "
            "VALUES (?, ?, ?, ?, ?, @now + ?, 0, ?) ON CONFLICT (id) DO NOTHING",
            approval.id,
            approval.run_id,
            None if approval.principal is None else approval.principal.id,
            approval.status.value,
            approval.requested_at.timestamp(),
            (approval.expires_at - approval.requested_at).total_seconds(),
            json_text(approval),
        )
        [row] = connection.query(f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", approval.id)
        return _approval(row)

    async def get(self, approval_id: str) -> Approval | None:
        rows = await self._query(f"SELECT {_COLUMNS} FROM approvals WHERE id = ?", approval_id)
        return _approval(rows[0]) if rows else None

    async def list(
        self,
        *,
        newest_first: bool = False,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
        **only: Unpack[ApprovalFilter],
    ) -> Sequence[Approval]:
        """Oldest first, unless said otherwise."""
        where = _asked(only)
        # Of those that wait one of each principal's, then the second of each: three hundred of one hide nobody else's.
        order = f"{'turn, ' if only.get('status') is ApprovalStatus.PENDING else ''}requested_at, id"
        order = "requested_at DESC, id DESC" if newest_first else order
        sql = f"""
            WITH turns AS (
                SELECT id, requested_at, ROW_NUMBER() OVER (PARTITION BY principal_id ORDER BY requested_at, id) AS turn
                FROM approvals {where.clause}
            ), places AS (SELECT id, ROW_NUMBER() OVER (ORDER BY {order}) AS place FROM turns)
            SELECT {_COLUMNS} FROM approvals JOIN places USING (id)
            WHERE place > COALESCE((SELECT place FROM places WHERE id = ?), 0)
            ORDER BY place LIMIT ? OFFSET ?
        """
        rows = await self._query(sql, *where.values, after, limit, offset)
        return tuple(_approval(row) for row in rows)

    async def count(self, **only: Unpack[ApprovalFilter]) -> int:
        return await self._count("approvals", _asked(only))

    @writes(sync=True)
    def decide(
        self,
        connection: Connection,
        approval_id: str,
        status: ApprovalStatus,
        *,
        by: str,
        reason: str | None = None,
        arguments: dict[str, Any] | None = None,
        grant: Grant | None = None,
    ) -> Approval | None:
        """Decide a pending approval that has not expired; None when it was decided or had expired before.

        One conditional write: of two people deciding at once, one wins, and gives the ``grant`` with it. Leaves audit
        rows.
        """
        if not status.final:
            raise ValueError(f"approval {approval_id!r} cannot become {status.value!r}: give a final status")
        edited = None if arguments is None else canonical_json(arguments)
        decided = _decide(connection, approval_id, status, by=by, reason=reason, edited=edited)
        if decided is not None and grant is not None:
            _grant(connection, grant)
        return decided

    async def edited_arguments(self, approval_id: str) -> dict[str, Any] | None:
        """The arguments a person put in place of the asked ones, where they did."""
        rows = await self._query("SELECT edited FROM approvals WHERE id = ?", approval_id)
        if not rows or rows[0][0] is None:
            return None
        edited: dict[str, Any] = json.loads(rows[0][0])
        return edited

    async def expire(self) -> Sequence[Approval]:
        """Mark what is past its time, by the database's clock, as expired, with an audit row each; returns them."""
        # Looking costs nobody a turn at writing. Where nothing can be written, nothing can be decided either.
        over = f"SELECT 1 FROM approvals WHERE status = '{PENDING}' AND expires_at <= @now LIMIT 1"
        if not await self._query(over) or self._database.read_only:
            return ()
        expired: list[Approval] = []
        while some := await self._database.write(_expire):
            expired += some
            if len(some) < EXPIRED_AT_ONCE:
                break
        return tuple(expired)


def _decide(
    connection: Connection, approval_id: str, status: ApprovalStatus, *, by: str, reason: str | None, edited: str | None
) -> Approval | None:
    said = {"decided_by": by, "reason": reason, "edited": edited}
    decided = _end(connection, status, f"id = ? AND status = '{PENDING}' AND expires_at > @now", approval_id, **said)
    return decided[0] if decided else None


def _expire(connection: Connection) -> Sequence[Approval]:
    over = f"SELECT id FROM approvals WHERE status = '{PENDING}' AND expires_at <= @now ORDER BY requested_at, id"
    which = f"id IN ({over} LIMIT ?) AND status = '{PENDING}'"
    return _end(connection, ApprovalStatus.EXPIRED, which, EXPIRED_AT_ONCE)


def withdraw(connection: Connection, run_id: str, *, keep: Sequence[str] = ()) -> None:
    """Withdraw the questions of a run that it no longer waits for: nobody can use the answers, given or not."""
    others = f"run_id = ? AND id NOT IN ({marks(keep)})" if keep else "run_id = ?"
    _end(connection, ApprovalStatus.SUPERSEDED, f"{others} AND status = '{PENDING}'", run_id, *keep)
    # An answer that came too late would wake the run again and again.
    connection.execute(f"UPDATE approvals SET consumed = 1 WHERE {others} AND consumed = 0", run_id, *keep)


def supersede(connection: Connection, approval_id: str) -> None:
    """The run asks anew, about a tool that has changed: of this question even a yes that was given is void."""
    given = f"id = ? AND status IN ('{PENDING}', '{ApprovalStatus.APPROVED.value}')"
    _end(connection, ApprovalStatus.SUPERSEDED, given, approval_id)


def _end(
    connection: Connection, status: ApprovalStatus, which: str, *values: Any, **said: str | None
) -> list[Approval]:
    """Give questions this status, and what was ``said`` with it, each with an audit row; the oldest first."""
    # A question that was replaced is nobody's reason to go on with the run.
    changes = {"status": status.value, **said, **({"consumed": 1} if status is ApprovalStatus.SUPERSEDED else {})}
    settings = "".join(f", {name} = ?" for name in changes)
    sql = f"UPDATE approvals SET decided_at = @now{settings} WHERE {which} RETURNING {_COLUMNS}"
    ended = [_approval(row) for row in connection.query(sql, *changes.values(), *values)]
    ended.sort(key=lambda approval: (approval.requested_at, approval.id))
    edited = said.get("edited")
    for approval in ended:
        assert approval.decided_at is not None
        details = {
            "tool": approval.tool_name,
            "call_id": approval.call_id,
            "digest": approval.digest,
            "risk": approval.risk.value,
            "edited": edited is not None,
            # Whoever has the arguments can tell by it whether they are the ones that were allowed.
            **({} if edited is None else {"edited_digest": digest(edited)}),
        }
        kind, now = f"approval_{status.value}", approval.decided_at.timestamp()
        by, run_id = approval.decided_by, approval.run_id
        add_audit(connection, kind, actor=by, run_id=run_id, subject=approval.id, details=details, now=now)
    return ended


def _approval(row: Row) -> Approval:
    question, status, expires_at, decided_at, decided_by, reason = row
    return Approval.stored(question).model_copy(
        update={
            "status": ApprovalStatus(status),
            "expires_at": moment(expires_at),
            "decided_at": None if decided_at is None else moment(decided_at),
            "decided_by": decided_by,
            "reason": reason,
        }
    )


# --- grants


class SqlGrants(Aggregate):
    """Grants in a database."""

    @writes(sync=True)
    def grant(self, connection: Connection, grant: Grant) -> None:
        _grant(connection, grant)

    @writes(sync=True)
    def revoke(self, connection: Connection, grant_id: str, *, by: str, now: float) -> bool:
        """Whether it was still in force."""
        return revoke_grants(connection, "id", grant_id, by=by, now=now) > 0

    async def list(self, *, session_id: str | None = None, active_only: bool = True) -> Sequence[Grant]:
        where = Where().equals(session_id=session_id)
        if active_only:
            where.holds("revoked_at IS NULL")
        sql = f"SELECT {columns(Grant)} FROM grants {where.clause} ORDER BY granted_at, id"
        return entities(Grant, await self._query(sql, *where.values))

    @writes(sync=True)
    def use(self, connection: Connection, approval: Approval, *, session_id: str) -> Approval | None:
        """Approve a pending question by a grant that covers it, and count the use: both or neither.

        None where no grant covers it. However many processes ask at once, a grant is used no more often than it says.
        """
        if approval.risk_raised:
            return None
        principal_id = None if approval.principal is None else approval.principal.id
        where = Where().equals(session_id=session_id, tool_name=approval.tool_name, tool_digest=approval.tool_digest)
        where.of(principal_id).holds("revoked_at IS NULL AND uses_left > 0 AND expires_at > @now")
        if approval.four_eyes and principal_id is not None:
            where.holds("granted_by <> ?", principal_id)
        sql = f"SELECT {columns(Grant)} FROM grants {where.clause} ORDER BY granted_at, id"
        rows = connection.query(sql, *where.values)
        for grant in entities(Grant, rows):
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
            decided = _decide(connection, approval.id, ApprovalStatus.APPROVED, by=by, reason=None, edited=None)
            if decided is None:  # somebody has decided it meanwhile
                connection.execute("UPDATE grants SET uses_left = uses_left + 1 WHERE id = ?", grant.id)
            return decided
        return None


def _grant(connection: Connection, grant: Grant) -> None:
    if grant.expires_at is not None:  # so many seconds from now, by the clock that it is used by
        [(now,)] = connection.query("SELECT @now")
        lasts = grant.expires_at - grant.granted_at
        grant = grant.model_copy(update={"granted_at": now, "expires_at": now + lasts})
    row = {**grant.model_dump(), "risk": None if grant.risk is None else grant.risk.value}
    if connection.put("grants", row, key="id"):
        _audit_grant(connection, "grant_given", grant, actor=grant.granted_by, now=grant.granted_at)


def revoke_grants(connection: Connection, column: str, value: str, *, by: str | None, now: float) -> int:
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
    add_audit(connection, kind, actor=actor, subject=grant.id, details=details, now=now)


# --- labels of runs: a rating, a verdict, decisions on calls. Forgotten with their runs

_LABEL_COLUMNS = "source, value, given_by, note, call_id, decision, given_at"
"""A label's fields, in order."""


def put_label(connection: Connection, run_id: str, label: Label) -> bool:
    """Keep a label in the place of an earlier one of the same person, verifier or call; False where it is the same."""
    about = label.call_id if label.source is LabelSource.DECISION else label.by
    sql = "SELECT value, note FROM labels WHERE run_id = ? AND source = ? AND about = ?"
    earlier = connection.query(sql, run_id, label.source.value, about or "")
    if earlier == [(label.value, label.note)]:
        return False
    said = dict(zip(_LABEL_COLUMNS.split(", "), label.model_dump(mode="json").values(), strict=True))
    row = {"run_id": run_id, "about": about or "", **said}
    connection.put("labels", row, key="run_id, source, about", replaced=list(said)[1:])
    if label.source in DECISIVE:
        rows = connection.query(f"SELECT {_LABEL_COLUMNS} FROM labels WHERE run_id = ?", run_id)
        best = best_label([item for item in map(_label, rows) if item.source in DECISIVE])
        outcome = "achieved" if best is not None and best.value == "good" else "not"
        connection.execute("UPDATE runs SET outcome = ? WHERE id = ?", outcome, run_id)
    if label.source is LabelSource.RATING:
        details = {"value": label.value, "before": earlier[0][0] if earlier else None}
        add_audit(
            connection, "run_rated", actor=label.by, run_id=run_id, subject=run_id, details=details, now=label.time
        )
    return True


class SqlLabels(Aggregate):
    """Labels in a database."""

    @writes(sync=True)
    def put(self, connection: Connection, run_id: str, label: Label) -> bool:
        """Keep a label, and leave an audit row for a rating; False where the very same was there already."""
        if not connection.query(f"SELECT 1 FROM runs WHERE id = ? {connection.for_update}", run_id):
            raise ConfigurationError(f"there is no run {run_id!r}: it was never started, or purged since")
        return put_label(connection, run_id, label)

    async def of(self, run_id: str) -> Sequence[Label]:
        """The most reliable first."""
        return (await self.of_runs([run_id])).get(run_id, ())

    async def of_runs(self, run_ids: Sequence[str]) -> dict[str, Sequence[Label]]:
        """The same for several runs; those without labels are left out."""
        sql = f"SELECT run_id, {_LABEL_COLUMNS} FROM labels WHERE {is_among('run_id')} ORDER BY given_at, about"
        rows = await self._query(sql, json.dumps([*run_ids]))
        found: dict[str, list[Label]] = {}
        for run_id, *values in rows:
            found.setdefault(run_id, []).append(_label(values))
        return {run_id: sorted(labels, key=lambda label: label.source.rank) for run_id, labels in found.items()}


def _label(values: Sequence[Any]) -> Label:
    return Label.stored(dict(zip(Label.model_fields, values, strict=True)))

"""The tamper-evident log: each row's hash covers the row and the hash before it. Rows are only ever added."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from journeyman.core.audit import AuditRow
from journeyman.core.data import canonical_json
from journeyman.core.errors import AuditError
from journeyman.stores.connection import Connection, Row, columns, storable
from journeyman.stores.database import Database

PAGE = 1000


def add_audit(
    connection: Connection,
    kind: str,
    *,
    actor: str | None,
    run_id: str | None,
    subject: str,
    details: dict[str, Any],
    now: float,
) -> AuditRow:
    """Add a row in the transaction under way."""
    now = float(now)  # as it will be read back
    # The write takes the lock on the head: whoever comes second reads what the first has left.
    [(seq, previous)] = connection.query("UPDATE audit_head SET seq = seq + 1 WHERE id = 1 RETURNING seq, hash")
    # The hash must not cover what the database cannot keep.
    kept = [storable(value) for value in (actor, run_id, subject, canonical_json(details))]
    digest = _hash(seq, now, kind, *kept, previous)
    connection.execute(
        f"INSERT INTO audit ({columns(AuditRow)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(seq, now, kind, *kept, previous, digest),
    )
    connection.execute("UPDATE audit_head SET hash = ? WHERE id = 1", digest)
    return _row((seq, now, kind, *kept, previous, digest))


class SqlAudit:
    """The log in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(
        self, kind: str, *, actor: str | None, run_id: str | None, subject: str, details: dict[str, Any], now: float
    ) -> AuditRow:
        return await self._database.write(
            partial(add_audit, kind=kind, actor=actor, run_id=run_id, subject=subject, details=dict(details), now=now)
        )

    async def list(self, *, after: int = 0, limit: int = 100) -> Sequence[AuditRow]:
        rows = await self._database.read(partial(_page, after=after, limit=limit))
        return tuple(_row(row) for row in rows)

    async def verify(self) -> int:
        return await self._database.read(_verify)


def _page(connection: Connection, *, after: int, limit: int) -> Sequence[Row]:
    return connection.query(f"SELECT {columns(AuditRow)} FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", after, limit)


def _verify(connection: Connection) -> int:
    [(length, head)] = connection.query("SELECT seq, hash FROM audit_head WHERE id = 1")
    seq, expected = 0, ""
    while rows := _page(connection, after=seq, limit=PAGE):
        for row in rows:
            seq += 1
            if row[0] != seq:
                raise AuditError(f"audit row {seq} is missing: the row after number {seq - 1} has number {row[0]}")
            if row[7] != expected:
                raise AuditError(f"audit row {seq} does not follow from row {seq - 1}: one of them was changed")
            if row[8] != (expected := _hash(*row[:8])):
                raise AuditError(f"audit row {seq} was changed: its content does not fit its hash")
    if seq != length or head != expected:
        raise AuditError(
            f"the audit log ends with row {seq}, but {length} rows were written: the end was cut or forged"
        )
    return seq


def _hash(*values: Any) -> str:
    return hashlib.sha256(canonical_json(values).encode()).hexdigest()


def _row(row: Row) -> AuditRow:
    named = dict(zip(AuditRow.model_fields, row, strict=True))
    return AuditRow.model_validate({**named, "details": json.loads(named["details"])})

"""Gap reports: what people asked for and no tool could do. They outlive the runs they came from.

Every time is a row; rows with the same key are one gap, whose demand is counted when it is read."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.data import new_id
from journeyman.core.gaps import Gap, GapRow, ToolGapReport, gap_key
from journeyman.core.policy import ANY_PRINCIPAL, PrincipalFilter
from journeyman.stores.connection import Connection, Row, Where, columns, json_text, storable
from journeyman.stores.database import Aggregate, writes

_GAPS = "gaps LEFT JOIN gap_dismissals ON gap_dismissals.dismissed_key = gap_key"
_COUNTED = ("key", "times", "people", "first_at", "last_at", "dismissed_by", "dismissed_at")
"""What is counted of a gap, in the order of the columns in ``demand``."""


class SqlGaps(Aggregate):
    """Gap reports in a database."""

    @writes(sync=True)
    def add(
        self,
        connection: Connection,
        report: ToolGapReport,
        *,
        now: float,
        run_id: str | None = None,
        principal_id: str | None = None,
    ) -> GapRow:
        return add_gap(connection, report, now=now, run_id=run_id, principal_id=principal_id)[0]

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[GapRow]:
        """Every time, newest first."""
        where = Where().of(principal_id)
        sql = f"SELECT {columns(GapRow)} FROM gaps {where.clause} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        rows = await self._query(sql, *where.values, limit, offset)
        return tuple(map(_row, rows))

    async def demand(
        self,
        *,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        dismissed: bool = False,
        key: str | None = None,
        after: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Gap]:
        where = _wanted(principal_id, dismissed, key)
        sql = f"""
            SELECT COALESCE(gap_key, gaps.id), COUNT(*), COUNT(DISTINCT COALESCE(principal_id, '')),
                   MIN(created_at), MAX(created_at), MIN(dismissed_by), MIN(dismissed_at)
            FROM {_GAPS} {where.clause} GROUP BY COALESCE(gap_key, gaps.id)
            ORDER BY COUNT(DISTINCT COALESCE(principal_id, '')) DESC, COUNT(*) DESC, MAX(created_at) DESC, 1
        """

        def read(connection: Connection) -> Sequence[Gap]:
            rows = connection.query(sql, *where.values)  # every row is counted for the order anyway
            first = offset
            if after is not None:
                first += next((number for number, row in enumerate(rows, 1) if row[0] == after), len(rows))
            return tuple(_gap(connection, row, principal_id) for row in rows[first : first + limit])

        return await self._database.read(read)

    async def count(self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, dismissed: bool = False) -> int:
        where = _wanted(principal_id, dismissed, None)
        return await self._count(_GAPS, where, what="DISTINCT COALESCE(gap_key, gaps.id)")

    @writes(sync=True)
    def dismiss(self, connection: Connection, key: str, *, by: str | None, now: float) -> bool:
        """Leave a gap out of what is listed from now on; False where there is none with this key."""
        if not connection.query("SELECT 1 FROM gaps WHERE gap_key = ? LIMIT 1", key):
            return False
        row = {"dismissed_key": key, "dismissed_by": by, "dismissed_at": float(now)}
        connection.put("gap_dismissals", row, key="dismissed_key")
        return True


def _wanted(principal_id: PrincipalFilter, dismissed: bool, key: str | None) -> Where:
    where = Where().of(principal_id)
    if key is not None:
        where.holds("COALESCE(gap_key, gaps.id) = ?", key)
    return where if dismissed else where.holds("dismissed_at IS NULL")


def add_gap(
    connection: Connection, report: ToolGapReport, *, now: float, run_id: str | None, principal_id: str | None
) -> list[GapRow]:
    """Keep that something was missing: a row for each missing tool."""
    rows = []
    for missing in report.missing_tools:
        of = (new_id("gap"), float(now), run_id, principal_id)
        values = (*of, json_text(report), gap_key(missing), storable(missing))
        connection.put("gaps", dict(zip(GapRow.model_fields, values, strict=True)))
        rows.append(_row(values))
    return rows


def _gap(connection: Connection, row: Row, principal_id: PrincipalFilter) -> Gap:
    counted = dict(zip(_COUNTED, row, strict=True))
    where = Where().of(principal_id).holds("COALESCE(gap_key, id) = ?", row[0])
    sql = f"SELECT {columns(GapRow)} FROM gaps {where.clause} ORDER BY created_at DESC, id DESC LIMIT 1"
    [latest] = map(_row, connection.query(sql, *where.values))
    missing = latest.missing or latest.report.missing_tools[0]
    return Gap(**counted, missing=missing, report=latest.report, run_id=latest.run_id)


def _row(row: Row) -> GapRow:
    named = dict(zip(GapRow.model_fields, row, strict=True))
    return GapRow.model_validate({**named, "report": ToolGapReport.stored(named["report"])})

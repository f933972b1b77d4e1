"""Gap reports: what people asked for and no tool could do. They outlive the runs they came from."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.data import new_id
from journeyman.core.gaps import GapRow, ToolGapReport
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter
from journeyman.stores.connection import Row, belongs_to, columns, json_text, marks, where
from journeyman.stores.database import Database


class SqlGaps:
    """Gap reports in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, report: ToolGapReport, *, now: float, run_id: str | None = None, principal_id: str | None = None
    ) -> GapRow:
        values = (new_id("gap"), float(now), run_id, principal_id, json_text(report))
        sql = f"INSERT INTO gaps ({columns(GapRow)}) VALUES ({marks(values)})"
        await self._database.write(lambda connection: connection.execute(sql, *values))
        return _row(values)

    async def list(
        self, *, principal_id: PrincipalFilter = ANY_PRINCIPAL, limit: int = 50, offset: int = 0
    ) -> Sequence[GapRow]:
        clause, whose = where(belongs_to(principal_id))
        sql = f"SELECT {columns(GapRow)} FROM gaps {clause} ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        rows = await self._database.read(lambda connection: connection.query(sql, *whose, limit, offset))
        return tuple(map(_row, rows))


def _row(row: Row) -> GapRow:
    named = dict(zip(GapRow.model_fields, row, strict=True))
    return GapRow.model_validate({**named, "report": ToolGapReport.stored(named["report"])})

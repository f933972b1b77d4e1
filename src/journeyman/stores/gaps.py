"""Gap reports: what people asked for and no tool could do. They outlive the runs they came from."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.data import new_id
from journeyman.core.gaps import GapRow, ToolGapReport
from journeyman.stores.connection import Row, columns, json_text
from journeyman.stores.database import Database


class SqlGaps:
    """Gap reports in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, report: ToolGapReport, *, now: float, run_id: str | None = None) -> GapRow:
        values = (new_id("gap"), float(now), run_id, json_text(report))
        sql = f"INSERT INTO gaps ({columns(GapRow)}) VALUES (?, ?, ?, ?)"
        await self._database.write(lambda connection: connection.execute(sql, *values))
        return _row(values)

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[GapRow]:
        sql = f"SELECT {columns(GapRow)} FROM gaps ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        return tuple(map(_row, await self._database.read(lambda connection: connection.query(sql, limit, offset))))


def _row(row: Row) -> GapRow:
    gap_id, created_at, run_id, report = row
    return GapRow(id=gap_id, created_at=created_at, run_id=run_id, report=ToolGapReport.stored(report))

"""Gap reports: what people asked for and no tool could do. They outlive the runs they came from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from journeyman.core.data import new_id
from journeyman.core.gaps import GapRow, ToolGapReport
from journeyman.stores.connection import Connection, Row, columns, json_text
from journeyman.stores.database import Database


class SqlGaps:
    """Gap reports in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, report: ToolGapReport, *, now: float, run_id: str | None = None) -> GapRow:
        values = (new_id("gap"), float(now), run_id, json_text(report))
        await self._database.write(partial(_add, values=values))
        return _row(values)

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[GapRow]:
        return await self._database.read(partial(_list, limit=limit, offset=offset))


def _add(connection: Connection, *, values: Row) -> None:
    connection.execute(f"INSERT INTO gaps ({columns(GapRow)}) VALUES (?, ?, ?, ?)", *values)


def _list(connection: Connection, *, limit: int, offset: int) -> Sequence[GapRow]:
    rows = connection.query(
        f"SELECT {columns(GapRow)} FROM gaps ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?", limit, offset
    )
    return tuple(_row(row) for row in rows)


def _row(row: Row) -> GapRow:
    gap_id, created_at, run_id, report = row
    return GapRow(id=gap_id, created_at=created_at, run_id=run_id, report=ToolGapReport.stored(report))

"""The log of tool calls, for health and accounting. Holds no content, so it outlives the runs' traces."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.calls import CallRow, ToolCallRecord
from journeyman.stores.connection import Connection, columns, entities, equals, where
from journeyman.stores.database import Database

_UPSERT = f"""
    INSERT INTO calls ({columns(CallRow)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (execution_id) DO UPDATE SET
        status = excluded.status, attempts = excluded.attempts, cached = excluded.cached,
        error_code = excluded.error_code, started_at = excluded.started_at, duration_ms = excluded.duration_ms
"""


def log_call(connection: Connection, run_id: str, record: ToolCallRecord) -> None:
    """Note how a call ended; a call whose outcome was unknown gets its later one."""
    connection.execute(
        _UPSERT,
        record.execution_id,
        run_id,
        record.call_id,
        record.tool_name,
        record.status.value,
        None if record.risk is None else record.risk.value,
        record.attempts,
        int(record.cached),
        None if record.error is None else record.error.code,
        record.start_time.timestamp(),
        record.duration_ms,
    )


class SqlCalls:
    """The log in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, *, tool_name: str | None = None, run_id: str | None = None, since: float | None = None, limit: int = 100
    ) -> Sequence[CallRow]:
        lately = None if since is None else ("started_at >= ?", (since,))
        clause, values = where(equals("tool_name", tool_name), equals("run_id", run_id), lately)
        sql = f"SELECT {columns(CallRow)} FROM calls {clause} ORDER BY started_at DESC, execution_id DESC LIMIT ?"
        return entities(CallRow, await self._database.read(lambda connection: connection.query(sql, *values, limit)))

"""The log of tool calls, for health and accounting. Holds no content, so it outlives the runs' traces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from journeyman.core.calls import CallRow, ToolCallRecord
from journeyman.stores.connection import Connection, columns, entities
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
        wanted = {"tool_name = ?": tool_name, "run_id = ?": run_id, "started_at >= ?": since}
        return await self._database.read(
            partial(_list, wanted={test: value for test, value in wanted.items() if value is not None}, limit=limit)
        )


def _list(connection: Connection, *, wanted: dict[str, Any], limit: int) -> Sequence[CallRow]:
    where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
    rows = connection.query(
        f"SELECT {columns(CallRow)} FROM calls {where} ORDER BY started_at DESC, execution_id DESC LIMIT ?",
        *wanted.values(),
        limit,
    )
    return entities(CallRow, rows)

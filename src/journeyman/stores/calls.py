"""What outlives runs, since it holds no content: the log of tool calls, reports of experiments. Also large results and
media, which do not.

These are artifacts, in chunks. One belongs to one run and is forgotten with it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

from journeyman.core.calls import CallRow
from journeyman.core.storing import ExperimentRow, StoredExperiment
from journeyman.stores.connection import Connection, Where, columns, entities, storable
from journeyman.stores.database import Aggregate, reads, writes


class SqlCalls(Aggregate):
    """The log in a database."""

    async def list(
        self, *, tool_name: str | None = None, run_id: str | None = None, since: float | None = None, limit: int = 100
    ) -> Sequence[CallRow]:
        """Newest first."""
        where = Where().equals(tool_name=tool_name, run_id=run_id).within("started_at", since)
        sql = f"SELECT {columns(CallRow)} FROM calls {where.clause} ORDER BY started_at DESC, execution_id DESC LIMIT ?"
        return entities(CallRow, await self._query(sql, *where.values, limit))


# --- reports of experiments


class SqlExperiments(Aggregate):
    """Experiments in a database."""

    @writes(sync=True)
    def add(self, connection: Connection, experiment: StoredExperiment) -> None:
        """Keep a report. A later one of the same experiment takes its place."""
        row = {name: storable(getattr(experiment, name)) for name in StoredExperiment.model_fields}
        connection.put("experiments", row, key="id", replaced=list(row)[1:])

    async def list(self, *, after: str | None = None, limit: int = 50, offset: int = 0) -> Sequence[ExperimentRow]:
        """Newest first; ``after`` is an experiment's id."""
        where = Where().after("experiments", "created_at, id", after, newest_first=True)
        order = "ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        sql = f"SELECT {columns(ExperimentRow)} FROM experiments {where.clause} {order}"
        rows = await self._query(sql, *where.values, limit, offset)
        return entities(ExperimentRow, rows)

    async def count(self) -> int:
        return await self._count("experiments", Where())

    async def get(self, experiment_id: str) -> StoredExperiment | None:
        sql = f"SELECT {columns(StoredExperiment)} FROM experiments WHERE id = ?"
        rows = await self._query(sql, experiment_id)
        return next(iter(entities(StoredExperiment, rows)), None)


# --- large results


CHUNK_CHARS = 65_536
CHUNKS_AT_ONCE = 8
"""To a transaction, so that others get their turn in between."""


class SqlArtifacts(Aggregate):
    """Artifacts in a database."""

    async def put(self, run_id: str, text: str) -> str:
        text, artifact_id = await asyncio.to_thread(_named, text)
        chunks = list(chunked(text))
        for start in range(0, len(chunks), CHUNKS_AT_ONCE):
            some = chunks[start : start + CHUNKS_AT_ONCE]
            add = partial(add_chunks, run_id=run_id, artifact_id=artifact_id, chunks=some)
            await self._database.write(add, sync=False)
        return artifact_id

    @reads
    def read(
        self, connection: Connection, run_id: str, artifact_id: str, *, offset: int = 0, length: int | None = None
    ) -> str | None:
        return _read(connection, run_id, artifact_id, offset, length)


def _read(connection: Connection, run_id: str, artifact_id: str, offset: int, length: int | None) -> str | None:
    first = offset // CHUNK_CHARS
    clause, values = "run_id = ? AND id = ? AND number >= ?", [run_id, artifact_id, first]
    if length is not None:
        clause += " AND number <= ?"
        values.append((offset + max(0, length - 1)) // CHUNK_CHARS)
    rows = connection.query(f"SELECT body FROM artifacts WHERE {clause} ORDER BY number", *values)
    if not rows:
        first_chunk = "SELECT 1 FROM artifacts WHERE run_id = ? AND id = ? AND number = 0"
        if connection.query(first_chunk, run_id, artifact_id):
            return ""
        # Of a run that goes on from another one's past, it may be that one's.
        [(parent_id,)] = connection.query("SELECT parent_id FROM runs WHERE id = ?", run_id) or [(None,)]
        if parent_id is None:
            return None
        return _read(connection, parent_id, artifact_id, offset, length)
    start = offset - first * CHUNK_CHARS
    text = "".join(body for (body,) in rows)
    return text[start:] if length is None else text[start : start + length]


def _named(text: str) -> tuple[str, str]:
    text = storable(text)
    return text, hashlib.sha256(text.encode()).hexdigest()


def chunked(text: str) -> Iterator[tuple[int, str]]:
    """A text in numbered pieces, of which there is at least one."""
    return enumerate(text[at : at + CHUNK_CHARS] for at in range(0, max(1, len(text)), CHUNK_CHARS))


def add_chunks(connection: Connection, *, run_id: str, artifact_id: str, chunks: Sequence[tuple[int, str]]) -> None:
    for number, body in chunks:
        row = {"run_id": run_id, "id": artifact_id, "number": number, "body": body}
        connection.put("artifacts", row, key="run_id, id, number")

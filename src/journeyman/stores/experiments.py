"""Reports of experiments, as JSON: what is in them is not read here."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.experiments import ExperimentRow, StoredExperiment
from journeyman.stores.connection import columns, entities, storable
from journeyman.stores.database import Database

_UPSERT = f"""
    INSERT INTO experiments ({columns(StoredExperiment)}) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, created_at = excluded.created_at, winner = excluded.winner, report = excluded.report
"""


class SqlExperiments:
    """Experiments in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, experiment: StoredExperiment) -> None:
        values = [storable(getattr(experiment, name)) for name in StoredExperiment.model_fields]
        await self._database.write(lambda connection: connection.execute(_UPSERT, *values))

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[ExperimentRow]:
        sql = f"SELECT {columns(ExperimentRow)} FROM experiments ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        rows = await self._database.read(lambda connection: connection.query(sql, limit, offset))
        return entities(ExperimentRow, rows)

    async def get(self, experiment_id: str) -> StoredExperiment | None:
        sql = f"SELECT {columns(StoredExperiment)} FROM experiments WHERE id = ?"
        rows = await self._database.read(lambda connection: connection.query(sql, experiment_id))
        return next(iter(entities(StoredExperiment, rows)), None)

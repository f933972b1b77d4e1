"""Reports of experiments, as JSON: what is in them is not read here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from journeyman.core.experiments import ExperimentRow, StoredExperiment
from journeyman.stores.connection import Connection, columns, entities, storable
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
        await self._database.write(partial(_add, experiment=experiment))

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[ExperimentRow]:
        return await self._database.read(partial(_list, limit=limit, offset=offset))

    async def get(self, experiment_id: str) -> StoredExperiment | None:
        return await self._database.read(partial(_get, experiment_id=experiment_id))


def _add(connection: Connection, *, experiment: StoredExperiment) -> None:
    connection.execute(_UPSERT, *(storable(getattr(experiment, name)) for name in StoredExperiment.model_fields))


def _list(connection: Connection, *, limit: int, offset: int) -> Sequence[ExperimentRow]:
    rows = connection.query(
        f"SELECT {columns(ExperimentRow)} FROM experiments ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?",
        *(limit, offset),
    )
    return entities(ExperimentRow, rows)


def _get(connection: Connection, *, experiment_id: str) -> StoredExperiment | None:
    rows = connection.query(f"SELECT {columns(StoredExperiment)} FROM experiments WHERE id = ?", experiment_id)
    return next(iter(entities(StoredExperiment, rows)), None)

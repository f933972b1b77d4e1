"""Labels of runs: a person's rating, a verifier's verdict, people's decisions on calls. Forgotten with their runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from journeyman.core.approvals import Label, LabelSource
from journeyman.core.errors import ConfigurationError
from journeyman.core.storing import ExperimentRow, StoredExperiment
from journeyman.stores.audit import add_audit
from journeyman.stores.connection import Connection, columns, entities, follows, marks, storable, where
from journeyman.stores.database import Aggregate

_COLUMNS = "source, value, given_by, note, call_id, decision, given_at"
"""A label's fields, in order."""
_UPSERT = f"""
    INSERT INTO labels (run_id, about, {_COLUMNS}) VALUES (?, ?, {marks(tuple(Label.model_fields))})
    ON CONFLICT (run_id, source, about) DO UPDATE SET value = excluded.value, given_by = excluded.given_by,
        note = excluded.note, call_id = excluded.call_id, decision = excluded.decision, given_at = excluded.given_at
"""


def put_label(connection: Connection, run_id: str, label: Label) -> bool:
    """Keep a label in the place of an earlier one of the same person, verifier or call; False where it is the same."""
    about = label.call_id if label.source is LabelSource.DECISION else label.by
    sql = "SELECT value, note FROM labels WHERE run_id = ? AND source = ? AND about = ?"
    earlier = connection.query(sql, run_id, label.source.value, about or "")
    if earlier == [(label.value, label.note)]:
        return False
    connection.execute(_UPSERT, run_id, about or "", *label.model_dump(mode="json").values())
    if label.source is LabelSource.RATING:
        details = {"value": label.value, "before": earlier[0][0] if earlier else None}
        add_audit(
            connection, "run_rated", actor=label.by, run_id=run_id, subject=run_id, details=details, now=label.time
        )
    return True


class SqlLabels(Aggregate):
    """Labels in a database."""

    async def put(self, run_id: str, label: Label) -> bool:
        """Keep a label, and leave an audit row for a rating; False where the very same was there already."""

        def put(connection: Connection) -> bool:
            if not connection.query(f"SELECT 1 FROM runs WHERE id = ? {connection.for_update}", run_id):
                raise ConfigurationError(f"there is no run {run_id!r}: it was never started, or purged since")
            return put_label(connection, run_id, label)

        return await self._database.write(put)

    async def of(self, run_id: str) -> Sequence[Label]:
        """The most reliable first."""
        return (await self.of_runs([run_id])).get(run_id, ())

    async def of_runs(self, run_ids: Sequence[str]) -> dict[str, Sequence[Label]]:
        """The same for several runs; those without labels are left out."""
        if not run_ids:
            return {}
        sql = f"SELECT run_id, {_COLUMNS} FROM labels WHERE run_id IN ({marks(run_ids)}) ORDER BY given_at, about"
        rows = await self._query(sql, *run_ids)
        found: dict[str, list[Label]] = {}
        for run_id, *values in rows:
            found.setdefault(run_id, []).append(_label(values))
        return {run_id: sorted(labels, key=lambda label: label.source.rank) for run_id, labels in found.items()}


def _label(values: Sequence[Any]) -> Label:
    return Label.stored(dict(zip(Label.model_fields, values, strict=True)))


_UPSERT_REPORT = f"""
    INSERT INTO experiments ({columns(StoredExperiment)}) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, created_at = excluded.created_at, winner = excluded.winner, report = excluded.report
"""


class SqlExperiments(Aggregate):
    """Experiments in a database."""

    async def add(self, experiment: StoredExperiment) -> None:
        """Keep a report. A later one of the same experiment takes its place."""
        values = [storable(getattr(experiment, name)) for name in StoredExperiment.model_fields]
        await self._database.write(lambda connection: connection.execute(_UPSERT_REPORT, *values))

    async def list(self, *, after: str | None = None, limit: int = 50, offset: int = 0) -> Sequence[ExperimentRow]:
        """Newest first; ``after`` is an experiment's id."""
        clause, values = where(follows("experiments", "created_at, id", after, newest_first=True))
        order = "ORDER BY created_at DESC, id DESC LIMIT ? OFFSET ?"
        sql = f"SELECT {columns(ExperimentRow)} FROM experiments {clause} {order}"
        rows = await self._query(sql, *values, limit, offset)
        return entities(ExperimentRow, rows)

    async def count(self) -> int:
        [(count,)] = await self._query("SELECT COUNT(*) FROM experiments")
        return int(count)

    async def get(self, experiment_id: str) -> StoredExperiment | None:
        sql = f"SELECT {columns(StoredExperiment)} FROM experiments WHERE id = ?"
        rows = await self._query(sql, experiment_id)
        return next(iter(entities(StoredExperiment, rows)), None)

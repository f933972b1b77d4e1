"""What doors need of experiments: the parts, and keeping a report in a store. Running one takes no store."""

from __future__ import annotations

from journeyman.core.experiments import ExperimentStore, StoredExperiment
from journeyman.experiments import Experiment, Progress, Report

__all__ = ["Experiment", "Progress", "Report", "keep", "kept"]


async def keep(store: ExperimentStore, report: Report, *, now: float) -> None:
    """Put what an experiment found into a store."""
    await store.add(
        StoredExperiment(
            id=report.experiment_id,
            name=report.name,
            created_at=now,
            winner=report.winner,
            report=report.model_dump_json(),
        )
    )


async def kept(store: ExperimentStore, experiment_id: str) -> Report | None:
    """What an experiment found, from a store."""
    found = await store.get(experiment_id)
    return None if found is None else Report.model_validate_json(found.report)

"""Reports of experiments, as they are kept. What is in them is the experiments' business."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pydantic import Field

from journeyman.core.data import Entity


class ExperimentRow(Entity):
    """An experiment that was run, without its figures."""

    id: str = Field(min_length=1)
    name: str
    created_at: float
    winner: str | None
    """None where the evidence did not decide."""


class StoredExperiment(ExperimentRow):
    """An experiment with everything that was found."""

    report: str
    """JSON; what is in it is the experiments' business."""


class ExperimentStore(Protocol):
    """What experiments found."""

    async def add(self, experiment: StoredExperiment) -> None:
        """Keep a report. A later one of the same experiment takes its place."""

    async def list(self, *, limit: int = 50, offset: int = 0) -> Sequence[ExperimentRow]:
        """Newest first."""

    async def get(self, experiment_id: str) -> StoredExperiment | None: ...

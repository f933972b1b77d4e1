"""Experiments: reports of those that were run, and those that divide live traffic, with the switch that ends them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field
from pydantic_core import from_json

from journeyman.app.desk import EXPERIMENTS_WRITE, Desk, InvalidInputError, NotFoundError
from journeyman.app.operations.table import PAGE, Body, Id, Page, Paged, operation
from journeyman.app.splits import Split
from journeyman.core.errors import ConfigurationError
from journeyman.core.storing import ExperimentRow, StoredExperiment
from journeyman.experiments import Report


class ArmView(BaseModel):
    name: str
    share: float = Field(description="Percent of the sessions that begin now.")
    success_count: int = Field(description="Calls of its tools in this process.")
    failure_count: int


class SplitView(BaseModel):
    name: str
    stopped: bool
    arms: list[ArmView]


class Experiments(Page):
    live: list[SplitView] = Field(description="What divides traffic between libraries now.")
    experiments: list[ExperimentRow] = Field(description="Those that were run, newest first.")


class ExperimentDetails(BaseModel):
    experiment: ExperimentRow
    report: dict[str, Any] = Field(description="Arms, comparisons and how they were made.")


class SplitChange(Body):
    stopped: bool | None = Field(default=None, description="True sends everything new to the first arm, at once.")
    shares: dict[str, Annotated[float, Field(ge=0, le=100)]] | None = Field(
        max_length=100, default=None, description="Percent by arm; they add up to 100.", examples=[{"a": 90, "b": 10}]
    )


@operation("experiments.list", "Live experiments and reports")
async def list_experiments(desk: Desk, *, paging: Paged = PAGE) -> Experiments:
    app = desk.app
    if app.split is not None:
        await app.split.look(app.store.audit, app.clock)
    kept = app.store.experiments
    rows, page = await paging.read(kept.list, kept.count, {})
    return Experiments(live=[] if app.split is None else [_view(app.split)], experiments=rows, **page)


@operation("experiments.show", "What one experiment found")
async def show_experiment(desk: Desk, experiment_id: Id) -> ExperimentDetails:
    experiment = await desk.app.store.experiments.get(experiment_id)
    if experiment is None:
        raise NotFoundError("experiment", experiment_id)
    row = ExperimentRow.model_validate(experiment.model_dump(exclude={"report"}))
    return ExperimentDetails(experiment=row, report=from_json(experiment.report))


async def keep_report(desk: Desk, report: Report) -> None:
    """Put what an experiment found into the store."""
    kept = {"id": report.experiment_id, "name": report.name, "winner": report.winner}
    now = desk.app.clock.time()
    await desk.app.store.experiments.add(StoredExperiment(**kept, created_at=now, report=report.model_dump_json()))


@operation("experiments.change", "Stop an experiment, or shift its shares", permission=EXPERIMENTS_WRITE)
async def change_experiment(desk: Desk, name: Id, body: SplitChange) -> SplitView:
    """A session stays with its arm as long as the shares allow; runs under way always do."""
    app = desk.app
    if app.split is None or app.split.name != name:
        raise NotFoundError("experiment", name, recover_action="No live experiment has this name")
    try:
        await app.split.change(
            app.store.audit, by=desk.principal.id, now=app.clock.time(), stopped=body.stopped, shares=body.shares
        )
    except ConfigurationError as error:
        raise InvalidInputError("INVALID_SHARES", "shares", str(error)) from None
    return _view(app.split)


def _view(split: Split) -> SplitView:
    arms = []
    for arm, library in split.arms.items():
        counts = [library.counts(name) for name in library.names()]
        arms.append(
            ArmView(
                name=arm,
                share=split.shares[arm],
                success_count=sum(item.success_count for item in counts),
                failure_count=sum(item.failure_count for item in counts),
            )
        )
    return SplitView(name=split.name, stopped=split.stopped, arms=arms)

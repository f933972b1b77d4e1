"""Experiments: reports of those that were run, and those that divide live traffic, with the switch that ends them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from pydantic_core import from_json

from journeyman.app.splits import Split
from journeyman.core.errors import ConfigurationError
from journeyman.core.experiments import ExperimentRow
from journeyman.doors.http.common import (
    PAGE_SIZE,
    Body,
    DeskDep,
    Id,
    JsonRoute,
    Limit,
    Offset,
    Page,
    ServiceDep,
    page_of,
)
from journeyman.doors.http.errors import FieldError, Problem, answers, not_found

router = APIRouter(prefix="/api/v1/experiments", tags=["experiments"], route_class=JsonRoute)

CHANGE = "experiments:write"


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


@router.get("", summary="Live experiments and reports", responses=answers())
async def list_experiments(service: ServiceDep, limit: Limit = PAGE_SIZE, offset: Offset = 0) -> Experiments:
    split = service.app.split
    if split is not None:
        await split.look(service.store.audit, service.app.clock)
    rows = await service.store.experiments.list(limit=limit, offset=offset)
    live = [] if split is None else [_view(split)]
    return Experiments(live=live, experiments=list(rows), **page_of(limit, offset))


@router.get("/{experiment_id}", summary="What one experiment found", responses=answers(404))
async def show_experiment(experiment_id: Id, service: ServiceDep) -> ExperimentDetails:
    found = await service.store.experiments.get(experiment_id)
    if found is None:
        raise not_found("experiment")
    row = ExperimentRow.model_validate(found.model_dump(exclude={"report"}))
    return ExperimentDetails(experiment=row, report=from_json(found.report))


@router.patch("/{name}", summary="Stop an experiment, or shift its shares", responses=answers(404))
async def change_experiment(name: Id, body: SplitChange, service: ServiceDep, desk: DeskDep) -> SplitView:
    """Needs the permission 'experiments:write'. A session stays with its arm as long as the shares allow; runs under
    way always do."""
    desk.must_hold(CHANGE)
    split = service.app.split
    if split is None or split.name != name:
        raise not_found("experiment", recover_action="No live experiment has this name")
    try:
        await split.change(
            service.store.audit,
            by=desk.principal.id,
            now=service.app.clock.time(),
            stopped=body.stopped,
            shares=body.shares,
        )
    except ConfigurationError as error:
        fields = [FieldError(field="shares", message=str(error))]
        raise Problem(422, "INVALID_SHARES", str(error), fields=fields) from None
    return _view(split)


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

"""Playbooks: what was learned in each domain, on what evidence, how it came about, and the way back."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from journeyman.app.service import Service
from journeyman.core.errors import ConfigurationError
from journeyman.core.playbook import PlaybookVersion, StrategyState, ToolCallingStrategy
from journeyman.core.playbook_diff import PlaybookDiff
from journeyman.doors.http.common import Body, DeskDep, Id, JsonRoute, ServiceDep
from journeyman.doors.http.errors import Problem, answers, not_found

router = APIRouter(prefix="/api/v1/playbooks", tags=["playbooks"], route_class=JsonRoute)

CHANGE = "playbooks:write"
MOST_SHOWN = 200
VERSIONS = 50


class Domains(BaseModel):
    domains: list[str]


class StrategyView(BaseModel):
    strategy: ToolCallingStrategy
    effect: tuple[float, float, float] | None = Field(
        description="How much more often runs with it succeeded than holdouts, and the 95 % interval of that."
    )
    effect_text: str


class PlaybookView(BaseModel):
    domain: str
    version: int
    strategies: list[StrategyView] = Field(description="Those with the most successes first.")
    history: list[PlaybookVersion] = Field(description="The latest changes, newest first.")
    can_change: bool


class RollbackBody(Body):
    to: int = Field(ge=0, description="The version to go back to.", examples=[3])


class StateBody(Body):
    state: Literal["active", "quarantined", "retired"]
    reason: str = Field(default="", max_length=500)


@router.get("", summary="Domains that have a playbook", responses=answers())
async def list_playbooks(service: ServiceDep) -> Domains:
    return Domains(domains=list(await service.app.playbooks.domains()))


@router.get("/{domain}", summary="What was learned in a domain", responses=answers(404))
async def show_playbook(domain: Id, service: ServiceDep, desk: DeskDep) -> PlaybookView:
    """Everybody's strategies and one's own; another's only with the permission 'runs:read'."""
    await _must_exist(service, domain)
    playbook = service.app.playbooks[domain]
    seen = [item for item in await playbook.strategies() if desk.sees_strategy(item.principal_id)][:MOST_SHOWN]
    views = [StrategyView(strategy=item, effect=item.effect, effect_text=item.effect_text) for item in seen]
    return PlaybookView(
        domain=domain,
        version=playbook.version,
        strategies=views,
        history=list(await playbook.history(limit=VERSIONS)),
        can_change=desk.principal.may(CHANGE),
    )


@router.get("/{domain}/diff", summary="What changed between two versions", responses=answers(404))
async def compare_versions(
    domain: Id,
    service: ServiceDep,
    desk: DeskDep,
    since: Annotated[int, Query(ge=0, description="The version to compare from; 0 is before the first.", examples=[1])],
    to: Annotated[int | None, Query(ge=0, description="The version to compare with; the latest if left out.")] = None,
) -> PlaybookDiff:
    """Bullets that were added, changed or removed, of those that the caller sees."""
    await _must_exist(service, domain)
    playbook = service.app.playbooks[domain]
    try:
        found = await playbook.diff(since, to)
    except ConfigurationError as error:
        raise Problem(404, "VERSION_NOT_FOUND", str(error)) from None
    seen = [item for item in found.bullets if desk.sees_strategy(item.principal_id)]
    return found.model_copy(update={"bullets": tuple(seen[:MOST_SHOWN])})


@router.post("/{domain}/rollback", summary="Go back to a version", responses=answers(404, 409))
async def roll_back(domain: Id, body: RollbackBody, service: ServiceDep, desk: DeskDep) -> PlaybookView:
    """Needs the permission 'playbooks:write'. The playbook becomes exactly what it was, as a new version."""
    desk.must_hold(CHANGE)
    await _must_exist(service, domain)
    playbook = service.app.playbooks[domain]
    try:
        await playbook.rollback(to=body.to)
    except ConfigurationError as error:
        raise Problem(422, "NO_SUCH_VERSION", str(error)) from None
    return await show_playbook(domain, service, desk)


@router.patch(
    "/{domain}/strategies/{strategy_id}", summary="Activate or give up a strategy", responses=answers(404, 409)
)
async def change_strategy(
    domain: Id, strategy_id: Id, body: StateBody, service: ServiceDep, desk: DeskDep
) -> StrategyView:
    """Needs the permission 'playbooks:write'."""
    desk.must_hold(CHANGE)
    await _must_exist(service, domain)
    playbook = service.app.playbooks[domain]
    found = await playbook.get(strategy_id)
    if not isinstance(found, ToolCallingStrategy) or not desk.sees_strategy(found.principal_id):
        raise not_found("strategy")
    try:
        await playbook.settle(strategy_id, StrategyState(body.state), reason=body.reason, by=desk.principal.id)
    except ConfigurationError:  # somebody has removed it meanwhile
        raise not_found("strategy") from None
    changed = await playbook.get(strategy_id)
    if not isinstance(changed, ToolCallingStrategy):
        raise not_found("strategy")
    return StrategyView(strategy=changed, effect=changed.effect, effect_text=changed.effect_text)


async def _must_exist(service: Service, domain: str) -> None:
    if domain not in await service.app.playbooks.domains():
        raise not_found("playbook")

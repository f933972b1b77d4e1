"""Playbooks: what was learned in each domain, on what evidence, how it came about, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, Field, SerializeAsAny

from journeyman.app.desk import PLAYBOOKS_WRITE, READ_ALL, Desk, InvalidInputError, NotFoundError
from journeyman.app.operations.table import ALL, MOST_AT_HAND, PAGE, AtHand, Body, Following, Id, Page, operation
from journeyman.core.errors import ConfigurationError
from journeyman.core.playbook import PlaybookBullet, PlaybookDiff, PlaybookVersion, StrategyState, ToolCallingStrategy
from journeyman.learning.playbook import Playbook

MOST_SHOWN = 200
VERSIONS = 50


class Domains(Page):
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
    pitfalls: list[PlaybookBullet] = Field(description="What to beware of, and where values are looked up.")
    history: list[PlaybookVersion] = Field(description="The latest changes, newest first.")
    can_change: bool


class Versions(Page):
    version: int
    history: list[PlaybookVersion] = Field(description="Newest first.")


class RollbackBody(Body):
    to: int = Field(ge=0, description="The version to go back to.", examples=[3])


class StateBody(Body):
    state: Literal["active", "quarantined", "retired"]
    reason: str = Field(default="", max_length=500)


@operation("playbooks.list", "Domains that have a playbook")
async def list_playbooks(desk: Desk, *, paging: AtHand = ALL) -> Domains:
    rows, page = paging.of(await desk.app.playbooks.domains(), key=str)
    return Domains(domains=rows, **page)


@operation("playbooks.show", "What was learned in a domain")
async def show_playbook(desk: Desk, domain: Id) -> PlaybookView:
    """Everybody's strategies and one's own; another's only with the permission 'runs:read'."""
    playbook = await _known(desk, domain)
    seen = [item for item in await playbook.strategies() if desk.sees_strategy(item.principal_id)][:MOST_SHOWN]
    pitfalls = [item for item in await _pitfalls(playbook) if desk.sees_strategy(item.principal_id)][:MOST_SHOWN]
    return PlaybookView(
        domain=domain,
        version=playbook.version,
        strategies=[_view(item) for item in seen],
        pitfalls=pitfalls,
        history=list(await playbook.history(limit=VERSIONS)),
        can_change=desk.principal.may(PLAYBOOKS_WRITE),
    )


@operation("playbooks.history", "The versions of a playbook, newest first")
async def list_versions(desk: Desk, domain: Id, *, paging: Following = PAGE) -> Versions:
    playbook = await _known(desk, domain)
    versions = await playbook.history(limit=MOST_AT_HAND)
    rows, page = paging.of(versions, key=lambda item: str(item.version))
    return Versions(version=playbook.version, history=rows, **page)


@operation("playbooks.diff", "What changed between two versions")
async def compare_versions(
    desk: Desk,
    domain: Id,
    since: Annotated[int, Field(ge=0, description="The version to compare from; 0 is before the first.", examples=[1])],
    to: Annotated[int | None, Field(ge=0, description="The version to compare with; the latest if left out.")] = None,
) -> PlaybookDiff:
    """Bullets that were added, changed or removed, of those that the caller sees."""
    playbook = await _known(desk, domain)
    try:
        compared = await playbook.diff(since, to)
    except ConfigurationError as error:
        raise NotFoundError("version", str(since), message=str(error)) from None
    seen = [item for item in compared.bullets if desk.sees_strategy(item.principal_id)]
    return compared.model_copy(update={"bullets": tuple(seen[:MOST_SHOWN])})


@operation("playbooks.rollback", "Go back to a version", permission=PLAYBOOKS_WRITE)
async def roll_back(desk: Desk, domain: Id, body: RollbackBody) -> PlaybookView:
    """The playbook becomes exactly what it was, as a new version."""
    playbook = await _known(desk, domain)
    try:
        await playbook.rollback(to=body.to)
    except ConfigurationError as error:
        raise InvalidInputError("NO_SUCH_VERSION", "to", str(error)) from None
    return await show_playbook(desk, domain)


@operation("playbooks.settle", "Activate or give up a strategy", permission=PLAYBOOKS_WRITE)
async def change_strategy(desk: Desk, domain: Id, strategy_id: Id, body: StateBody) -> StrategyView:
    playbook = await _known(desk, domain)
    strategy = await playbook.get(strategy_id)
    if not isinstance(strategy, ToolCallingStrategy) or not desk.sees_strategy(strategy.principal_id):
        raise NotFoundError("strategy", strategy_id)
    try:
        await playbook.set_state(strategy_id, StrategyState(body.state), reason=body.reason, by=desk.principal.id)
    except ConfigurationError:  # somebody has removed it meanwhile
        raise NotFoundError("strategy", strategy_id) from None
    changed = await playbook.get(strategy_id)
    if not isinstance(changed, ToolCallingStrategy):
        raise NotFoundError("strategy", strategy_id)
    return _view(changed)


class Strategies(Page):
    strategies: list[ToolCallingStrategy] = Field(description="Those with the most successes first.")
    pitfalls: list[PlaybookBullet] = Field(description="What to beware of; with the first strategies.")


Domain = Annotated[str | None, Field(max_length=128, description="Only this domain's playbook.")]


@operation("strategies.list", "What was learned, by success, and what to beware of", permission=READ_ALL)
async def list_strategies(
    desk: Desk,
    *,
    domain: Domain = None,
    state: Annotated[StrategyState | None, Field(description="Only strategies in this state.")] = None,
    paging: Following = PAGE,
) -> Strategies:
    """In one domain, or in all of them."""
    domains = [domain] if domain is not None else await desk.app.playbooks.domains()
    books = [desk.app.playbooks[name] for name in domains]
    strategies = [item for book in books for item in await book.strategies(state=state)]
    pitfalls = []
    if state is None and paging.after is None:  # a pitfall is in no state
        pitfalls = [item for book in books for item in await _pitfalls(book)]
    rows, page = paging.of(strategies, key=lambda item: item.id)
    return Strategies.model_construct(strategies=rows, pitfalls=pitfalls[: paging.limit], **page)


@operation("strategies.show", "One strategy, with its demonstration and its evidence", permission=READ_ALL)
async def find_strategy(desk: Desk, key: Id, *, domain: Domain = None) -> SerializeAsAny[PlaybookBullet]:
    """By its id, in whichever playbook it is."""
    domains: Sequence[str] = [domain] if domain is not None else await desk.app.playbooks.domains()
    for name in domains:
        if (bullet := await desk.app.playbooks[name].get(key)) is not None:
            return bullet
    raise NotFoundError("strategy", key)


async def _pitfalls(playbook: Playbook) -> list[PlaybookBullet]:
    return [item for item in await playbook.bullets() if item.section == "Pitfalls"]


def _view(item: ToolCallingStrategy) -> StrategyView:
    return StrategyView(strategy=item, effect=item.effect, effect_text=item.effect_text)


async def _known(desk: Desk, domain: str) -> Playbook:
    if domain not in await desk.app.playbooks.domains():
        raise NotFoundError("playbook", domain)
    return desk.app.playbooks[domain]

"""The service: who is asking, what they may do here, its configuration, tools and agents, and how tools have fared."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from journeyman.app.desk import (
    DECIDE,
    EXPERIMENTS_WRITE,
    GAPS_WRITE,
    MEMORY_WRITE,
    READ_AUDIT,
    READ_CONFIGURATION,
    TASKS_WRITE,
    Desk,
    NotFoundError,
)
from journeyman.app.operations.table import ALL, AtHand, Page, operation
from journeyman.app.service import ToolHealth, model_name, starters
from journeyman.core.policy import RiskLevel
from journeyman.core.runs import CHAT_MESSAGE_LIMIT
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import Purged


class Me(BaseModel):
    """The caller."""

    id: str = Field(examples=["ada"])
    permissions: list[str] = Field(examples=[["approvals:decide"]])
    can_decide: bool = Field(description="About approvals and calls of unknown outcome.")
    can_read_audit: bool
    can_change_tasks: bool
    can_change_memory: bool
    can_change_experiments: bool
    can_dismiss_gaps: bool
    message_limit: int = Field(description="Characters that a message of a chat may have.")


class ConfigurationState(BaseModel):
    """The file that the service goes by; nothing but nulls and empty lists where it goes by none."""

    current: bool = Field(description="False: the file was edited and cannot be used; what it said before still holds.")
    environment: str | None = Field(examples=["production"])
    digest: str | None = Field(description="Of the text that holds.")
    file: str | None = Field(description=f"With the permission '{READ_CONFIGURATION}', as the rest.")
    problems: list[str] = Field(
        description="What is wrong with the edit, or with a server that it names, with line, column and key."
    )
    restart_needed: list[str] = Field(description="Sections that were edited and hold from the next start on.")


@operation("service.me", "Who you are to this service")
async def me(desk: Desk) -> Me:
    """So that a page offers what will be allowed and nothing else."""
    principal = desk.principal
    return Me(
        id=principal.id,
        permissions=sorted(principal.permissions),
        can_decide=principal.may(DECIDE),
        can_read_audit=principal.may(READ_AUDIT),
        can_change_tasks=principal.may(TASKS_WRITE),
        can_change_memory=principal.may(MEMORY_WRITE),
        can_change_experiments=principal.may(EXPERIMENTS_WRITE),
        can_dismiss_gaps=principal.may(GAPS_WRITE),
        message_limit=CHAT_MESSAGE_LIMIT,
    )


@operation("store.purge", "Forget what is old, and give back the room", permission="store:write")
async def purge_store(desk: Desk, *, older_than: Annotated[float, Field(ge=0, description="In seconds.")]) -> Purged:
    """Ended runs with all that belongs to them, sessions nobody used, the call log, gaps, rate limits, audit rows.
    Unfinished runs, tasks and experiments stay."""
    return await desk.app.store.purge(before=await desk.app.store.now() - older_than, by=desk.principal.id)


@operation("service.configuration", "How the configuration file stands")
async def configuration(desk: Desk) -> ConfigurationState:
    hidden: dict[str, Any] = {"file": None, "problems": [], "restart_needed": []}
    followed = desk.app.configuration
    status = {**hidden, "environment": None, "digest": None} if followed is None else followed.status()
    current = followed is None or not followed.problems  # a server that is away makes the file no worse
    if not desk.principal.may(READ_CONFIGURATION):
        status |= hidden
    return ConfigurationState(current=current, **status)


# --- tools and agents


class ToolView(BaseModel):
    """A tool as a caller sees it."""

    name: str
    description: str
    category: str
    risk: RiskLevel = Field(description="Before its arguments are known; they can raise it.")
    enabled: bool
    read_only: bool
    idempotent: bool
    permissions: list[str]
    permitted: bool = Field(description="Whether you hold the permissions it needs.")
    timeout_seconds: float
    tags: list[str]
    version: str
    deprecated: bool | str
    signature: str
    parameters: dict[str, Any] = Field(description="JSON Schema of its arguments.")
    returns: dict[str, Any] | None
    examples: list[Any]
    success_count: int = Field(description="In this process.")
    failure_count: int


class Tools(Page):
    tools: list[ToolView]


class Health(Page):
    seconds: float
    tools: list[ToolHealth]


class AgentView(BaseModel):
    name: str
    description: str
    model: str = Field(description="As the agent names it; 'auto' takes what is found.")
    model_name: str | None = Field(description="The model that answers here; null where there is none.")
    starters: list[str] = Field(description="What one could say to begin.")
    tools: list[str]
    ready: bool = Field(description="Whether a language model is there to answer in its name.")
    problem: str | None = Field(description="Why not, and what to do about it.")


class Agents(Page):
    agents: list[AgentView]


@operation("tools.list", "All tools")
async def list_tools(
    desk: Desk,
    *,
    category: Annotated[str | None, Field(max_length=128)] = None,
    paging: AtHand = ALL,
) -> Tools:
    specifications = desk.app.library.specifications()
    wanted = [item for item in specifications if category is None or item.category == category]
    rows, page = paging.of(wanted, key=lambda item: item.name)
    return Tools(tools=[_tool_view(desk, item) for item in rows], **page)


@operation("tools.show", "One tool")
async def show_tool(desk: Desk, name: str) -> ToolView:
    tool = desk.app.library.lookup(name)
    if tool is None:
        raise unknown_tool(desk, name)
    return _tool_view(desk, tool.specification)


def unknown_tool(desk: Desk, name: str) -> NotFoundError:
    nearest = desk.app.library.nearest(name)
    hint = f"Did you mean {' or '.join(map(repr, nearest))}?" if nearest else None
    return NotFoundError("tool", name, recover_action=hint)


def _tool_view(desk: Desk, item: ToolSpecification) -> ToolView:
    counts = desk.app.library.counts(item.name)
    seen = {
        "risk": desk.service.risk_of(item.name),
        "permissions": sorted(item.permissions),
        "permitted": all(desk.principal.may(permission) for permission in item.permissions),
        "success_count": counts.success_count,
        "failure_count": counts.failure_count,
    }
    return ToolView.model_validate({**dict(item), **seen})


@operation("tools.health", "How tools have fared lately")
async def tool_health(
    desk: Desk,
    *,
    seconds: Annotated[float, Field(ge=60, le=30 * 86_400, description="How far back to look.")] = 86_400,
    paging: AtHand = ALL,
) -> Health:
    """Of the latest 10,000 calls in this time."""
    rows, page = paging.of(await desk.service.health(seconds=seconds), key=lambda item: item.tool)
    return Health(seconds=seconds, tools=rows, **page)


@operation("agents.list", "Who can answer")
async def list_agents(desk: Desk, *, paging: AtHand = ALL) -> Agents:
    service, views = desk.service, []
    rows, page = paging.of(list(service.agents.values()), key=lambda agent: agent.name)
    for agent in rows:
        problem, tools = service.no_model(agent), service.tools_of(agent)
        views.append(
            AgentView(
                name=agent.name,
                description=agent.description,
                model=agent.model_settings.name,
                model_name=None if problem is not None else model_name(service.app, agent),
                starters=list(starters(agent, tools)),
                tools=[item.name for item in tools],
                ready=problem is None,
                problem=problem,
            )
        )
    return Agents(agents=views, **page)

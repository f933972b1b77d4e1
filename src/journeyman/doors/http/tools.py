"""Tools and agents: what there is, and how tools have fared. Calling one is in ``chains``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from journeyman.app.service import Service
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.chains import tool_not_found
from journeyman.doors.http.common import Here
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1", tags=["tools"])


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


class Tools(BaseModel):
    tools: list[ToolView]


class HealthView(BaseModel):
    tool: str
    calls: int
    success_rate: float
    p50_ms: float
    p95_ms: float
    history: list[tuple[int, int]] = Field(description="Calls and failures in equal spans of time, oldest first.")


class Health(BaseModel):
    seconds: float
    tools: list[HealthView]


class AgentView(BaseModel):
    name: str
    description: str
    model: str
    tools: list[str]
    ready: bool = Field(description="Whether a language model is there to answer in its name.")
    problem: str | None = Field(description="Why not, and what to do about it.")


class Agents(BaseModel):
    agents: list[AgentView]


@router.get("/tools", summary="All tools", responses=answers())
async def list_tools(
    service: Here, principal: Caller, category: Annotated[str | None, Query(max_length=128)] = None
) -> Tools:
    specifications = service.app.library.specifications()
    wanted = [item for item in specifications if category is None or item.category == category]
    return Tools(tools=[_view(service, item, principal) for item in wanted])


@router.get("/tools/{name}", summary="One tool", responses=answers(404))
async def show_tool(name: str, service: Here, principal: Caller) -> ToolView:
    found = service.app.library.lookup(name)
    if found is None:
        raise tool_not_found(service, name)
    return _view(service, found.specification, principal)


@router.get("/health/tools", summary="How tools have fared lately", responses=answers())
async def tool_health(
    service: Here,
    principal: Caller,
    seconds: Annotated[float, Query(ge=60, le=30 * 86_400, description="How far back to look.")] = 86_400,
) -> Health:
    """Of the latest 10,000 calls in this time."""
    found = await service.health(seconds=seconds)
    return Health(seconds=seconds, tools=[HealthView.model_validate(asdict(item)) for item in found])


@router.get("/agents", summary="Who can answer", responses=answers())
async def list_agents(service: Here, principal: Caller) -> Agents:
    views = []
    for agent in service.agents.values():
        problem = service.no_model(agent)
        views.append(
            AgentView(
                name=agent.name,
                description=agent.description,
                model=agent.model,
                tools=[item.name for item in agent.tools],
                ready=problem is None,
                problem=problem,
            )
        )
    return Agents(agents=views)


def _view(service: Service, item: ToolSpecification, principal: Caller) -> ToolView:
    counts = service.app.library.counts(item.name)
    return ToolView(
        name=item.name,
        description=item.description,
        category=item.category,
        risk=service.risk_of(item.name),
        enabled=item.enabled,
        read_only=item.read_only,
        idempotent=item.idempotent,
        permissions=sorted(item.permissions),
        permitted=all(principal.may(permission) for permission in item.permissions),
        timeout_seconds=item.timeout_seconds,
        tags=list(item.tags),
        version=item.version,
        deprecated=item.deprecated,
        signature=item.signature,
        parameters=item.parameters,
        returns=item.returns,
        examples=list(item.examples),
        success_count=counts.success_count,
        failure_count=counts.failure_count,
    )

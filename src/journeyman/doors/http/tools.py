"""Tools and agents: what there is, how tools have fared, and calling them, one by one or in chains."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from journeyman.app.chains import MOST_STEPS, literal, start_chain
from journeyman.app.desk import Desk, Outcome
from journeyman.app.service import Service, model_name, starters
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import ConfigurationError, ErrorInfo
from journeyman.core.principals import Principal
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import ChainStep, RunOrder
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.common import (
    Body,
    DeskDep,
    IdempotencyKey,
    JsonRoute,
    Object,
    RunAnswer,
    ServiceDep,
    SessionId,
    answer_fields,
)
from journeyman.doors.http.errors import FieldError, Problem, answers, not_found

router = APIRouter(prefix="/api/v1", tags=["tools"], route_class=JsonRoute)

WAITING: dict[int | str, dict[str, Any]] = {202: {"description": "It waits for a person"}}


# --- calling


class Step(Body):
    """One call. '$NAME' is a field of the latest result that has it, '$N.path' one of step N's, '$$' a dollar sign."""

    tool: str = Field(min_length=1, max_length=128, examples=["create_task"])
    args: Object = Field(default_factory=dict, examples=[{"title": "Review", "description": "costs $$5"}])


class ChainRequest(Body):
    steps: list[Step] = Field(min_length=1, max_length=MOST_STEPS)
    session_id: SessionId | None = Field(default=None, description="What was allowed for this session holds.")


class ChainAnswer(RunAnswer):
    """How far a chain has come. It is a run: everything about it is under /api/v1/runs."""

    results: list[Any] = Field(description="Of the steps that are done, in order.")
    error: ErrorInfo | None


class CallRequest(Body):
    arguments: Object = Field(default_factory=dict, examples=[{"title": "Buy milk"}])
    session_id: SessionId | None = Field(default=None, description="What was allowed for this session holds.")


class CallAnswer(RunAnswer):
    """What became of a call."""

    record: ToolCallRecord | None = Field(description="Null as long as it waits for a person.")


@router.post("/chains", summary="Call tools one after another", responses={**answers(404, 409), **WAITING})
async def run_chain(body: ChainRequest, response: Response, desk: DeskDep, key: IdempotencyKey = None) -> ChainAnswer:
    """Answers when the chain has ended (200) or needs a person (202)."""
    run_id, outcome = await _carried_out(desk, body.steps, body.session_id, key=key)
    response.status_code = 202 if outcome.kind == "waiting" else 200
    handle = await desk.app.handle(run_id)
    return ChainAnswer(
        **answer_fields(run_id, outcome),
        results=[await handle.whole(record) for record in outcome.calls if record.success],
        error=None if outcome.response is None else outcome.response.error,
    )


@router.post("/tools/{name}/call", summary="Call one tool", responses={**answers(404, 409), **WAITING})
async def call_tool(
    name: str, body: CallRequest, response: Response, desk: DeskDep, key: IdempotencyKey = None
) -> CallAnswer:
    """Governed like any other call. Answers when it has ended (200), well or not, or needs a person (202)."""
    if name not in desk.app.library:
        raise _not_found(desk.app.library.nearest(name))
    step = Step(tool=name, args=literal(body.arguments))
    run_id, outcome = await _carried_out(desk, [step], body.session_id, key=key)
    response.status_code = 202 if outcome.kind == "waiting" else 200
    return CallAnswer(**answer_fields(run_id, outcome), record=next(iter(outcome.calls), None))


def _not_found(nearest: list[str]) -> Problem:
    hint = f"Did you mean {' or '.join(map(repr, nearest))}?" if nearest else None
    return not_found("tool", recover_action=hint)


async def _carried_out(
    desk: Desk, steps: list[Step], session_id: str | None, *, key: str | None
) -> tuple[str, Outcome]:
    chain = [ChainStep(tool=step.tool, args=step.args) for step in steps]
    run_id = desk.run_id_for("chains", key)

    def same(order: RunOrder) -> bool:
        return list(order.chain) == chain and order.task.session_id == session_id

    if run_id is not None and await desk.begun_before(run_id, same=same) is not None:
        return run_id, await desk.outcome(await desk.app.handle(run_id), session_id=session_id)
    try:
        async with nullcontext() if session_id is None else desk.begins_in(session_id):
            handle = await start_chain(desk.app, chain, principal=desk.principal, session_id=session_id, run_id=run_id)
    except ConfigurationError as error:
        fields = [FieldError(field="steps", message=str(error))]
        raise Problem(422, "INVALID_CHAIN", str(error), fields=fields) from None
    if run_id is not None:  # the key may have come with another call at the same time
        await desk.begun_before(run_id, same=same)
    return handle.run_id, await desk.outcome(handle, session_id=session_id)


# --- what there is


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
    model_config = ConfigDict(from_attributes=True)

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
    model: str = Field(description="As the agent names it; 'auto' takes what is found.")
    model_name: str | None = Field(description="The model that answers here; null where there is none.")
    starters: list[str] = Field(description="What one could say to begin.")
    tools: list[str]
    ready: bool = Field(description="Whether a language model is there to answer in its name.")
    problem: str | None = Field(description="Why not, and what to do about it.")


class Agents(BaseModel):
    agents: list[AgentView]


@router.get("/tools", summary="All tools", responses=answers())
async def list_tools(
    service: ServiceDep, principal: Caller, category: Annotated[str | None, Query(max_length=128)] = None
) -> Tools:
    specifications = service.app.library.specifications()
    wanted = [item for item in specifications if category is None or item.category == category]
    return Tools(tools=[_view(service, item, principal) for item in wanted])


@router.get("/tools/{name}", summary="One tool", responses=answers(404))
async def show_tool(name: str, service: ServiceDep, principal: Caller) -> ToolView:
    found = service.app.library.lookup(name)
    if found is None:
        raise _not_found(service.app.library.nearest(name))
    return _view(service, found.specification, principal)


def _view(service: Service, item: ToolSpecification, principal: Principal) -> ToolView:
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


@router.get("/health/tools", summary="How tools have fared lately", responses=answers())
async def tool_health(
    service: ServiceDep,
    seconds: Annotated[float, Query(ge=60, le=30 * 86_400, description="How far back to look.")] = 86_400,
) -> Health:
    """Of the latest 10,000 calls in this time."""
    found = await service.health(seconds=seconds)
    return Health(seconds=seconds, tools=[HealthView.model_validate(item) for item in found])


@router.get("/agents", summary="Who can answer", responses=answers())
async def list_agents(service: ServiceDep) -> Agents:
    views = []
    for agent in service.agents.values():
        problem = service.no_model(agent)
        views.append(
            AgentView(
                name=agent.name,
                description=agent.description,
                model=agent.model,
                model_name=None if problem is not None else model_name(service.app, agent),
                starters=list(starters(agent)),
                tools=[item.name for item in agent.tools],
                ready=problem is None,
                problem=problem,
            )
        )
    return Agents(agents=views)

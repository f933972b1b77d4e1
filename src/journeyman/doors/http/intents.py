"""Intents: what a request asks for, before anything is done about it."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from journeyman.core.intents import IntentType, UserIntent, intent_types
from journeyman.doors.http.common import Body, DeskDep, JsonRoute, Object
from journeyman.doors.http.errors import answers

router = APIRouter(prefix="/api/v1/intents", tags=["intents"], route_class=JsonRoute)


class IntentRequest(Body):
    text: str = Field(min_length=1, max_length=20_000, examples=["Summarize #platform since Monday"])
    context: Object = Field(default_factory=dict, description="Values for parameters that the text leaves open.")
    offline: bool = Field(default=False, description="Ask no model, even where one is configured.")


class IntentAnswer(BaseModel):
    intent: UserIntent | None = Field(description="Null where nothing of a known type is asked for.")


class IntentTypes(BaseModel):
    types: list[IntentType]


@router.post("", summary="What a request asks for", responses=answers())
async def read_intent(body: IntentRequest, desk: DeskDep) -> IntentAnswer:
    """Among the tools that you may use. Nothing is run or kept."""
    return IntentAnswer(intent=await desk.understand(body.text, context=body.context, offline=body.offline))


@router.get("/types", summary="The types of intents that are known", responses=answers())
async def list_types(desk: DeskDep) -> IntentTypes:
    return IntentTypes(types=list(intent_types().values()))

"""OpenAI's chat completions, spoken by a governed agent: any client of that API can use an agent as if it were a model.

The agent uses its own tools. What needs a person is said in the answer, and the run goes on when they have decided.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from journeyman.app import Agent
from journeyman.app.durable import Handle
from journeyman.app.service import Service
from journeyman.core.messages import Message, Role
from journeyman.core.principals import Principal
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunOrder
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.bodies import JsonRoute
from journeyman.doors.http.chat import agent_named, must_have_model
from journeyman.doors.http.chunks import Chunks, CompletionUsage, completion_id, failure, streamed, waiting_text
from journeyman.doors.http.common import Counted, Here, pending
from journeyman.doors.http.errors import RUN, FieldError, Problem
from journeyman.doors.http.idempotency import IdempotencyKey, begun_before, keyed
from journeyman.doors.http.sse import HEADERS, EventStream

router = APIRouter(prefix="/v1", tags=["openai"], route_class=JsonRoute)

_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "assistant": Role.ASSISTANT}


class OpenAIErrorBody(BaseModel):
    message: str
    type: str
    param: str | None
    code: str


class OpenAIError(BaseModel):
    """An error as OpenAI's API writes it."""

    error: OpenAIErrorBody


def _answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {
        status: {"model": OpenAIError, "description": "An error in OpenAI's shape"}
        for status in sorted({400, 401, 403, 413, 415, 422, 429, *statuses})
    }


class Part(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["text"]
    text: str


class Said(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """What OpenAI's clients send. Settings of a model (temperature and so on) are taken and not used."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(min_length=1, max_length=128, description="An agent's name.", examples=["assistant"])
    messages: list[Said] = Field(
        min_length=1, max_length=1_000, examples=[[{"role": "user", "content": "Remind me to buy milk"}]]
    )
    stream: bool = False
    stream_options: StreamOptions | None = None
    tools: Annotated[list[Any], Field(max_length=0, description="The agent has its own tools.")] | None = None


class CompletionMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str


class Choice(BaseModel):
    index: int = 0
    message: CompletionMessage
    finish_reason: Literal["stop", "length"] = "stop"


class Completion(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: CompletionUsage


class ModelView(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "journeyman"
    tools: list[str] = Field(description="What this agent can do by itself.")


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelView]


@router.get("/models", summary="Agents, as models", responses=_answers())
async def list_models(service: Here, principal: Caller) -> Models:
    return Models(
        data=[ModelView(id=agent.name, tools=[item.name for item in agent.tools]) for agent in service.agents.values()]
    )


@router.get("/models/{name}", summary="One agent, as a model", responses=_answers(404))
async def show_model(name: str, service: Here, principal: Caller) -> ModelView:
    agent = agent_named(service, name)
    return ModelView(id=agent.name, tools=[item.name for item in agent.tools])


@router.post(
    "/chat/completions",
    summary="Ask an agent as if it were a model",
    response_model=Completion,
    responses={
        **_answers(404, 409, 502, 503, 504),
        200: {"model": Completion, "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    },
)
async def complete(
    asked: CompletionRequest,
    request: Request,
    service: Here,
    principal: Caller,
    metrics: Counted,
    key: IdempotencyKey = None,
) -> Any:
    """An error after the run has begun says 'X-Should-Retry: false': what it has done is done."""
    agent = agent_named(service, asked.model)
    must_have_model(service, agent)
    handle = await _started(asked, agent, service, principal, run_id=keyed("completions", principal, key))
    setattr(request.state, RUN, handle.run_id)
    created = int(service.app.clock.time())
    if asked.stream:
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        chunks = Chunks(handle, created=created, model=asked.model, usage=usage)
        return EventStream(streamed(service, handle, chunks, metrics), headers=HEADERS)
    response = await handle.result()
    if response.status is RunStatus.FAILED and response.error is not None:
        raise failure(response.error)
    text = response.answer
    if response.status.waiting:
        text = waiting_text(await pending(service, handle.run_id), handle)
    reason: Literal["stop", "length"] = "length" if response.status is RunStatus.LIMIT_REACHED else "stop"
    choice = Choice(message=CompletionMessage(content=text), finish_reason=reason)
    usage_told = CompletionUsage.of(response.usage)
    return Completion(id=completion_id(handle), created=created, model=asked.model, choices=[choice], usage=usage_told)


async def _started(
    asked: CompletionRequest, agent: Agent, service: Service, principal: Principal, *, run_id: str | None
) -> Handle:
    task, history = _conversation(asked.messages)

    def same(order: RunOrder) -> bool:
        told = (order.agent["name"], order.task.description, order.history)
        return told == (agent.name, task, tuple(history))

    if run_id is not None and await begun_before(service, run_id, principal, same=same) is not None:
        return await service.app.handle(run_id)
    handle = await service.app.start(agent, task, principal=principal, history=history, run_id=run_id)
    if run_id is not None:  # the key may have come with another question at the same time
        await begun_before(service, run_id, principal, same=same)
    return handle


def _conversation(messages: list[Said]) -> tuple[str, list[Message]]:
    *before, last = messages
    if last.role != "user" or not last.text.strip():
        told = "the last message must be the user's, and say something"
        raise Problem(422, "VALIDATION_ERROR", told, fields=[FieldError(field="messages", message=told)])
    # Calls of a client's own tools are not ours to go on with; what was said around them is.
    history = [Message(role=_ROLES[item.role], content=item.text) for item in before if item.role in _ROLES]
    return last.text, [message for message in history if message.content]

"""OpenAI's chat completions, spoken by a governed agent: any client of that API can use an agent as if it were a model.

The agent uses its own tools. What needs a person is said in the answer, and the run goes on when they have decided.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from journeyman.app import Agent, Handle
from journeyman.app.desk import Desk
from journeyman.core.errors import ErrorCategory, ErrorInfo, JourneymanError
from journeyman.core.events import (
    Answered,
    Event,
    MessageReceived,
    RunFailed,
    RunFinished,
    RunSuspended,
    StepRestarted,
    TextDelta,
)
from journeyman.core.messages import Message, Role, Usage
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunOrder
from journeyman.doors.http.chat import agent_named, must_have_model
from journeyman.doors.http.common import DeskDep, IdempotencyKey, JsonRoute, ServiceDep
from journeyman.doors.http.errors import FieldError, Problem, openai_error
from journeyman.doors.http.health import Metrics, MetricsDep
from journeyman.doors.http.sse import DONE, HEADERS, KEEP_ALIVE_SECONDS, EventStream, with_pauses

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


class _Lenient(BaseModel):
    """Clients send fields that mean nothing to an agent."""

    model_config = ConfigDict(extra="ignore")


class Part(_Lenient):
    type: Literal["text"]
    text: str


class Said(_Lenient):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(_Lenient):
    include_usage: bool = False


class CompletionRequest(_Lenient):
    """What OpenAI's clients send. Settings of a model (temperature and so on) are taken and not used."""

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


class CompletionUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


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


def _model(agent: Agent) -> ModelView:
    return ModelView(id=agent.name, tools=[item.name for item in agent.tools])


@router.get("/models", summary="Agents, as models", responses=_answers())
async def list_models(service: ServiceDep) -> Models:
    return Models(data=[_model(agent) for agent in service.agents.values()])


@router.get("/models/{name}", summary="One agent, as a model", responses=_answers(404))
async def show_model(name: str, service: ServiceDep) -> ModelView:
    return _model(agent_named(service, name))


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
    body: CompletionRequest,
    request: Request,
    service: ServiceDep,
    desk: DeskDep,
    metrics: MetricsDep,
    key: IdempotencyKey = None,
) -> Any:
    """An error after the run has begun says 'X-Should-Retry: false': what it has done is done."""
    agent = agent_named(service, body.model)
    must_have_model(service, agent)
    handle = await _started(body, agent, desk, run_id=desk.run_id_for("completions", key))
    request.state.run_id = handle.run_id
    created = int(desk.app.clock.time())
    if body.stream:
        usage = body.stream_options is not None and body.stream_options.include_usage
        chunks = Chunks(handle, created=created, model=body.model, usage=usage)
        return EventStream(_streamed(desk, handle, chunks, metrics), headers=HEADERS)
    response = await handle.result()
    if response.status is RunStatus.FAILED and response.error is not None:
        raise _failure(response.error)
    text = await _waiting_text(desk, handle) if response.status.waiting else response.answer
    choice = Choice(message=CompletionMessage(content=text), finish_reason=_finish_reason(response.status))
    return Completion(
        id=_completion_id(handle), created=created, model=body.model, choices=[choice], usage=_usage(response.usage)
    )


async def _started(body: CompletionRequest, agent: Agent, desk: Desk, *, run_id: str | None) -> Handle:
    task, history = _conversation(body.messages)

    def same(order: RunOrder) -> bool:
        asked = (order.agent["name"], order.task.description, order.history)
        return asked == (agent.name, task, tuple(history))

    if run_id is not None and await desk.begun_before(run_id, same=same) is not None:
        return await desk.app.handle(run_id)
    handle = await desk.app.start(agent, task, principal=desk.principal, history=history, run_id=run_id)
    if run_id is not None:  # the key may have come with another question at the same time
        await desk.begun_before(run_id, same=same)
    return handle


def _conversation(messages: list[Said]) -> tuple[str, list[Message]]:
    *before, last = messages
    if last.role != "user" or not last.text.strip():
        message = "the last message must be the user's, and say something"
        raise Problem(422, "VALIDATION_ERROR", message, fields=[FieldError(field="messages", message=message)])
    # Calls of a client's own tools are not ours to go on with; what was said around them is.
    history = [Message(role=_ROLES[item.role], content=item.text) for item in before if item.role in _ROLES]
    return last.text, [message for message in history if message.content]


# --- what the stream and the one answer have in common


def _completion_id(handle: Handle) -> str:
    return f"chatcmpl-{handle.run_id}"


def _usage(usage: Usage) -> CompletionUsage:
    return CompletionUsage(
        prompt_tokens=usage.input_tokens, completion_tokens=usage.output_tokens, total_tokens=usage.total_tokens
    )


def _finish_reason(status: RunStatus) -> Literal["stop", "length"]:
    return "length" if status is RunStatus.LIMIT_REACHED else "stop"


async def _waiting_text(desk: Desk, handle: Handle) -> str:
    approvals = await desk.app.approvals.pending(run_id=handle.run_id)
    calls = "; ".join(f"{item.tool_name} {to_json(item.arguments).decode()} ({item.id})" for item in approvals)
    about = calls or f"a call of run {handle.run_id}"
    return f"This waits for a person to decide about: {about}. The run goes on by itself when that is done."


def _failure(error: ErrorInfo) -> Problem:
    status = {ErrorCategory.RATE_LIMIT: 429, ErrorCategory.TIMEOUT: 504}.get(error.category, 502)
    guidance = f" ({error.user_guidance})" if error.user_guidance else ""
    return Problem(status, error.code, f"{error.message}{guidance}")


# --- the stream


class Chunks:
    """Turns events into chunks. What was sent cannot be taken back, so a text that begins anew is held back first."""

    def __init__(self, handle: Handle, *, created: int, model: str, usage: bool) -> None:
        self._base = {
            "id": _completion_id(handle),
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._wants_usage = usage
        self._usage = Usage()
        self._step = ""
        self._held = False
        self._last = ""

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _data({**self._base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def text(self, event: Event) -> str:
        """What an event adds to the answer."""
        match event:
            case TextDelta():
                if self._held:
                    return ""
                self._step += event.text
                return event.text
            case StepRestarted():
                self._held = bool(self._step)
                return ""
            case MessageReceived():
                return self._whole(event)
            case Answered() if event.text.strip() != self._last:
                return event.text
            case _:
                return ""

    def _whole(self, event: MessageReceived) -> str:
        self._usage += event.usage
        begun, self._step, self._held, self._last = self._step, "", False, event.text.strip()
        rest = event.text[len(begun) :] if event.text.startswith(begun) else f"\n\n{event.text}"
        return rest + "\n\n" if event.calls and event.text else rest

    def end(self, finish: str) -> bytes:
        ending = self.chunk({}, finish)
        if self._wants_usage:
            ending += _data({**self._base, "choices": [], "usage": _usage(self._usage).model_dump()})
        return ending + DONE


def _data(content: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=to_json(content).decode())


async def _streamed(desk: Desk, handle: Handle, chunks: Chunks, metrics: Metrics) -> AsyncGenerator[bytes, None]:
    with metrics.stream():
        yield chunks.chunk({"role": "assistant", "content": ""})
        try:
            async with aclosing(with_pauses(handle.batches(), seconds=KEEP_ALIVE_SECONDS)) as batches:
                async for batch in batches:
                    if not batch:
                        yield KEEPALIVE_COMMENT
                    for event in batch:
                        if added := chunks.text(event):
                            yield chunks.chunk({"content": added})
                        if (ending := await _ending(event, desk, handle, chunks)) is not None:
                            yield ending
                            return
        except JourneymanError as error:
            yield _data(openai_error(Problem(503, "RUN_CANNOT_GO_ON", str(error)), "server_error"))


async def _ending(event: Event, desk: Desk, handle: Handle, chunks: Chunks) -> bytes | None:
    """What ends the stream, where an event does."""
    match event:
        case RunFailed():
            return _data(openai_error(_failure(event.error), "server_error"))
        case RunSuspended() if (await handle.status()).waiting:  # else it is one that was decided about since
            return chunks.chunk({"content": await _waiting_text(desk, handle)}) + chunks.end("stop")
        case RunFinished():
            return chunks.end(_finish_reason(event.status))
        case _:
            return None

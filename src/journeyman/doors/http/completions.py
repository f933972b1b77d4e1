"""OpenAI's chat completions, spoken by a governed agent: any client of that API can use an agent as if it were a model.

The agent uses its own tools. What needs a person is said in the answer, and the run goes on when they have decided.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from journeyman.app.durable import Handle
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
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
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.chat import agent_named, must_have_model
from journeyman.doors.http.common import Counted, Here, pending
from journeyman.doors.http.errors import FieldError, Problem
from journeyman.doors.http.metrics import Metrics
from journeyman.doors.http.sse import DONE, HEADERS, KEEP_ALIVE_SECONDS, EventStream, with_pauses

router = APIRouter(prefix="/v1", tags=["openai"])

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
        for status in sorted({400, 401, 403, 413, 422, 429, *statuses})
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
    messages: list[Said] = Field(min_length=1, max_length=1_000)
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

    @classmethod
    def of(cls, usage: Usage) -> CompletionUsage:
        return cls(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
        )


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
        **_answers(404, 502, 503, 504),
        200: {"model": Completion, "content": {"text/event-stream": {"schema": {"type": "string"}}}},
    },
)
async def complete(asked: CompletionRequest, service: Here, principal: Caller, metrics: Counted) -> Any:
    agent = agent_named(service, asked.model)
    must_have_model(service, agent)
    task, history = _conversation(asked.messages)
    handle = await service.app.start(agent, task, principal=principal, history=history)
    created = int(service.app.clock.time())
    if asked.stream:
        usage = asked.stream_options is not None and asked.stream_options.include_usage
        chunks = _Chunks(handle, created=created, model=asked.model, usage=usage)
        return EventStream(_streamed(service, handle, chunks, metrics), headers=HEADERS)
    response = await handle.result()
    if response.status is RunStatus.FAILED and response.error is not None:
        raise _failed(response.error)
    text = response.answer
    if response.status.waiting:
        text = _waiting(await pending(service, handle.run_id), handle)
    reason: Literal["stop", "length"] = "length" if response.status is RunStatus.LIMIT_REACHED else "stop"
    choice = Choice(message=CompletionMessage(content=text), finish_reason=reason)
    usage_told = CompletionUsage.of(response.usage)
    return Completion(id=_id(handle), created=created, model=asked.model, choices=[choice], usage=usage_told)


def _conversation(messages: list[Said]) -> tuple[str, list[Message]]:
    *before, last = messages
    if last.role != "user" or not last.text.strip():
        told = "the last message must be the user's, and say something"
        raise Problem(422, "VALIDATION_ERROR", told, fields=[FieldError(field="messages", message=told)])
    # Calls of a client's own tools are not ours to go on with; what was said around them is.
    history = [Message(role=_ROLES[item.role], content=item.text) for item in before if item.role in _ROLES]
    return last.text, [message for message in history if message.content]


def _id(handle: Handle) -> str:
    return f"chatcmpl-{handle.run_id}"


def _waiting(approvals: list[Approval], handle: Handle) -> str:
    calls = "; ".join(f"{item.tool_name} {to_json(item.arguments).decode()} ({item.id})" for item in approvals)
    told = calls or f"a call of run {handle.run_id}"
    return f"This waits for a person to decide about: {told}. The run goes on by itself when that is done."


def _failed(error: ErrorInfo) -> Problem:
    status = {ErrorCategory.RATE_LIMIT: 429, ErrorCategory.TIMEOUT: 504}.get(error.category, 502)
    guidance = f" ({error.user_guidance})" if error.user_guidance else ""
    return Problem(status, error.code, f"{error.message}{guidance}")


# --- streaming


class _Chunks:
    """Turns events into chunks. What was sent cannot be taken back, so a text that begins anew is held back first."""

    def __init__(self, handle: Handle, *, created: int, model: str, usage: bool) -> None:
        self._base = {"id": _id(handle), "object": "chat.completion.chunk", "created": created, "model": model}
        self._wants_usage = usage
        self._usage = Usage()
        self._step = ""
        self._held = False
        self._last = ""

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return format_sse_event(data_str=to_json({**self._base, "choices": choices}).decode())

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
            told = {**self._base, "choices": [], "usage": CompletionUsage.of(self._usage).model_dump()}
            ending += format_sse_event(data_str=to_json(told).decode())
        return ending + DONE


async def _streamed(service: Service, handle: Handle, chunks: _Chunks, metrics: Metrics) -> AsyncGenerator[bytes, None]:
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
                        if (ending := await _ending(event, service, handle, chunks)) is not None:
                            yield ending
                            return
        except JourneymanError as error:
            yield _error_event(Problem(503, "RUN_CANNOT_GO_ON", str(error)))


async def _ending(event: Event, service: Service, handle: Handle, chunks: _Chunks) -> bytes | None:
    """What ends the stream, where an event does."""
    match event:
        case RunFailed():
            return _error_event(_failed(event.error))
        case RunSuspended():
            told = _waiting(await pending(service, handle.run_id), handle)
            return chunks.chunk({"content": told}) + chunks.end("stop")
        case RunFinished():
            return chunks.end("length" if event.status is RunStatus.LIMIT_REACHED else "stop")
        case _:
            return None


def _error_event(problem: Problem) -> bytes:
    told = {"error": {"message": problem.detail, "type": "server_error", "param": None, "code": problem.code}}
    return format_sse_event(data_str=to_json(told).decode())

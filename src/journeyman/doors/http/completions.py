"""OpenAI's chat completions, spoken by a governed agent: any client of that API can use an agent as if it were a model.

The agent uses its own tools. What needs a person is said in the answer, and the run goes on when they have decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Header, Query, Request
from fastapi.sse import format_sse_event
from pydantic import BaseModel, Field
from pydantic_core import to_json

from journeyman.app import Agent
from journeyman.app.desk import Desk
from journeyman.app.handles import Handle
from journeyman.app.operations.table import MOST_AT_HAND, After, Most, Page, Paging
from journeyman.core.data import canonical_json, digest, new_id
from journeyman.core.errors import ErrorCategory, ErrorInfo, JourneymanError, StoreClosedError, StoreError
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
from journeyman.core.runs import Message, RunStatus, TaskInput, Usage
from journeyman.core.storing import NotedRequest, RunOrder
from journeyman.doors.http.chat import agent_named, ready_agent
from journeyman.doors.http.completion_request import WAITING, CompletionRequest, goes_on
from journeyman.doors.http.errors import Problem, openai_error
from journeyman.doors.http.events import DONE, EVENTS, EventStream
from journeyman.doors.http.operated import DeskDep, IdempotencyKey, JsonRoute

router = APIRouter(prefix="/v1", tags=["openai"], route_class=JsonRoute)

AWAY_SECONDS = 1.0
"""Between two looks at a store that is away."""
RETRY_SECONDS = 3600.0
"""How long after a request one that says of itself that it is sent again is taken for the same."""
EARLY_SECONDS = 5.0
"""How long after its retry a request may arrive that was sent before."""
MOST_EARLY = 1_000


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


FinishReason: TypeAlias = Literal["stop", "length", "content_filter"]


class WaitingApproval(BaseModel):
    """A call that a person must decide about."""

    id: str
    tool_name: str
    url: str = Field(description="Where it is decided about: POST to its /approve or /deny.")


class RunInfo(BaseModel):
    """The run behind a completion, which OpenAI's format has no place for."""

    run_id: str
    status: RunStatus
    url: str = Field(description="The run on the service's page.")
    approvals: list[WaitingApproval] = Field(
        description="What waits for a person. Sending the same request again, or 'continue', goes on with this run."
    )


class CompletionMessage(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str


class Choice(BaseModel):
    index: int = 0
    message: CompletionMessage
    finish_reason: FinishReason = Field(description="'content_filter' where a person must decide first.")


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
    journeyman: RunInfo


class ModelView(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "journeyman"
    tools: list[str] = Field(description="What this agent can do by itself.")


class Models(Page):
    object: Literal["list"] = "list"
    data: list[ModelView]


def _model(agent: Agent) -> ModelView:
    return ModelView(id=agent.name, tools=[item.name for item in agent.tools])


@router.get("/models", summary="Agents, as models", responses=_answers())
async def list_models(
    desk: DeskDep, limit: Annotated[Most, Query()] = MOST_AT_HAND, after: Annotated[After, Query()] = None
) -> Models:
    agents, page = Paging(limit, after).of(list(desk.service.agents.values()), key=lambda agent: agent.name)
    return Models(data=[_model(agent) for agent in agents], **page)


@router.get("/models/{name}", summary="One agent, as a model", responses=_answers(404))
async def show_model(name: str, desk: DeskDep) -> ModelView:
    return _model(agent_named(desk, name))


@router.post(
    "/chat/completions",
    summary="Ask an agent as if it were a model",
    response_model=Completion,
    responses={
        **_answers(404, 409, 502, 503, 504),
        200: {"model": Completion, "content": {"text/event-stream": {"schema": EVENTS}}},
    },
)
async def complete(
    body: CompletionRequest,
    request: Request,
    desk: DeskDep,
    key: IdempotencyKey = None,
    retries: Annotated[
        int,
        Header(
            alias="X-Stainless-Retry-Count",
            ge=0,
            le=1_000,
            description="What OpenAI's clients count. More than 0 starts nothing where the request has come before.",
        ),
    ] = 0,
) -> Any:
    """An error after the run has begun says 'X-Should-Retry: false': what it has done is done."""
    schema = None if body.response_format is None else body.response_format.schema_of_answer
    agent = ready_agent(desk, body.model, schema, field="response_format")
    asked = await _asked(body, agent, desk, key=key, retried=retries > 0)
    handle = await _started(agent, desk, asked, request.app.state.early_retries)
    request.state.run_id = handle.run_id
    answer = Answer(desk, handle, asked, model=body.model, page=str(request.base_url))
    if body.stream:
        usage = body.stream_options is not None and body.stream_options.include_usage
        chunks = Chunks(answer, usage=usage, data=agent.output is not None)
        return EventStream(_streamed(answer, chunks))
    response = await handle.result()
    broken = response.status is RunStatus.FAILED or (
        agent.output is not None and response.status is RunStatus.LIMIT_REACHED
    )
    if broken and response.error is not None:
        raise _failure(response.error)
    info = await answer.info(response.status)
    text = await answer.waiting_text(info) if response.status.waiting else response.answer
    choice = Choice(message=CompletionMessage(content=text), finish_reason=_finish_reason(response.status))
    return Completion(
        id=answer.id,
        created=answer.created,
        model=body.model,
        choices=[choice],
        usage=_usage(response.usage),
        journeyman=info,
    )


# --- which run answers


@dataclass(slots=True)
class Asked:
    """A request, and the run that answers it if it has come before."""

    task: TaskInput
    history: list[Message]
    agent: Agent
    run_id: str | None = None
    begun: bool = False
    digest: str | None = None
    """Under which it is noted, so that it is known when it comes again; None where its run is known otherwise."""
    unanswered: bool = False
    retried: bool = False
    """Whether its client says that it has sent it before."""

    def same(self, order: RunOrder) -> bool:
        asked = (order.agent["name"], order.agent.get("output"), _said(order.task, order.history))
        return asked == (self.agent.name, self.agent.output, _said(self.task, self.history))


def _said(task: TaskInput, history: Sequence[Message]) -> list[Any]:
    """All that was said, whether its images and files are kept already or not."""
    asked = [[task.description, [medium.digest for medium in task.media]]]
    return [*asked, *([item.role, item.content, [medium.digest for medium in item.media]] for item in history)]


async def _asked(body: CompletionRequest, agent: Agent, desk: Desk, *, key: str | None, retried: bool) -> Asked:
    task, history = body.conversation()
    asked = Asked(task, history, agent, retried=retried)
    if key is not None:
        asked.run_id = desk.run_id_for("completions", key)
        return asked
    if (waiting := await _told_to_wait(body, desk, asked)) is not None:
        asked.run_id, asked.begun = waiting, True
        return asked
    # Clients that know of no idempotency key send the same again after a fault, or to hear what a person has decided.
    said = canonical_json(_said(task, history))
    form = () if agent.output is None else (canonical_json(agent.output),)
    asked.digest = digest("completions", desk.principal.id, agent.name, said, *form)
    noted = await desk.requests.find(asked.digest)
    if noted is not None and await desk.own_run(noted.run_id) is not None:
        again = retried and desk.app.clock.time() - noted.asked_at < RETRY_SECONDS
        asked.begun, asked.unanswered = again or noted.unanswered, noted.unanswered
    asked.run_id = noted.run_id if noted is not None and asked.begun else new_id("run")
    return asked


async def _told_to_wait(body: CompletionRequest, desk: Desk, asked: Asked) -> str | None:
    """The run that this conversation waits for, where it asks for no more than to hear of it."""
    run_id = body.waiting_run()
    row = None if run_id is None else await desk.own_run(run_id)
    if row is None or row.agent_name != asked.agent.name:
        return None
    order = await desk.own_order(row.id)
    again = order is not None and order.task.description == asked.task.description
    return row.id if again or goes_on(asked.task.description) else None


async def _started(agent: Agent, desk: Desk, asked: Asked, early: dict[str, float]) -> Handle:
    """``early`` has the digests of requests of which a retry has come and not yet the first attempt, and when."""
    app, run_id = desk.app, asked.run_id
    if asked.begun and run_id is not None:
        return await app.handle(run_id)
    if asked.digest is not None and run_id is not None:
        # Before it begins: a client whose connection breaks now must find it.
        request = NotedRequest(digest=asked.digest, run_id=run_id, asked_at=app.clock.time())
        # A retry that arrives together with the request itself, or before it, shares its run.
        overtaken = not asked.retried and request.asked_at - early.pop(asked.digest, 0.0) < EARLY_SECONDS
        since = request.asked_at - RETRY_SECONDS if asked.retried or overtaken else None
        first_retry = early.setdefault(asked.digest, request.asked_at) if asked.retried else None
        noted = await desk.requests.note(request, unless_since=since)
        if first_retry is not None and noted.asked_at < first_retry:
            early.pop(asked.digest, None)  # the request itself was here before
        while len(early) > MOST_EARLY:
            early.pop(next(iter(early)))
        return await app.start(agent, asked.task, principal=desk.principal, history=asked.history, run_id=noted.run_id)
    if run_id is not None and await desk.begun_before(run_id, same=asked.same) is not None:
        return await app.handle(run_id)
    handle = await app.start(agent, asked.task, principal=desk.principal, history=asked.history, run_id=run_id)
    if run_id is not None:  # the key may have come with another question at the same time
        await desk.begun_before(run_id, same=asked.same)
    return handle


# --- what the stream and the one answer have in common


class Answer:
    """A run as a completion."""

    def __init__(self, desk: Desk, handle: Handle, asked: Asked, *, model: str, page: str) -> None:
        self.desk = desk
        self.handle = handle
        self.model = model
        self.id = f"chatcmpl-{handle.run_id}"
        self.created = int(desk.app.clock.time())
        self._asked = asked
        self._page = page

    async def info(self, status: RunStatus) -> RunInfo:
        """The run as it is about to be told; whether its client has to ask again is noted."""
        run_id, asked = self.handle.run_id, self._asked
        if asked.digest is not None and status.waiting is not asked.unanswered:
            await self.desk.requests.mark(asked.digest, run_id, unanswered=status.waiting)
        pending = await self.desk.app.approvals.pending(run_id=run_id) if status.waiting else ()
        approvals = [
            WaitingApproval(id=item.id, tool_name=item.tool_name, url=f"{self._page}api/v1/approvals/{item.id}")
            for item in pending
        ]
        return RunInfo(run_id=run_id, status=status, url=f"{self._page}#/runs/{run_id}", approvals=approvals)

    async def waiting_text(self, info: RunInfo) -> str:
        if info.status is RunStatus.STUCK:
            row = await self.desk.run(info.run_id)
            return f"This cannot go on by itself: {row.trouble}. See {info.url} (run {info.run_id})"
        about = "; ".join(f"{item.tool_name} ({item.id})" for item in info.approvals) or "a call that was interrupted"
        return (
            f"{WAITING}: {about}. See {info.url} for what exactly. The run goes on by itself when that is done; "
            f"say 'continue' to hear what came of it (run {info.run_id})"
        )


def _usage(usage: Usage) -> CompletionUsage:
    return CompletionUsage(
        prompt_tokens=usage.input_tokens, completion_tokens=usage.output_tokens, total_tokens=usage.total_tokens
    )


def _finish_reason(status: RunStatus) -> FinishReason:
    if status.waiting:
        # Of the reasons that clients know, the one for an answer that was held back.
        return "content_filter"
    return "length" if status is RunStatus.LIMIT_REACHED else "stop"


def _failure(error: ErrorInfo) -> Problem:
    status = {ErrorCategory.RATE_LIMIT: 429, ErrorCategory.TIMEOUT: 504}.get(error.category, 502)
    guidance = f" ({error.user_guidance})" if error.user_guidance else ""
    return Problem(status, error.code, f"{error.message}{guidance}")


# --- the stream


class Chunks:
    """Turns events into chunks. What was sent cannot be taken back, so a text that begins anew is held back first."""

    def __init__(self, answer: Answer, *, usage: bool, data: bool = False) -> None:
        self._base = {
            "id": answer.id,
            "object": "chat.completion.chunk",
            "created": answer.created,
            "model": answer.model,
        }
        self._wants_usage = usage
        self._usage = Usage()
        self._step: list[str] = []
        self._held = False
        self._last = ""
        self.data = data
        """Whether the answer is data: then only what was checked is sent, and nothing that was written on the way."""

    def chunk(self, delta: dict[str, Any]) -> bytes:
        return _data({**self._base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def text(self, event: Event) -> str:
        """What an event adds to the answer."""
        match event:
            case MessageReceived() if self.data:
                self._usage += event.usage
                return ""
            case TextDelta() | StepRestarted() if self.data:
                return ""
            case TextDelta():
                if self._held:
                    return ""
                self._step.append(event.text)
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
        begun = "".join(self._step)
        self._step, self._held, self._last = [], False, event.text.strip()
        rest = event.text[len(begun) :] if event.text.startswith(begun) else f"\n\n{event.text}"
        return rest + "\n\n" if event.calls and event.text else rest

    def end(self, info: RunInfo) -> bytes:
        choice = {"index": 0, "delta": {}, "finish_reason": _finish_reason(info.status)}
        ending = _data({**self._base, "choices": [choice], "journeyman": info.model_dump(mode="json")})
        if self._wants_usage:
            ending += _data({**self._base, "choices": [], "usage": _usage(self._usage).model_dump()})
        return ending + DONE


def _data(content: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=to_json(content).decode())


async def _streamed(answer: Answer, chunks: Chunks) -> AsyncGenerator[bytes, None]:
    """The chunks of what is found together, to the end of the answer."""
    yield chunks.chunk({"role": "assistant", "content": ""})
    try:
        async with aclosing(answer.handle.batches()) as batches:
            async for batch in batches:
                said = b""
                for event in batch:
                    if added := chunks.text(event):
                        said += chunks.chunk({"content": added})
                    if isinstance(event, (RunFailed, RunSuspended, RunFinished)):
                        if said:
                            yield said
                            said = b""
                        if (ending := await _ending(event, answer, chunks)) is not None:
                            yield ending
                            return
                if said:
                    yield said
    except JourneymanError as error:
        yield _data(openai_error(Problem(503, "RUN_CANNOT_GO_ON", str(error)), "server_error"))


async def _ending(event: Event, answer: Answer, chunks: Chunks) -> bytes | None:
    """What ends the stream, where an event does. That the store is away for a while, and cannot tell, ends none."""
    while True:
        try:
            match event:
                case RunFailed():
                    return _data(openai_error(_failure(event.error), "server_error"))
                case RunSuspended() if (status := await answer.handle.status()).waiting:  # else it was decided since
                    info = await answer.info(status)
                    return chunks.chunk({"content": await answer.waiting_text(info)}) + chunks.end(info)
                case RunFinished(status=RunStatus.LIMIT_REACHED, error=ErrorInfo() as error) if chunks.data:
                    return _data(openai_error(_failure(error), "server_error"))
                case RunFinished():
                    return chunks.end(await answer.info(event.status))
            return None
        except StoreClosedError:
            raise
        except StoreError:
            await asyncio.sleep(AWAY_SECONDS)

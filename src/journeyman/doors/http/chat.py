"""Chat: a message goes in, the run's events come out, as a stream or as one answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, Field, field_validator

from journeyman.app import Agent, Handle
from journeyman.app.desk import Desk
from journeyman.app.service import Service
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import new_id
from journeyman.core.errors import ErrorInfo
from journeyman.core.messages import Message, Usage
from journeyman.core.runs import CHAT_MESSAGE_LIMIT, TaskInput
from journeyman.core.storing import RunOrder
from journeyman.doors.http.common import (
    Body,
    DeskDep,
    IdempotencyKey,
    JsonRoute,
    RunAnswer,
    ServiceDep,
    SessionId,
    answer_fields,
)
from journeyman.doors.http.errors import FieldError, Problem, answers
from journeyman.doors.http.health import MetricsDep
from journeyman.doors.http.sse import last_event_id, stream_run, wants_json

router = APIRouter(prefix="/api/v1/chat", tags=["chat"], route_class=JsonRoute)


class ChatRequest(Body):
    """Something to say."""

    message: str = Field(min_length=1, max_length=CHAT_MESSAGE_LIMIT, examples=["Remind me to buy milk"])
    session_id: SessionId | None = Field(default=None, description="Go on with this conversation; else a new one.")
    agent: str | None = Field(default=None, max_length=128, description="Who is to answer.", examples=["assistant"])
    run_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{8,64}$",
        description="A name of your own for the run. Sending the same request again then starts nothing new: it goes "
        "on with the run's events after Last-Event-ID.",
    )
    max_iterations: int | None = Field(default=None, ge=1, le=100)

    @field_validator("message")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("a message must say something, this one is blank")
        return value


class ChatAnswer(RunAnswer):
    """What came of a message: an answer, a failure, or a question to a person."""

    session_id: str
    answer: str
    confidence: float
    tool_calls: list[ToolCallRecord]
    total_iterations: int
    usage: Usage
    error: ErrorInfo | None


class History(BaseModel):
    session_id: str
    messages: list[Message]


_STREAM: dict[str, Any] = {
    "description": "The run's events; with 'Accept: application/json' one answer, when the run has ended or needs a "
    "person, or waits behind one that does.",
    "content": {
        "text/event-stream": {
            "schema": {"type": "string"},
            "example": 'event: answer\ndata: {"type":"answer","seq":9,"text":"Noted."}\nid: 9\n\ndata: [DONE]\n\n',
        }
    },
}


@router.post(
    "",
    summary="Say something",
    response_model=ChatAnswer,
    responses={**answers(404, 409), 200: {**_STREAM, "model": ChatAnswer}},
)
async def chat(
    body: ChatRequest,
    request: Request,
    service: ServiceDep,
    desk: DeskDep,
    metrics: MetricsDep,
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
    key: IdempotencyKey = None,
) -> Any:
    """Starts a run and streams its events; each fact's id is its number in the run. The run goes on when the client
    leaves: come back with GET /api/v1/runs/{run_id}/events and Last-Event-ID."""
    after = last_event_id(last)
    run_id = body.run_id or desk.run_id_for("chat", key)
    begun = await _begun(body, desk, run_id=run_id, resumes=after > 0)
    handle, session_id = begun or await _started(body, service, desk, run_id=run_id)
    request.state.run_id = handle.run_id
    headers = {"X-Session-ID": session_id, "Content-Location": f"/api/v1/runs/{handle.run_id}/events"}
    if wants_json(accept):
        answer = await _answer(desk, handle, session_id)
        return Response(answer.model_dump_json(), media_type="application/json", headers=headers)
    return stream_run(handle, after=after, metrics=metrics, headers=headers)


async def _begun(body: ChatRequest, desk: Desk, *, run_id: str | None, resumes: bool) -> tuple[Handle, str] | None:
    """The run of an earlier request, where this is the same one sent again, and its session."""

    def same(order: RunOrder) -> bool:
        asked = order.task.description == body.message and body.agent in (None, order.agent["name"])
        session_id = order.task.session_id
        return asked and session_id is not None and body.session_id in (None, session_id)

    order, runs = None, desk.app.store.runs
    if run_id is not None:
        order = await desk.begun_before(run_id, same=same)
    elif resumes and body.session_id is not None:
        await desk.must_own_session(body.session_id, new=True)
        for row in await runs.list(session_id=body.session_id, limit=1):
            latest = await runs.order(row.id)
            order = latest if latest is not None and same(latest) else None
    if order is None and resumes:
        message = "it is the number of an event, and nothing that this request asks for has been begun"
        raise Problem(
            422,
            "NOTHING_TO_RESUME",
            f"Last-Event-ID: {message}",
            recover_action="Come back to a run with GET /api/v1/runs/{id}/events, or leave Last-Event-ID out",
            fields=[FieldError(field="Last-Event-ID", message=message)],
        )
    if order is None or order.task.session_id is None:
        return None
    return await desk.app.handle(order.run_id), order.task.session_id


async def _started(body: ChatRequest, service: Service, desk: Desk, *, run_id: str | None) -> tuple[Handle, str]:
    agent = agent_named(service, body.agent)
    must_have_model(service, agent)
    session_id = body.session_id or new_id("sess")
    await desk.must_own_session(session_id, new=True)
    task = TaskInput(description=body.message, max_iterations=body.max_iterations)
    handle = await service.app.start(agent, task, principal=desk.principal, session_id=session_id, run_id=run_id)
    # The same request may have come twice at once; then the first order kept counts, with the session it made.
    first = run_id and await _begun(body, desk, run_id=run_id, resumes=False)
    return first or (handle, session_id)


def agent_named(service: Service, name: str | None) -> Agent:
    agent = service.default_agent if name is None else service.agents.get(name)
    if agent is None:
        known = ", ".join(map(repr, service.agents))
        raise Problem(404, "AGENT_NOT_FOUND", f"there is no agent {name!r}; there are {known}")
    return agent


def must_have_model(service: Service, agent: Agent) -> None:
    """Refuse to keep a run that no model could carry out."""
    if (why := service.no_model(agent)) is not None:
        raise Problem(
            503,
            "NO_MODEL",
            why,
            recover_action="Set up a language model and start the service again; tasks, tools, search and approvals "
            "work without one",
        )


async def _answer(desk: Desk, handle: Handle, session_id: str) -> ChatAnswer:
    outcome = await desk.outcome(handle, session_id=session_id)
    response = outcome.response
    return ChatAnswer(
        **answer_fields(handle.run_id, outcome),
        session_id=session_id,
        answer="" if response is None else response.answer,
        confidence=0.0 if response is None else response.confidence,
        tool_calls=list(outcome.calls),
        total_iterations=0 if response is None else response.total_iterations,
        usage=Usage() if response is None else response.usage,
        error=None if response is None else response.error,
    )


@router.get("/history/{session_id}", summary="What was said in a session", responses=answers(404))
async def history(
    session_id: str,
    desk: DeskDep,
    last: Annotated[int | None, Query(ge=1, le=10_000, description="Only the latest so many messages.")] = None,
) -> History:
    """In order. Messages of a run are added when it has ended."""
    await desk.session(session_id)
    messages = await desk.app.store.conversations.messages(session_id, last=last)
    return History(session_id=session_id, messages=list(messages))

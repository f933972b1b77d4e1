"""Chat: a message goes in, the run's events come out, as a stream or as one answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, Field, field_validator

from journeyman.app import Agent
from journeyman.app.durable import Handle
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import new_id
from journeyman.core.errors import ErrorInfo
from journeyman.core.messages import Message, Usage
from journeyman.core.principals import Principal
from journeyman.core.runs import CHAT_MESSAGE_LIMIT, AgentResponse, RunStatus, TaskInput
from journeyman.doors.http.auth import Caller, sees
from journeyman.doors.http.common import Counted, Here, SessionId, must_own_session, pending
from journeyman.doors.http.errors import Problem, answers
from journeyman.doors.http.sse import last_event_id, stream_run

router = APIRouter(prefix="/api/v1/chat", tags=["chat"])


class ChatRequest(BaseModel):
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
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("a message must say something, this one is blank")
        return value


class ChatAnswer(BaseModel):
    """What came of a message: an answer, a failure, or a question to a person."""

    run_id: str
    session_id: str
    status: RunStatus
    answer: str
    confidence: float
    tool_calls: list[ToolCallRecord]
    total_iterations: int
    usage: Usage
    error: ErrorInfo | None
    approvals: list[Approval] = Field(description="What must be decided before the run goes on.")


class History(BaseModel):
    session_id: str
    messages: list[Message]


_STREAM: dict[str, Any] = {
    "description": "The run's events; with 'Accept: application/json' one answer, when the run has ended or needs a "
    "person.",
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
    said: ChatRequest,
    service: Here,
    principal: Caller,
    metrics: Counted,
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
) -> Any:
    """Starts a run and streams its events; each fact's id is its number in the run. The run goes on when the client
    leaves: come back with GET /api/v1/runs/{run_id}/events and Last-Event-ID."""
    after = last_event_id(last)
    handle, session_id = await _started(said, service, principal)
    headers = {
        "X-Run-ID": handle.run_id,
        "X-Session-ID": session_id,
        "Content-Location": f"/api/v1/runs/{handle.run_id}/events",
    }
    if wants_json(accept):
        body = await answer_of(service, handle, session_id)
        return Response(body.model_dump_json(), media_type="application/json", headers=headers)
    return stream_run(handle, after=after, metrics=metrics, headers=headers)


def wants_json(accept: str) -> bool:
    return "application/json" in accept and "text/event-stream" not in accept


async def _started(said: ChatRequest, service: Service, principal: Principal) -> tuple[Handle, str]:
    if said.run_id is not None and (known := await _known(said, service, principal)) is not None:
        return known
    agent = agent_named(service, said.agent)
    must_have_model(service, agent)
    session_id = said.session_id or new_id("sess")
    await must_own_session(service, session_id, principal, new=True)
    task = TaskInput(description=said.message, max_iterations=said.max_iterations)
    handle = await service.app.start(agent, task, principal=principal, session_id=session_id, run_id=said.run_id)
    return handle, session_id


async def _known(said: ChatRequest, service: Service, principal: Principal) -> tuple[Handle, str] | None:
    """The run of an earlier request with the same name."""
    assert said.run_id is not None
    order = await service.store.runs.order(said.run_id)
    if order is None:
        return None
    owner = None if order.principal is None else order.principal.id
    session_id = order.task.session_id
    same = order.task.description == said.message and said.session_id in (None, session_id)
    if not same or session_id is None or not sees(principal, owner):
        raise Problem(
            409, "RUN_EXISTS", f"a run named {said.run_id!r} exists and is another one", recover_action="Use a new name"
        )
    return await service.app.handle(said.run_id), session_id


def agent_named(service: Service, name: str | None) -> Agent:
    agent = service.default_agent if name is None else service.agents.get(name)
    if agent is None:
        known = ", ".join(map(repr, service.agents))
        raise Problem(404, "AGENT_NOT_FOUND", f"there is no agent {name!r}; there are {known}")
    return agent


def must_have_model(service: Service, agent: Agent) -> None:
    """A run that nobody could carry out is not even kept."""
    if (why := service.no_model(agent)) is not None:
        raise Problem(
            503,
            "NO_MODEL",
            why,
            recover_action="Set up a language model and start the service again; tasks, tools, search and approvals "
            "work without one",
        )


async def answer_of(service: Service, handle: Handle, session_id: str) -> ChatAnswer:
    response: AgentResponse = await handle.result()
    return ChatAnswer(
        run_id=handle.run_id,
        session_id=session_id,
        status=response.status,
        answer=response.answer,
        confidence=response.confidence,
        tool_calls=list(response.tool_calls),
        total_iterations=response.total_iterations,
        usage=response.usage,
        error=response.error,
        approvals=await pending(service, handle.run_id) if response.status.waiting else [],
    )


@router.get("/history/{session_id}", summary="What was said in a session", responses=answers(404))
async def history(
    session_id: str,
    service: Here,
    principal: Caller,
    last: Annotated[int | None, Query(ge=1, le=10_000, description="Only the latest so many messages.")] = None,
) -> History:
    """In order. Messages of a run are added when it has ended."""
    await must_own_session(service, session_id, principal, new=False)
    messages = await service.store.conversations.messages(session_id, last=last)
    return History(session_id=session_id, messages=list(messages))

"""What starts a run over HTTP: a message of a chat, whose events come out as a stream or as one answer; and calls of
tools, one by one or in chains."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, Field, field_validator

from journeyman.app import Agent
from journeyman.app.chains import MOST_STEPS, literal, start_chain
from journeyman.app.desk import Desk, InvalidInputError, Outcome
from journeyman.app.handles import Handle
from journeyman.app.operations.service import unknown_tool
from journeyman.app.operations.table import Body, Object, SessionId, refused
from journeyman.core.calls import ToolCallRecord
from journeyman.core.content import MEDIUM_BYTES, MESSAGE_MEDIA, REQUEST_MEDIA_BYTES, Medium, check_media
from journeyman.core.data import new_id
from journeyman.core.errors import ConfigurationError, ErrorInfo, InvalidDataError
from journeyman.core.gaps import ToolGapReport
from journeyman.core.runs import CHAT_MESSAGE_LIMIT, TaskInput, Usage
from journeyman.core.storing import ChainStep, RunOrder
from journeyman.doors.http.errors import FieldError, Problem, answers
from journeyman.doors.http.events import EVENTS, LastEventId, stream_run, wants_json
from journeyman.doors.http.operated import FORM, DeskDep, IdempotencyKey, JsonRoute, RunAnswer, answer_fields

router = APIRouter(prefix="/api/v1/chat", tags=["chat"], route_class=JsonRoute)
calls = APIRouter(prefix="/api/v1", tags=["tools"], route_class=JsonRoute)


class ChatMedium(Body):
    """An image, a sound or a document."""

    data: str = Field(min_length=1, description="Its bytes in base64.")
    name: str = Field(default="", max_length=255, examples=["receipt.png"])
    mime_type: str = Field(
        default="", max_length=255, description="Counts where the bytes do not show it.", examples=["image/png"]
    )


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
    output: dict[str, Any] | None = Field(
        default=None,
        description="A JSON Schema: the answer is then data that fits it, as 'output'. Wins over the agent's.",
        examples=[{"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}],
    )

    media: list[ChatMedium] = Field(
        default=[],
        max_length=MESSAGE_MEDIA,
        description=f"Images and files that belong to it; {MEDIUM_BYTES:,} bytes each, {REQUEST_MEDIA_BYTES:,} in all.",
    )

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
    output: Any = Field(description="The answer as data, where the message or the agent has a schema for it.")
    confidence: float
    tool_calls: list[ToolCallRecord]
    total_iterations: int
    usage: Usage
    error: ErrorInfo | None
    gap: ToolGapReport | None = Field(description="What no tool could do, where nothing was done of what was asked.")


class Accepted(BaseModel):
    """A message that was taken."""

    run_id: str = Field(description="Its events are at /api/v1/events?run=… and /api/v1/runs/{run_id}/events.")
    session_id: str


_STREAM: dict[str, Any] = {
    "description": "The run's events; with 'Accept: application/json' one answer, when the run has ended or needs a "
    "person, or waits behind one that does.",
    "content": {
        "text/event-stream": {
            "schema": EVENTS,
            "example": 'event: answer\ndata: {"type":"answer","seq":9,"text":"Noted."}\nid: 9\n\ndata: [DONE]\n\n',
        }
    },
}


_FORM = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("message", "session_id", "agent", "run_id")},
        "max_iterations": {"type": "integer"},
        "output": {"type": "object"},
        "file": {"type": "array", "items": {"type": "string", "format": "binary"}, "maxItems": MESSAGE_MEDIA},
    },
    "required": ["message"],
    "additionalProperties": False,
}
"""Of a message with files as they are: what a JSON body says, with the files in the place of ``media``."""


@router.post(
    "",
    summary="Say something",
    response_model=ChatAnswer,
    openapi_extra={"requestBody": {"content": {FORM: {"schema": _FORM}}}},
    responses={
        **answers(404, 409),
        200: {**_STREAM, "model": ChatAnswer},
        202: {"model": Accepted, "description": "With 'Prefer: respond-async': the run is stored and begun."},
    },
)
async def chat(
    body: ChatRequest,
    request: Request,
    desk: DeskDep,
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    last: LastEventId = "",
    key: IdempotencyKey = None,
    prefer: Annotated[
        str, Header(max_length=200, description="'respond-async': answer at once, without waiting for the run.")
    ] = "",
) -> Any:
    """Starts a run and streams its events; each fact's id is its number in the run. The run goes on when the client
    leaves: come back with GET /api/v1/runs/{run_id}/events and Last-Event-ID."""
    after = int(last or 0)
    run_id = desk.run_id_for("chat", key) if body.run_id is None else body.run_id
    if body.run_id is not None and await desk.own_run(body.run_id) is None:
        run_id = desk.own_run_id(body.run_id)  # the caller's name for it, and not the id of a run that is theirs
    media = await asyncio.to_thread(_media, body) if body.media else ()
    begun = await _begun(body, desk, media, run_id=run_id, resumes=after > 0)
    later = "respond-async" in {item.strip().lower() for item in prefer.replace(";", ",").split(",")}
    text = later or not wants_json(accept)
    handle, session_id = begun or await _started(body, desk, media, run_id=run_id, text=text)
    request.state.run_id = handle.run_id
    headers = {"X-Session-ID": session_id, "Content-Location": f"/api/v1/runs/{handle.run_id}/events"}
    if later:
        accepted = Accepted(run_id=handle.run_id, session_id=session_id)
        headers["Preference-Applied"] = "respond-async"
        return Response(accepted.model_dump_json(), 202, headers=headers, media_type="application/json")
    if wants_json(accept):
        answer = await _answer(desk, handle, session_id)
        return Response(answer.model_dump_json(), media_type="application/json", headers=headers)
    return stream_run(handle, after=after, headers=headers)


def _media(body: ChatRequest) -> tuple[Medium, ...]:
    media: list[Medium] = []
    for at, item in enumerate(body.media):
        try:
            media.append(Medium.from_base64(item.data, mime_type=item.mime_type, name=item.name))
            check_media(media)
        except InvalidDataError as error:
            raise refused(f"media.{at}.data", error.problems[0][1]) from None
        except ValueError as error:
            raise refused("media", str(error).removeprefix("media: ")) from None
    return tuple(media)


async def _begun(
    body: ChatRequest, desk: Desk, media: Sequence[Medium], *, run_id: str | None, resumes: bool
) -> tuple[Handle, str] | None:
    """The run of an earlier request, where this is the same one sent again, and its session."""

    def same(order: RunOrder) -> bool:
        asked = order.task.description == body.message and body.agent in (None, order.agent["name"])
        asked = asked and body.output in (None, order.agent.get("output"))
        asked = asked and [medium.digest for medium in order.task.media] == [medium.digest for medium in media]
        session_id = order.task.session_id
        return asked and session_id is not None and body.session_id in (None, session_id)

    order = None
    if run_id is not None:
        order = await desk.begun_before(run_id, same=same)
    elif resumes and body.session_id is not None:
        await desk.must_own_session(body.session_id, new=True)
        for row in await desk.runs(session_id=body.session_id, principal_id=desk.principal.id, limit=1):
            latest = await desk.own_order(row.id)
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


async def _started(
    body: ChatRequest, desk: Desk, media: Sequence[Medium], *, run_id: str | None, text: bool
) -> tuple[Handle, str]:
    agent = ready_agent(desk, body.agent, body.output, field="output")
    session_id = body.session_id or new_id("sess")
    task = TaskInput(description=body.message, max_iterations=body.max_iterations, media=media)
    async with desk.begins_in(session_id):
        handle = await desk.app.start(agent, task, principal=desk.principal, session_id=session_id, run_id=run_id)
        if text:
            # At once, before its model is asked: whoever wants to read along is about to come.
            handle.stream_text()
    # The same request may have come twice at once; then the first order kept counts, with the session it made.
    first = run_id and await _begun(body, desk, media, run_id=run_id, resumes=False)
    return first or (handle, session_id)


def agent_named(desk: Desk, name: str | None) -> Agent:
    agents = desk.service.agents
    agent = desk.service.default_agent if name is None else agents.get(name)
    if agent is None:
        raise Problem(404, "AGENT_NOT_FOUND", f"Agent not found; there are {', '.join(map(repr, agents))}")
    return agent


def ready_agent(desk: Desk, name: str | None, schema: dict[str, Any] | None, *, field: str) -> Agent:
    """An agent that a model answers for: no run is kept that none could carry out. With a client's schema, which is
    ``field`` of its request, the agent answers with data that fits."""
    agent = agent_named(desk, name)
    try:
        agent = agent if schema is None else agent.with_output(schema)
    except InvalidDataError as error:
        raise refused(field, error.problems[0][1]) from None
    if (why := desk.service.no_model(agent)) is not None:
        hint = (
            "Set up a language model and start the service again; tasks, tools, search and approvals work without one"
        )
        raise Problem(503, "NO_MODEL", why, recover_action=hint)
    return agent


async def _answer(desk: Desk, handle: Handle, session_id: str) -> ChatAnswer:
    outcome = await desk.outcome(handle, session_id=session_id)
    response = outcome.response
    return ChatAnswer(
        **answer_fields(handle.run_id, outcome),
        session_id=session_id,
        answer="" if response is None else response.answer,
        output=None if response is None else response.plain_output,
        confidence=0.0 if response is None else response.confidence,
        tool_calls=list(outcome.calls),
        total_iterations=0 if response is None else response.total_iterations,
        usage=Usage() if response is None else response.usage,
        error=None if response is None else response.error,
        gap=None if response is None else response.gap,
    )


# --- calls

_PERSON: dict[int | str, dict[str, Any]] = {202: {"description": "It waits for a person"}}


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


@calls.post("/chains", summary="Call tools one after another", responses={**answers(404, 409), **_PERSON})
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


@calls.post("/tools/{name}/call", summary="Call one tool", responses={**answers(404, 409), **_PERSON})
async def call_tool(
    name: str, body: CallRequest, response: Response, desk: DeskDep, key: IdempotencyKey = None
) -> CallAnswer:
    """Governed like any other call. Answers when it has ended (200), well or not, or needs a person (202)."""
    if name not in desk.app.library:
        raise unknown_tool(desk, name)
    step = Step(tool=name, args=literal(body.arguments))
    run_id, outcome = await _carried_out(desk, [step], body.session_id, key=key)
    response.status_code = 202 if outcome.kind == "waiting" else 200
    return CallAnswer(**answer_fields(run_id, outcome), record=next(iter(outcome.calls), None))


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
        raise InvalidInputError("INVALID_CHAIN", "steps", str(error)) from None
    if run_id is not None:  # the key may have come with another call at the same time
        await desk.begun_before(run_id, same=same)
    return handle.run_id, await desk.outcome(handle, session_id=session_id)

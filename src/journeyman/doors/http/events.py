"""Events of runs as server-sent events: of one, or of many on one connection, which browsers allow few of.

A fact's id is its number in the run, so that a client which comes back with ``Last-Event-ID`` misses nothing and gets
nothing twice. Signals have no id. The end is ``data: [DONE]``. Results that are kept apart are streamed here, too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic import Field
from pydantic_core import from_json, to_json
from starlette.types import Receive, Scope, Send

from journeyman.app import rendered
from journeyman.app.desk import InvalidInputError, NotFoundError
from journeyman.app.handles import Handle, News, news_of
from journeyman.app.operations.runs import artifact_parts
from journeyman.app.operations.table import Id, Page, page_of
from journeyman.core.data import iso_time
from journeyman.core.errors import JourneymanError
from journeyman.core.events import CallFinished, Event, MessageReceived, RunStarted
from journeyman.doors.http.errors import answers
from journeyman.doors.http.operated import DeskDep, JsonRoute

KEEP_ALIVE_SECONDS = 15.0
EVENTS: dict[str, Any] = {
    "type": "object",
    "description": "One server-sent event. The last one's data is [DONE].",
    "properties": {name: {"type": "string"} for name in ("event", "data", "id")},
}
"""For the OpenAPI document: what a stream is made of."""
DONE = format_sse_event(data_str="[DONE]")
_REPLACED = {"time", "started", "agent", "history"}
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


LastEventId = Annotated[str, Header(alias="Last-Event-ID", pattern="^[0-9]{0,9}$", description="An event's id.")]


def as_json(event: Event) -> bytes:
    """An event as clients see it: of the agent its name and model, and no history, which clients have already.

    Of a call also what it came to, for people; the words of tools that have their own come with the end of the step.
    Times are numbers in a store, and ISO 8601 here.
    """
    own: dict[str, Any] = {"time": iso_time(event.time)}
    if isinstance(event, RunStarted):
        own["agent"] = {name: event.agent.get(name) for name in ("name", "description", "model")}
    elif isinstance(event, MessageReceived):
        own["started"] = iso_time(event.started) if event.started else None
    elif isinstance(event, CallFinished):
        own["rendered"] = rendered(event.record)
    # What is kept is not read into Python again: a result may be large.
    kept = event.__pydantic_serializer__.to_json(event, exclude=_REPLACED)
    return kept[:-1] + b"," + to_json(own)[1:]


def encoded(event: Event, *, id: str | None = None) -> bytes:
    """A fact with its number as its id, or with the id given; a signal with none."""
    number = None if event.seq is None else id or str(event.seq)
    return format_sse_event(data_str=as_json(event).decode(), event=event.type, id=number)


def refused(run_id: str, code: str, error: Exception) -> bytes:
    """Why a run cannot be followed any further."""
    content = {"error": str(error), "code": code, "run_id": run_id}
    return format_sse_event(data_str=to_json(content).decode(), event="error")


def wants_json(accept: str) -> bool:
    """Whether a client asks for one answer instead of a stream."""
    return "application/json" in accept and "text/event-stream" not in accept


class EventStream(EventSourceResponse):
    """A stream that is kept alive, and lets go of everything when its client is gone, whatever it was doing then.

    When the service ends it ends as well, without its last event: clients come back for the rest.
    """

    body_iterator: AsyncGenerator[bytes, None]

    def __init__(self, content: AsyncGenerator[bytes, None], headers: Mapping[str, str] | None = None) -> None:
        super().__init__(content, headers={**HEADERS, **(headers or {})})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = scope["app"].state
        self.body_iterator = _kept_alive(self.body_iterator, until=service.closing)
        with service.metrics.stream():
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            await self.body_iterator.aclose()


async def _kept_alive(events: AsyncGenerator[bytes, None], *, until: asyncio.Event) -> AsyncGenerator[bytes, None]:
    """The same events, and a comment whenever none has come for so long; no more of them after an event."""
    upcoming: asyncio.Future[bytes | None] | None = None
    ending = asyncio.ensure_future(until.wait())
    try:
        while True:
            upcoming = upcoming or asyncio.ensure_future(anext(events, None))
            await asyncio.wait((upcoming, ending), timeout=KEEP_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if upcoming.done():
                data, upcoming = upcoming.result(), None
                if data is None:
                    return
                yield data
            elif ending.done():
                return
            else:
                yield KEEPALIVE_COMMENT
    finally:
        ending.cancel()
        # Cancelling the wait for the next item ends the generator, which stops listening to the run.
        if upcoming is not None:
            upcoming.cancel()
        else:
            await events.aclose()


def stream_run(handle: Handle, *, after: int, headers: Mapping[str, str] | None = None) -> EventStream:
    """Every event of a run after a fact, to the end of the run."""

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(handle.batches(after=after)) as batches:
                async for batch in batches:
                    yield b"".join(map(encoded, batch))
        except JourneymanError as error:
            yield refused(handle.run_id, "RUN_CANNOT_GO_ON", error)
        yield DONE

    return EventStream(events(), headers)


router = APIRouter(prefix="/api/v1", tags=["runs"], route_class=JsonRoute)

MOST_EVENTS = 1_000


class Events(Page):
    """Facts of a run, each once and in order."""

    events: list[dict[str, Any]]
    last_seq: int = Field(description="Give it as 'after' to get what comes next, also what is still to happen.")


@router.get(
    "/runs/{run_id}/events",
    summary="A run's events, from any point on",
    response_model=Events,
    responses={
        **answers(404),
        204: {"description": "For a client that comes back with Last-Event-ID to a run that has nothing more to tell."},
        200: {
            "description": "A stream to the end of the run; with 'Accept: application/json' the facts so far.",
            "model": Events,
            "content": {"text/event-stream": {"schema": EVENTS}},
        },
    },
)
async def run_events(
    run_id: Id,
    desk: DeskDep,
    after: Annotated[int, Query(ge=0, le=2**31 - 1, description="The last event you have.")] = 0,
    limit: Annotated[
        int, Query(ge=1, le=MOST_EVENTS, description="How many at most, where no stream is asked for.")
    ] = (MOST_EVENTS),
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
    last: LastEventId = "",
) -> Any:
    row = await desk.run(run_id)
    run_id = row.id
    after = max(after, int(last or 0))
    if not wants_json(accept):
        if last and row.status.ended and row.last_seq <= after:
            return Response(status_code=204)
        return stream_run(await desk.app.handle(run_id), after=after, headers={"X-Run-ID": run_id})
    facts = await desk.facts(run_id, after=after, limit=limit + 1)
    page = page_of(facts, max(row.last_seq, after + len(facts)), limit, after, key="seq")
    events = [from_json(as_json(fact)) for fact in facts[:limit]]
    return Events(events=events, last_seq=events[-1]["seq"] if events else after, **page)


@router.get(
    "/runs/{run_id}/artifacts/{artifact_id}",
    summary="The whole of a result that is kept apart",
    response_class=StreamingResponse,
    responses={**answers(404), 200: {"description": "Its text.", "content": {"text/plain": {}}}},
)
async def read_artifact(run_id: Id, artifact_id: Id, desk: DeskDep) -> StreamingResponse:
    """Records of calls name it as their 'artifact', with its first and last characters."""
    return StreamingResponse(await artifact_parts(desk, run_id, artifact_id), media_type="text/plain; charset=utf-8")


MOST_RUNS = 50
"""On one connection."""
LONGEST_NUMBER = 9
_NUMBER = re.compile(rf"[0-9]{{1,{LONGEST_NUMBER}}}")


@router.get(
    "/events",
    summary="The events of several runs on one connection",
    response_model=None,
    responses={
        **answers(404),
        200: {
            "description": "A stream to the end of all the runs. Of each run the events are in order; each says which "
            "run it is of. A run that is not there, or cannot go on, gets an event 'error' of its own.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        204: {"description": "For a client that comes back with Last-Event-ID when nothing more will come."},
    },
)
async def many_events(
    desk: DeskDep,
    run: Annotated[
        list[str],
        Query(
            min_length=1,
            max_length=MOST_RUNS,
            description="A run's id, with ':' and the number of its last event that you have: 'run_1:12'.",
            examples=[["run_1:12", "run_2"]],
        ),
    ],
    last: Annotated[
        str | None,
        Header(
            alias="Last-Event-ID",
            max_length=MOST_RUNS * (LONGEST_NUMBER + 1),
            json_schema_extra={"pattern": rf"^({_NUMBER.pattern}(\.{_NUMBER.pattern})*)?$"},
            description="The id of the last event that you have, for the same runs in the same order.",
        ),
    ] = None,
) -> Any:
    order, position, missing, more = list[str](), dict[str, int](), dict[str, NotFoundError](), False
    for item, have in zip(run, _numbers(last, len(run)), strict=True):
        name, colon, number = item.rpartition(":")
        name, after = (name, int(number)) if colon and _NUMBER.fullmatch(number) else (item, 0)
        try:
            row = await desk.run(name)
            name, after = row.id, max(after, have)
            more = more or not row.status.ended or row.last_seq > after
        except NotFoundError as error:
            missing[name], after = error, 0
        order.append(name)
        position[name] = max(after, position.get(name, 0))
    handles = {Handle(desk.app.runner, run_id): seq for run_id, seq in position.items() if run_id not in missing}
    if not handles:
        raise missing[order[0]]
    if last is not None and not more:
        return Response(status_code=204)

    def encode(news: News) -> bytes:
        """An event's id says where the client is in all its runs: the last fact of each, as it asked for them."""
        if news.error is not None:
            return refused(news.run_id, "RUN_CANNOT_GO_ON", news.error)
        data = b""
        for event in news.events:
            position[news.run_id] = event.seq or position[news.run_id]
            data += encoded(event, id=".".join(str(position[run_id]) for run_id in order))
        return data

    async def events() -> AsyncGenerator[bytes, None]:
        # At once, so that a client knows that it is connected.
        yield KEEPALIVE_COMMENT + b"".join(refused(run_id, error.code, error) for run_id, error in missing.items())
        async with aclosing(news_of(handles)) as batches:
            async for news in batches:
                yield encode(news)
        yield DONE

    return EventStream(events())


def _numbers(header: str | None, count: int) -> list[int]:
    numbers = header.split(".") if header else ["0"] * count
    if len(numbers) != count or not all(map(_NUMBER.fullmatch, numbers)):
        raise InvalidInputError(
            "VALIDATION_ERROR", "Last-Event-ID", f"it is the id of an event of a stream of these {count} runs"
        )
    return list(map(int, numbers))

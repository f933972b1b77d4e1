"""A run's events as server-sent events.

A fact's id is its number in the run, so that a client which comes back with ``Last-Event-ID`` misses nothing and gets
nothing twice. Signals have no id. The end is ``data: [DONE]``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, TypeVar

from fastapi import Header
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic_core import to_json
from starlette.types import Send

from journeyman.app import Handle
from journeyman.core.errors import JourneymanError
from journeyman.core.events import CallFinished, Event, RunStarted
from journeyman.core.rendering import rendered
from journeyman.doors.http.health import Metrics

T = TypeVar("T")

KEEP_ALIVE_SECONDS = 15.0
EVENTS: dict[str, Any] = {
    "type": "object",
    "description": "One server-sent event. The last one's data is [DONE].",
    "properties": {name: {"type": "string"} for name in ("event", "data", "id")},
}
"""For the OpenAPI document: what a stream is made of."""
DONE = format_sse_event(data_str="[DONE]")
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


LastEventId = Annotated[str, Header(alias="Last-Event-ID", pattern="^[0-9]{0,9}$", description="An event's id.")]


def shown(event: Event) -> dict[str, Any]:
    """An event as clients see it: of the agent its name and model, and no history, which clients have already.

    Of a call also what it came to, for people; the words of tools that have their own come with the end of the step.
    """
    if isinstance(event, RunStarted):
        agent = {name: event.agent.get(name) for name in ("name", "description", "model")}
        return {**event.model_dump(mode="json", exclude={"agent", "history"}), "agent": agent}
    if isinstance(event, CallFinished):
        return {**event.model_dump(mode="json"), "rendered": rendered(event.record)}
    return event.model_dump(mode="json")


def encoded(event: Event, *, id: str | None = None) -> bytes:
    """A fact with its number as its id, or with the id given; a signal with none."""
    data = to_json(shown(event)) if isinstance(event, RunStarted) else event.__pydantic_serializer__.to_json(event)
    if isinstance(event, CallFinished):  # as ``shown`` has it, without reading a large result into Python again
        data = data[:-1] + b',"rendered":' + to_json(rendered(event.record)) + b"}"
    number = None if event.seq is None else id or str(event.seq)
    return format_sse_event(data_str=data.decode(), event=event.type, id=number)


def refused(run_id: str, code: str, error: Exception) -> bytes:
    """Why a run cannot be followed any further."""
    content = {"error": str(error), "code": code, "run_id": run_id}
    return format_sse_event(data_str=to_json(content).decode(), event="error")


def wants_json(accept: str) -> bool:
    """Whether a client asks for one answer instead of a stream."""
    return "application/json" in accept and "text/event-stream" not in accept


def last_event_id(header: str) -> int:
    """The number of the last fact a client has; 0 when it has none."""
    return int(header or 0)


class EventStream(EventSourceResponse):
    """A stream that lets go of everything when its client is gone, whatever it was doing at that moment."""

    body_iterator: AsyncGenerator[bytes, None]

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            await self.body_iterator.aclose()


def stream_run(handle: Handle, *, after: int, metrics: Metrics, headers: dict[str, str] | None = None) -> EventStream:
    """Every event of a run after a fact, to the end of the run."""
    return EventStream(_events(handle, after, metrics), headers={**HEADERS, **(headers or {})})


async def _events(handle: Handle, after: int, metrics: Metrics) -> AsyncGenerator[bytes, None]:
    with metrics.stream():
        try:
            async with aclosing(with_pauses(handle.batches(after=after), seconds=KEEP_ALIVE_SECONDS)) as batches:
                async for batch in batches:
                    yield b"".join(map(encoded, batch)) if batch else KEEPALIVE_COMMENT
        except JourneymanError as error:
            yield refused(handle.run_id, "RUN_CANNOT_GO_ON", error)
        yield DONE


async def with_pauses(items: AsyncGenerator[T, None], *, seconds: float) -> AsyncGenerator[T | None, None]:
    """The same items, and None whenever none has come for so long."""
    upcoming: asyncio.Task[T] | None = None
    try:
        while True:
            if upcoming is None:
                upcoming = asyncio.ensure_future(anext(items))
            await asyncio.wait((upcoming,), timeout=seconds)
            if not upcoming.done():
                yield None
                continue
            done, upcoming = upcoming, None
            try:
                item = done.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        # Cancelling the wait for the next item ends the generator, which stops listening to the run.
        if upcoming is not None:
            upcoming.cancel()
        else:
            await items.aclose()

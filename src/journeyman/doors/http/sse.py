"""A run's events as server-sent events.

A fact's id is its number in the run, so that a client which comes back with ``Last-Event-ID`` misses nothing and gets
nothing twice. Signals have no id. The end is ``data: [DONE]``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from pydantic_core import to_json
from starlette.types import Send

from journeyman.app import Handle
from journeyman.core.errors import JourneymanError
from journeyman.core.events import Event, RunStarted
from journeyman.doors.http.errors import Problem
from journeyman.doors.http.health import Metrics

KEEP_ALIVE_SECONDS = 15.0
DONE = format_sse_event(data_str="[DONE]")
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def shown(event: Event) -> dict[str, Any]:
    """An event as clients see it: of the agent its name and model, and no history, which clients have already."""
    if isinstance(event, RunStarted):
        agent = {name: event.agent.get(name) for name in ("name", "description", "model")}
        return {**event.model_dump(mode="json", exclude={"agent", "history"}), "agent": agent}
    return event.model_dump(mode="json")


def encoded(event: Event) -> bytes:
    data = to_json(shown(event)) if isinstance(event, RunStarted) else event.__pydantic_serializer__.to_json(event)
    return format_sse_event(data_str=data.decode(), event=event.type, id=None if event.seq is None else str(event.seq))


def wants_json(accept: str) -> bool:
    """Whether a client asks for one answer instead of a stream."""
    return "application/json" in accept and "text/event-stream" not in accept


def last_event_id(header: str | None) -> int:
    """The number of the last fact a client has; 0 when it has none."""
    if not header:
        return 0
    if not header.isascii() or not header.isdigit() or len(header) > 9:
        raise Problem(
            422, "VALIDATION_ERROR", f"Last-Event-ID is the number of an event of this run, not {header[:40]!r}"
        )
    return int(header)


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
            content = {"error": str(error), "code": "RUN_CANNOT_GO_ON", "run_id": handle.run_id}
            yield format_sse_event(data_str=to_json(content).decode(), event="error")
        yield DONE


async def with_pauses(
    batches: AsyncGenerator[list[Event], None], *, seconds: float
) -> AsyncGenerator[list[Event], None]:
    """The events, and an empty list whenever none has come for so long."""
    upcoming: asyncio.Task[list[Event]] | None = None
    try:
        while True:
            if upcoming is None:
                upcoming = asyncio.ensure_future(anext(batches))
            await asyncio.wait((upcoming,), timeout=seconds)
            if not upcoming.done():
                yield []
                continue
            done, upcoming = upcoming, None
            try:
                batch = done.result()
            except StopAsyncIteration:
                return
            yield batch
    finally:
        # Cancelling the wait for the next event ends the generator, which stops listening to the run.
        if upcoming is not None:
            upcoming.cancel()
        else:
            await batches.aclose()

"""The events of many runs on one connection: browsers allow few connections to one place."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from fastapi.sse import KEEPALIVE_COMMENT

from journeyman.app import Handle
from journeyman.app.desk import NotFoundError
from journeyman.app.following import News, follow
from journeyman.doors.http.common import DeskDep, JsonRoute
from journeyman.doors.http.errors import FieldError, Problem, answers
from journeyman.doors.http.health import Metrics, MetricsDep
from journeyman.doors.http.sse import DONE, HEADERS, KEEP_ALIVE_SECONDS, EventStream, encoded, refused, with_pauses

router = APIRouter(prefix="/api/v1/events", tags=["runs"], route_class=JsonRoute)

MOST_RUNS = 50
"""On one connection."""
LONGEST_NUMBER = 9


@router.get(
    "",
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
    metrics: MetricsDep,
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
            json_schema_extra={"pattern": rf"^([0-9]{{1,{LONGEST_NUMBER}}}(\.[0-9]{{1,{LONGEST_NUMBER}}})*)?$"},
            description="The id of the last event that you have, for the same runs in the same order.",
        ),
    ] = None,
) -> Any:
    asked = [_asked(item) for item in run]
    position, missing, more = _Position(), dict[str, NotFoundError](), False
    for (name, after), have in zip(asked, _numbers(last, len(asked)), strict=True):
        try:
            row = await desk.run(name)
        except NotFoundError as error:
            missing[name] = error
            position.add(name, 0)
            continue
        position.add(row.id, max(after, have))
        more = more or not row.status.ended or row.last_seq > max(after, have)
    handles = {Handle(desk.app.runner, run_id): seq for run_id, seq in position.found.items() if run_id not in missing}
    if not handles:
        raise missing[asked[0][0]]
    if last is not None and not more:
        return Response(status_code=204)
    return EventStream(_events(handles, missing, position, metrics), headers=HEADERS)


async def _events(
    handles: Mapping[Handle, int], missing: Mapping[str, NotFoundError], position: _Position, metrics: Metrics
) -> AsyncGenerator[bytes, None]:
    with metrics.stream():
        # At once, so that a client knows that it is connected.
        yield KEEPALIVE_COMMENT + b"".join(refused(run_id, error.code, error) for run_id, error in missing.items())
        async with aclosing(with_pauses(follow(handles), seconds=KEEP_ALIVE_SECONDS)) as found:
            async for news in found:
                yield KEEPALIVE_COMMENT if news is None else _encoded(news, position)
        yield DONE


def _encoded(news: News, position: _Position) -> bytes:
    if news.error is not None:
        return refused(news.run_id, "RUN_CANNOT_GO_ON", news.error)
    return b"".join(encoded(event, id=position.at(news.run_id, event.seq)) for event in news.events)


class _Position:
    """Where a client is in all its runs: the number of the last fact of each, in the order it asked for them."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self.found: dict[str, int] = {}

    def add(self, run_id: str, seq: int) -> None:
        self._order.append(run_id)
        self.found[run_id] = max(seq, self.found.get(run_id, 0))

    def at(self, run_id: str, seq: int | None) -> str | None:
        """The id of an event; of one that has no number, none."""
        if seq is None:
            return None
        self.found[run_id] = seq
        return ".".join(str(self.found[name]) for name in self._order)


def _asked(item: str) -> tuple[str, int]:
    run_id, colon, number = item.rpartition(":")
    if not colon or not _is_number(number):
        return item, 0
    return run_id, int(number)


def _numbers(header: str | None, count: int) -> list[int]:
    if not header:
        return [0] * count
    numbers = header.split(".")
    if len(numbers) != count or not all(map(_is_number, numbers)):
        message = f"it is the id of an event of a stream of these {count} runs"
        raise Problem(
            422,
            "VALIDATION_ERROR",
            f"Last-Event-ID: {message}",
            fields=[FieldError(field="Last-Event-ID", message=message)],
        )
    return list(map(int, numbers))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER

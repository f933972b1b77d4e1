"""What several resources share: dependencies, kinds of parameters, pages, and bodies that are checked JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from journeyman.app.desk import Desk, Outcome
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.budgets import OverBudgetError, check_arguments
from journeyman.core.calls import ToolCallRecord
from journeyman.core.data import canonical_json, storable_json
from journeyman.core.runs import RunStatus
from journeyman.doors.http.auth import Caller
from journeyman.doors.http.errors import FieldError, Problem

T = TypeVar("T")

PAGE_SIZE = 50
LARGEST_PAGE = 200
MOST_FIELDS = 1_000
LONGEST_NAME = 200
"""Characters of a field's name in a message."""


# Dependencies are coroutines although they wait for nothing: FastAPI runs anything else in a thread.
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _desk(request: Request, principal: Caller) -> Desk:
    return Desk(request.app.state.service.app, principal)


def _storable(value: T) -> T:
    storable_json(value)
    return value


ServiceDep = Annotated[Service, Depends(_service)]
DeskDep = Annotated[Desk, Depends(_desk)]
"""The app as the caller may use it."""
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="How many at most.")]
Offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="How many to leave out at the beginning.")]
Id = Annotated[str, Path(min_length=1, max_length=128, examples=["task_0192f3c2a1b4d6e8f0a1b2c3"])]
SessionId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.:-]+$", examples=["sess-1"])]
Object = Annotated[dict[str, Any], AfterValidator(_storable)]
"""A JSON object that a store can keep."""
Storable = Annotated[Any, AfterValidator(_storable)]
"""The same for any JSON value."""
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="Of two requests of yours with the same key the second starts nothing: the first one's run "
        "answers both.",
    ),
]


class Page(BaseModel):
    """Which part of a list this is."""

    page: int = Field(ge=1, examples=[1])
    page_size: int = Field(ge=1, examples=[PAGE_SIZE])


def page_of(limit: int, offset: int) -> dict[str, int]:
    return {"page": offset // limit + 1, "page_size": limit}


class RunAnswer(BaseModel):
    """A run that was waited for, and what it needs where it has not ended."""

    run_id: str
    status: RunStatus
    approvals: list[Approval] = Field(description="What must be decided before it goes on.")
    unknown: list[ToolCallRecord] = Field(description="Calls whose outcome must be told before it goes on.")
    blocked_by: str | None = Field(
        description="For 'queued': the earlier run of the session that these belong to. This one goes on after it."
    )


def answer_fields(run_id: str, outcome: Outcome) -> dict[str, Any]:
    """The fields of a RunAnswer."""
    blockers = outcome.blockers
    return {
        "run_id": run_id,
        "status": outcome.status,
        "approvals": list(blockers.approvals),
        "unknown": list(blockers.unknown),
        "blocked_by": None if blockers.earlier is None else blockers.earlier.id,
    }


# --- bodies


class Body(BaseModel):
    """A body of ours. A field that nobody knows is an error and not a silent default."""

    model_config = ConfigDict(extra="forbid")


class JsonRoute(APIRoute):
    """A route that takes JSON alone, of texts and numbers that can be stored and sent back, and known parameters."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        known = {field.alias: _takes_many(field.field_info.annotation) for field in self.dependant.query_params}
        takes_body, strict = self.body_field is not None, self.path.startswith("/api/")

        async def handled(request: Request) -> Response:
            if strict and request.scope["query_string"]:
                _must_know(request, known)
            return await handler(_JsonRequest(request.scope, request.receive) if takes_body else request)

        return handled


def _takes_many(annotation: Any) -> bool:
    """Whether a parameter may be repeated."""
    return any(get_origin(kind) is list for kind in (annotation, *get_args(annotation)))


def _must_know(request: Request, known: Mapping[str, bool]) -> None:
    """Like a field of a body, a parameter that nobody knows is an error and not a silent default.

    So is one that is given twice where one is taken: the other would be dropped unseen.
    """
    params = request.query_params
    said = f"there is no such parameter here; there are: {', '.join(sorted(known)) or 'none'}"
    fields = [FieldError(field=name[:LONGEST_NAME], message=said) for name in params if name not in known]
    for name, many in known.items():
        if not many and len(params.getlist(name)) > 1:
            fields.append(FieldError(field=name, message="give it once"))
    if fields:
        raise Problem(422, "VALIDATION_ERROR", f"{fields[0].field}: {fields[0].message}", fields=fields)


class _JsonRequest(Request):
    _read: Any = None

    async def body(self) -> bytes:
        found = await super().body()
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if found and kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
            raise Problem(
                415,
                "UNSUPPORTED_MEDIA_TYPE",
                f"the body must be JSON (application/json), and is said to be {kind!r}",
                recover_action="Send the header 'Content-Type: application/json'",
            )
        return found

    async def json(self) -> Any:
        if self._read is None:
            self._read = read_json(await self.body())
        return self._read


def read_json(data: bytes, *, place: str = "body", once: bool = False) -> Any:
    """The value of a body, or of a text in it. Raises a Problem that names the place of what could not be stored.

    With ``once`` no object may name a field twice: one of the two would be dropped unseen.
    """
    try:
        check_arguments(data)
        value = json.loads(data, object_pairs_hook=_each_once if once else None)
    except OverBudgetError as error:
        raise refused(place, f"it {error}") from None
    except RecursionError:
        raise refused(place, "it is nested too deeply") from None
    except ValueError as error:
        raise refused(place, f"it is not JSON that can be read: {error}") from None
    if isinstance(value, dict) and len(value) > MOST_FIELDS:  # each unknown one would be an error of its own
        raise refused(place, f"it has more than {MOST_FIELDS:,} fields")
    try:
        # Quick, and refuses just what must be refused. Only then is it looked for.
        canonical_json(value).encode()
    except RecursionError:
        raise refused(place, "it is nested too deeply") from None
    except ValueError:
        raise refused(*_unencodable(value)) from None
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is named twice")
    return found


def _unencodable(value: Any) -> tuple[str, str]:
    """Where the first text or number is that JSON cannot express, and what is wrong with it."""
    left = [("", value)]
    while left:
        place, item = left.pop()
        held: list[tuple[str, Any]] = []
        if isinstance(item, dict):
            for key, inner in item.items():
                held += [(place, key), (f"{place}.{key}", inner)]
        elif isinstance(item, list):
            held = [(f"{place}.{number}", inner) for number, inner in enumerate(item)]
        elif isinstance(item, float) and not math.isfinite(item):
            return place, f"{item} is no number that JSON has"
        elif isinstance(item, str) and any("\ud800" <= character <= "\udfff" for character in item):
            return place, "half of a surrogate pair is no text"
        left += reversed(held)
    return "", "it holds something that JSON cannot say"


def refused(place: str, message: str) -> Problem:
    """A body that is refused for one field."""
    name = place.removeprefix(".")[:LONGEST_NAME] or "body"
    return Problem(422, "VALIDATION_ERROR", f"{name}: {message}", fields=[FieldError(field=name, message=message)])

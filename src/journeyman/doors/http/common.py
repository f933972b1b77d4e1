"""What several resources share: dependencies, what a run came to, and bodies that are checked JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, get_args, get_origin

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field

from journeyman.app.desk import LONGEST_NAME, Desk, InvalidInputError, Outcome
from journeyman.app.operations.table import read_json
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.runs import RunStatus
from journeyman.doors.http.errors import FieldError, Problem, problem_of


# A coroutine although it waits for nothing: FastAPI runs any other dependency in a thread.
async def _desk(request: Request) -> Desk:
    service: Service = request.app.state.service
    return Desk(service.app, request.state.principal, service=service)  # who asks, as the middleware found out


DeskDep = Annotated[Desk, Depends(_desk)]
"""The app as the caller may use it."""
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

LARGE_BODY = 1_000_000
"""Bytes from which on a body, of which most are an image, is read while others go on."""


class JsonRoute(APIRoute):
    """A route that takes JSON alone, of texts and numbers that can be stored and sent back, and known parameters."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        # Whether each may be repeated: those that are lists, or may be.
        kinds = {field.alias: field.field_info.annotation for field in self.dependant.query_params}
        known = {name: any(get_origin(one) is list for one in (kind, *get_args(kind))) for name, kind in kinds.items()}
        takes_body, strict = self.body_field is not None, self.path.startswith("/api/")

        async def handled(request: Request) -> Response:
            if strict and request.scope["query_string"]:
                _must_know(request, known)
            return await handler(_JsonRequest(request.scope, request.receive) if takes_body else request)

        return handled


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
            try:
                body = await self.body()
                large = len(body) > LARGE_BODY
                self._read = await asyncio.to_thread(read_json, body) if large else read_json(body)
            except InvalidInputError as error:
                raise problem_of(error) from None  # FastAPI answers anything else with 400
        return self._read

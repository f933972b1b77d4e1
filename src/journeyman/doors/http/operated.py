"""The operations of the service as routes: an address, a method and a status for each. All else is in their table.

And what all routes share: who asks, what a run came to, and bodies that are checked JSON.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Callable, Coroutine, Mapping
from email import message_from_string
from inspect import Parameter, Signature
from typing import Annotated, Any, TypeAlias, get_args, get_origin

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from journeyman.app.desk import LONGEST_NAME, Desk, InvalidInputError, Outcome
from journeyman.app.operations import approvals, experiments, gaps, memory, playbooks, replays, runs, service, tasks
from journeyman.app.operations.table import Input, Operation, read_json, refused
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.core.content import MESSAGE_MEDIA
from journeyman.core.runs import RunStatus
from journeyman.doors.http.errors import FieldError, Problem, answers, problem_of


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


FORM = "multipart/form-data"
HEAD_BYTES = 4_000
_JSON = (b"content-type", b"application/json")
_BOUNDARY = re.compile(r"""boundary=("?)([\w'()+,./:=? -]{1,70})\1\s*(?:;|$)""", re.ASCII | re.IGNORECASE)


class JsonRoute(APIRoute):
    """A route that takes JSON, of texts and numbers that can be stored and sent back, and known parameters. A form is
    taken where the OpenAPI document says so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        # Whether each may be repeated: those that are lists, or may be.
        kinds = {field.alias: field.field_info.annotation for field in self.dependant.query_params}
        known = {name: any(get_origin(one) is list for one in (kind, *get_args(kind))) for name, kind in kinds.items()}
        takes_body = self.body_field is not None
        form = ((self.openapi_extra or {}).get("requestBody") or {}).get("content", {}).get(FORM, {})

        async def handled(request: Request) -> Response:
            if request.scope["query_string"]:
                _must_know(request, known)
            return await handler(_JsonRequest(request.scope, request.receive, form) if takes_body else request)

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

    def __init__(self, scope: Scope, receive: Receive, form: Mapping[str, Any]) -> None:
        self._fields: Mapping[str, Any] = form.get("schema", {}).get("properties", {})
        self._type = Headers(scope=scope).get("content-type", "")
        self._kind = self._type.partition(";")[0].strip().lower()
        if self._kind == FORM:  # else FastAPI asks for no JSON
            scope = {**scope, "headers": [*(pair for pair in scope["headers"] if pair[0] != b"content-type"), _JSON]}
        super().__init__(scope, receive)

    async def body(self) -> bytes:
        data, kind = await super().body(), self._kind
        json = kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
        if data and not json and (kind != FORM or not self._fields):
            raise Problem(
                415,
                "UNSUPPORTED_MEDIA_TYPE",
                f"the body must be JSON (application/json), and is said to be {kind!r}",
                recover_action="Send the header 'Content-Type: application/json'",
            )
        return data

    async def json(self) -> Any:
        if self._read is None:
            try:
                body = await self.body()
                read = self._of_form if self._kind == FORM else read_json
                self._read = await asyncio.to_thread(read, body) if len(body) > LARGE_BODY else read(body)
            except InvalidInputError as error:
                raise problem_of(error) from None  # FastAPI answers anything else with 400
        return self._read

    def _of_form(self, body: bytes) -> dict[str, Any]:
        """A form as the JSON that says the same: whatever has the name of a file becomes one of the media."""
        boundary, most = _BOUNDARY.search(self._type), MESSAGE_MEDIA + len(self._fields)
        parts = (b"\r\n" + body).split(b"\r\n--" + boundary[2].encode(), most + 2) if boundary else []
        if not parts or not parts[-1].startswith(b"--"):
            raise refused("body", f"it is no whole form of the type {FORM!r} with at most {most} parts")
        said: dict[str, Any] = {}
        for part in parts[1:-1]:
            head, _, data = part.partition(b"\r\n\r\n")
            about = message_from_string(head[:HEAD_BYTES].decode(errors="replace").lstrip())
            name = str(about.get_param("name", "", "content-disposition"))
            if (file := about.get_filename()) is not None:
                kind = about.get_content_type() if "content-type" in about else ""
                said.setdefault("media", []).append({"data": b64encode(data).decode(), "name": file, "mime_type": kind})
            elif name in said:
                raise refused(name[:LONGEST_NAME], "give it once")
            elif self._fields.get(name, {}).get("type") == "string":
                try:
                    said[name] = data.decode()
                except ValueError:
                    raise refused(name, "must be text in UTF-8") from None
            else:
                said[name] = read_json(data, place=name[:LONGEST_NAME])
        return said


# --- operations

Row: TypeAlias = tuple[str, str, Operation[..., Any], *tuple[int, ...]]
"""A method, an address, what it does; 201 where it makes something, 409 where it may clash with how things stand."""

ROUTES: tuple[Row, ...] = (
    ("GET", "/me", service.me),
    ("GET", "/configuration", service.configuration),
    ("GET", "/sessions", runs.list_sessions),
    ("GET", "/sessions/{session_id}", runs.show_session),
    ("PATCH", "/sessions/{session_id}", runs.rename_session),
    ("DELETE", "/sessions/{session_id}", runs.delete_session, 409),
    ("GET", "/chat/history/{session_id}", runs.list_messages),
    ("GET", "/runs", runs.list_runs),
    ("POST", "/runs/replay", replays.replay_runs, 404),
    ("GET", "/runs/{run_id}", runs.show_run),
    ("POST", "/runs/{run_id}/cancel", runs.cancel_run, 409),
    ("POST", "/runs/{run_id}/resume", runs.resume_run, 409),
    ("POST", "/runs/{run_id}/calls/{call_id}/resolve", runs.resolve_call, 409),
    ("POST", "/runs/{run_id}/fork", replays.fork_run),
    ("GET", "/runs/{run_id}/diff", replays.compare_runs),
    ("GET", "/runs/{run_id}/steps/{step}", replays.show_step),
    ("GET", "/runs/{run_id}/test", replays.make_test),
    ("GET", "/runs/{run_id}/labels", runs.run_labels),
    ("GET", "/runs/{run_id}/flow", runs.run_flow),
    ("POST", "/runs/{run_id}/rating", runs.rate_run, 409),
    ("GET", "/approvals", approvals.list_approvals),
    ("GET", "/approvals/{approval_id}", approvals.show_approval),
    ("POST", "/approvals/{approval_id}/approve", approvals.approve, 409),
    ("POST", "/approvals/{approval_id}/deny", approvals.deny, 409),
    ("GET", "/grants", approvals.list_grants),
    ("DELETE", "/grants/{grant_id}", approvals.revoke_grant),
    ("GET", "/audit", approvals.list_audit),
    ("GET", "/tools", service.list_tools),
    ("GET", "/tools/{name}", service.show_tool),
    ("GET", "/health/tools", service.tool_health),
    ("GET", "/agents", service.list_agents),
    ("POST", "/tasks", tasks.create_task, 201),
    ("GET", "/tasks", tasks.list_tasks),
    ("GET", "/tasks/{task_id}", tasks.show_task),
    ("PATCH", "/tasks/{task_id}", tasks.update_task),
    ("DELETE", "/tasks/{task_id}", tasks.delete_task),
    ("GET", "/tasks/{task_id}/versions", tasks.list_task_versions),
    ("POST", "/tasks/{task_id}/versions/{number}", tasks.restore_task),
    ("GET", "/tasks/{task_id}/attachments", tasks.list_attachments),
    ("POST", "/tasks/{task_id}/attachments", tasks.add_attachment, 201, 409),
    ("GET", "/attachments/{attachment_id}", tasks.show_attachment),
    ("PATCH", "/attachments/{attachment_id}", tasks.update_attachment),
    ("DELETE", "/attachments/{attachment_id}", tasks.delete_attachment),
    ("GET", "/search", tasks.search),
    ("POST", "/memory/documents", memory.add_document, 201),
    ("GET", "/memory/documents", memory.list_documents),
    ("GET", "/memory/documents/{document_id}", memory.show_document),
    ("DELETE", "/memory/documents/{document_id}", memory.delete_document),
    ("GET", "/memory/search", memory.search_documents),
    ("GET", "/playbooks", playbooks.list_playbooks),
    ("GET", "/playbooks/{domain}", playbooks.show_playbook),
    ("GET", "/playbooks/{domain}/history", playbooks.list_versions),
    ("GET", "/playbooks/{domain}/diff", playbooks.compare_versions),
    ("POST", "/playbooks/{domain}/rollback", playbooks.roll_back, 409),
    ("PATCH", "/playbooks/{domain}/strategies/{strategy_id}", playbooks.change_strategy, 409),
    ("GET", "/experiments", experiments.list_experiments),
    ("GET", "/experiments/{experiment_id}", experiments.show_experiment),
    ("PATCH", "/experiments/{name}", experiments.change_experiment),
    ("GET", "/gaps", gaps.list_gaps),
    ("GET", "/gaps/{key}", gaps.show_gap),
    ("GET", "/gaps/{key}/export", gaps.export_gap),
    ("POST", "/gaps/{key}/dismiss", gaps.dismiss_gap),
    ("POST", "/intents", gaps.read_intent),
    ("GET", "/intents/types", gaps.list_types),
)
TAGS = {"tasks.search": "search", "grants": "approvals", "audit": "approvals", "agents": "tools"}
"""Under which operations are in the OpenAPI document that is not their noun."""


def operations_router() -> APIRouter:
    """The routes of all operations."""
    router = APIRouter(prefix="/api/v1", route_class=JsonRoute)
    for row in ROUTES:
        _add(router, *row)
    return router


def _add(router: APIRouter, method: str, path: str, operation: Operation[..., Any], *statuses: int) -> None:
    status = 204 if operation.output is type(None) else 201 if 201 in statuses else 200
    errors = [*([404] if "{" in path or 404 in statuses else []), *([409] if 409 in statuses else [])]

    async def endpoint(desk: Desk, response: Response, **values: Any) -> Any:
        made = await operation(desk, **values)
        if status == 201:  # found by its own id, also where it was made as a part of something else
            response.headers["Location"] = f"/api/v1{path.rpartition('}')[2]}/{made.id}"
        return made

    keyword = Parameter.KEYWORD_ONLY
    parameters = [
        Parameter("desk", keyword, annotation=Annotated[Desk, Depends(_permitted(operation.permission))]),
        Parameter("response", keyword, annotation=Response),
        *(
            Parameter(item.name, keyword, default=item.default, annotation=_rendered(item, path))
            for item in operation.inputs
        ),
    ]
    endpoint.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # which FastAPI reads
    endpoint.__name__, endpoint.__doc__ = operation.work.__name__, operation.description
    noun = operation.name.partition(".")[0]
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        tags=[TAGS.get(operation.name) or TAGS.get(noun, noun)],
        status_code=status,
        summary=operation.summary,
        response_model=None if status == 204 else operation.output,
        responses=answers(*errors),
    )


def _rendered(item: Input, path: str) -> Any:
    if item.is_body:
        return item.kind
    info = item.info
    if f"{{{item.name}}}" in path:
        return Annotated[item.kind, Path(description=info.description, examples=info.examples)]
    return Annotated[item.kind, Query(alias=info.alias, description=info.description, examples=info.examples)]


def _permitted(permission: str | None) -> Any:
    """The desk of a caller who holds a permission: whoever lacks it is told so before their body is read."""

    async def desk(desk: DeskDep) -> Desk:
        if permission is not None:
            desk.must_hold(permission)
        return desk

    return desk

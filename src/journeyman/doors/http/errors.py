"""One shape for every error of the service, whatever raised it. Under /v1 the same content has OpenAI's shape."""

from __future__ import annotations

import html
import logging
import traceback
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match

from journeyman.app.desk import ConflictError, InvalidInputError, NotFoundError, NotPermittedError
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import (
    ApprovalError,
    BindingError,
    ConfigurationError,
    EditedArgumentsError,
    ErrorCategory,
    JourneymanError,
    PlaybookConflictError,
    StoreError,
    ToolError,
)

logger = logging.getLogger("journeyman.http")

MOST_FIELDS = 100
LONGEST_FIELD = 200
"""Wrong fields that an answer lists, and characters of a name in it."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_DESCRIPTIONS = {
    400: "The request cannot be read",
    401: "No token, or one that is not known",
    403: "Not allowed",
    404: "There is no such thing, or it is not yours",
    409: "It clashes with how things stand",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "A value is not valid",
    429: "Too many requests",
    503: "Something the service needs is away",
}
_CODES = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 406: "NOT_ACCEPTABLE", 415: "UNSUPPORTED_MEDIA_TYPE"}


class FieldError(BaseModel):
    """What is wrong with one field."""

    field: str = Field(examples=["title"])
    message: str = Field(examples=["String should have at least 1 character"])


class ErrorBody(BaseModel):
    """Every error of the service."""

    error: str = Field(description="What went wrong, for a person.", examples=["Task not found"])
    code: str = Field(description="What went wrong, for a program.", examples=["TASK_NOT_FOUND"])
    request_id: str = Field(description="Also in the X-Request-ID header.", examples=["req_0192f3c2a1b4d6e8f0a1"])
    recover_action: str | None = Field(default=None, description="What to do about it.")
    fields: list[FieldError] | None = Field(default=None, description="For 422: what is wrong with which field.")


class Problem(HTTPException):
    """An error that the service answers with on purpose."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        recover_action: str | None = None,
        fields: Sequence[FieldError] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers) if headers else None)
        self.code = code
        self.recover_action = recover_action
        self.fields = fields


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For the OpenAPI document: these errors, and those that any request may meet."""
    wanted = sorted({400, 401, 403, 413, 415, 422, 429, 503, *statuses})
    return {status: {"model": ErrorBody, "description": _DESCRIPTIONS[status]} for status in wanted}


def openai_error(problem: Problem, kind: str) -> dict[str, Any]:
    """A problem in OpenAI's shape."""
    param = problem.fields[0].field if problem.fields else None
    return {"error": {"message": problem.detail, "type": kind, "param": param, "code": problem.code}}


PROBLEM = "application/problem+json"


def error_response(path: str, request_id: str, problem: Problem, *, accept: str = "") -> Response:
    """A problem as bytes on the wire; with the fields of RFC 9457 beside our own for whoever accepts that."""
    if path.startswith("/v1/") and PROBLEM not in accept:
        content = openai_error(problem, "invalid_request_error" if problem.status_code < 500 else "server_error")
        if problem.status_code == 422:  # which that API does not know
            return JSONResponse(content, 400, problem.headers)
    else:
        body = ErrorBody(
            error=problem.detail,
            code=problem.code,
            request_id=request_id,
            recover_action=problem.recover_action,
            fields=list(problem.fields) if problem.fields else None,
        )
        content = body.model_dump(exclude_none=True)
        if PROBLEM in accept:
            status, title = problem.status_code, HTTPStatus(problem.status_code).phrase
            about = {"type": f"urn:journeyman:problem:{problem.code}", "title": title, "status": status}
            content = {**about, "detail": problem.detail, "instance": f"urn:journeyman:request:{request_id}", **content}
            return JSONResponse(content, status, problem.headers, media_type=PROBLEM)
    return JSONResponse(content, problem.status_code, problem.headers)


def _nowhere_page(problem: Problem, root: str) -> Response:
    said, home = html.escape(problem.detail), html.escape(f"{root}/", quote=True)
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Not here – Journeyman</title>'
        f'<h1>Not here</h1><p>{said}.</p><p><a href="{home}">To the page of this service</a></p></html>'
    )
    return HTMLResponse(text, problem.status_code, {"Content-Security-Policy": "default-src 'none'"})


def _of_tool_error(error: ToolError) -> Problem:
    """What a toolkit refuses, as an answer."""
    code = error.code
    if code.endswith("_NOT_FOUND"):
        # Without its text, which offers what is there to a model, and in words that only a model would understand.
        return Problem(404, code, f"{code.removesuffix('_NOT_FOUND').replace('_', ' ').capitalize()} not found")
    if code.endswith("_EXISTS") or code.startswith("AMBIGUOUS_"):
        status = 409
    elif error.info.category is ErrorCategory.INVALID_INPUT:
        status = 422
    else:
        status = 503
    fields = None
    if status == 422:
        name = code.removeprefix("INVALID_").lower() if code.startswith("INVALID_") else "body"
        fields = [FieldError(field=name, message=error.message)]
    return Problem(status, code, error.message, recover_action=error.recover_action, fields=fields)


def problem_of(error: Exception) -> Problem:
    """What an exception is answered with."""
    match error:
        case Problem():
            return error
        case HTTPException():
            code = _CODES.get(error.status_code, "BAD_REQUEST")
            return Problem(error.status_code, code, str(error.detail), headers=error.headers)
        case RequestValidationError():
            return _invalid(error)
        case ToolError():
            return _of_tool_error(error)
        case NotFoundError():
            return Problem(404, error.code, error.told, recover_action=error.recover_action)
        case InvalidInputError():
            fields = [FieldError(field=error.field, message=error.message)]
            return Problem(422, error.code, str(error), fields=fields)
        case NotPermittedError():
            hint = "Ask whoever runs the service to give your token this permission"
            return Problem(403, error.code, str(error), recover_action=hint)
        case ConflictError():
            # OpenAI's clients would send it again.
            headers = {"X-Should-Retry": "false"} if error.code == "RUN_EXISTS" else None
            return Problem(409, error.code, str(error), recover_action=error.recover_action, headers=headers)
        case EditedArgumentsError():
            fields = [FieldError(field="arguments", message=str(error))]
            return Problem(422, "INVALID_ARGUMENTS", str(error), fields=fields)
        case ApprovalError():
            return Problem(409, "APPROVAL_NOT_POSSIBLE", str(error))
        case BindingError() | ConfigurationError():
            return Problem(409, "NOT_POSSIBLE", str(error))
        case PlaybookConflictError():
            return Problem(409, "PLAYBOOK_CHANGED", str(error), recover_action="Try again later")
        case StoreError():
            return Problem(503, "STORE_AWAY", "the store cannot be used right now", recover_action="Try again later")
        case _:
            return Problem(500, "INTERNAL_ERROR", "the service failed; its log says why under this request id")


def _invalid(error: RequestValidationError) -> Problem:
    fields = []
    for item in error.errors()[:MOST_FIELDS]:
        place = [str(part)[:LONGEST_FIELD] for part in item["loc"]]
        # "body", "query" and "path" say where it was; with a place of their own after them they only distract.
        name = ".".join(place[1:]) or (place[0] if place else "body")
        fields.append(FieldError(field=name, message=str(item["msg"]).removeprefix("Value error, ")))
    message = "; ".join(f"{item.field}: {item.message}" for item in fields[:3])
    return Problem(422, "VALIDATION_ERROR", message or "the request is not valid", fields=fields)


def install_errors(api: FastAPI) -> None:
    def allowed(path: str) -> str:
        """Every method of a path; the framework names only those of the first route that has it."""
        scope = {"type": "http", "path": path, "root_path": "", "headers": []}
        matches = [(method, route.matches({**scope, "method": method})) for method in METHODS for route in api.routes]
        return ", ".join(dict.fromkeys(method for method, (match, _) in matches if match is Match.FULL))

    async def answer(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if isinstance(error, HTTPException) and not isinstance(error, Problem) and error.status_code == 404:
            path: str = request.state.path
            asked = path if len(path) <= LONGEST_FIELD else f"{path[:LONGEST_FIELD]}…"
            hint = "The page is at /, everything for programs is listed in /openapi.json"
            problem = Problem(404, "NOT_FOUND", f"There is nothing at {asked}", recover_action=hint)
            # A browser asks, for a person: programs are answered in JSON.
            own = path.startswith(("/api/", "/v1/"))
            if "text/html" in request.headers.get("Accept", "") and not own:
                return _nowhere_page(problem, request.scope.get("root_path", ""))
        if problem.status_code == 405:
            problem.headers = {"Allow": allowed(request.state.path)}
        request_id = getattr(request.state, "request_id", "")
        if problem.status_code >= 500:
            fields = {LOG_FIELDS: {"request_id": request_id, "code": problem.code}}
            # A traceback's last line may quote what somebody wrote: the kind of error and where it arose are enough.
            logger.error("request failed: %s", location_of(error), extra=fields)
        accept = request.headers.get("Accept", "")
        return error_response(request.state.path, request_id, problem, accept=accept)

    for kind in (HTTPException, RequestValidationError, JourneymanError, ToolError):
        api.add_exception_handler(kind, answer)


def location_of(error: BaseException) -> str:
    """The kind of an error and where it arose, without its text."""
    frames = ((frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__))
    places = [f"{code.co_filename.rpartition('/')[2]}:{line} {code.co_name}" for code, line in frames]
    return f"{type(error).__name__} at {' < '.join(reversed(places[-6:]))}"

"""The application: every resource, one gate in front of them, one shape of errors, one OpenAPI document."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI
from starlette.types import ASGIApp

from journeyman.app.service import Service
from journeyman.doors.http import (
    approvals,
    attachments,
    chains,
    chat,
    completions,
    experiments,
    health,
    runs,
    search,
    sessions,
    tasks,
    tools,
    web,
)
from journeyman.doors.http.auth import Tokens
from journeyman.doors.http.errors import install_errors
from journeyman.doors.http.limits import DoorLimits
from journeyman.doors.http.metrics import Metrics
from journeyman.doors.http.middleware import Gate

DESCRIPTION = """Tool-calling agents that people can trust, over HTTP.

* Every error has one shape (`ErrorBody`); only under `/v1` it is OpenAI's.
* `X-Request-ID` is echoed, or made where none is given.
* A service without tokens answers on the loopback interface only, and then ignores any token.
"""


def create_app(service: Service, *, tokens: Tokens | None = None, limits: DoorLimits | None = None) -> FastAPI:
    """The application over a service that is open. Whoever serves it must have checked where it listens."""
    api = FastAPI(
        title="Journeyman",
        version=version("journeyman"),
        description=DESCRIPTION,
        # Their pages load scripts from elsewhere; the document itself is enough for any tool.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    metrics = Metrics()
    api.state.service = service
    api.state.metrics = metrics
    install_errors(api)
    # Before the tools: a tool may be called "call".
    for part in (
        chat,
        sessions,
        runs,
        approvals,
        chains,
        tools,
        tasks,
        attachments,
        search,
        experiments,
        completions,
        health,
        web,
    ):
        api.include_router(part.router)

    def gate(app: ASGIApp) -> ASGIApp:
        return Gate(app, tokens=tokens, limits=limits or DoorLimits(), metrics=metrics)

    api.add_middleware(gate)
    return api

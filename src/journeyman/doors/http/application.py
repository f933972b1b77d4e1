"""The application: every resource, one middleware in front of them, one shape of errors, one OpenAPI document."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI

from journeyman.app.observing import prometheus_page
from journeyman.app.service import Service
from journeyman.doors.http import (
    approvals,
    chat,
    completions,
    configuration,
    events,
    experiments,
    gaps,
    health,
    intents,
    me,
    memory,
    playbooks,
    runs,
    sessions,
    tasks,
    tools,
    web,
)
from journeyman.doors.http.auth import AUTHENTICATED, Tokens
from journeyman.doors.http.errors import install_errors
from journeyman.doors.http.health import Metrics, Readiness
from journeyman.doors.http.middleware import RequestMiddleware, ServeOptions

DESCRIPTION = """Tool-calling agents that people can trust, over HTTP.

* Every error has one shape (`ErrorBody`); only under `/v1` it is OpenAI's.
* `X-Request-ID` is echoed, or made where none is given.
* Requests carry a token: `Authorization: Bearer TOKEN`, or the cookie that the link of `journeyman serve` leaves.
"""


def create_app(service: Service, *, tokens: Tokens | None = None, options: ServeOptions | None = None) -> FastAPI:
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
    api.state.service = service
    api.state.metrics = metrics = Metrics()
    api.state.early_retries = {}
    api.state.readiness = Readiness(service)
    api.state.instruments = prometheus_page()
    install_errors(api)
    for router in (
        me.router,
        chat.router,
        sessions.router,
        runs.router,
        events.router,
        approvals.router,
        tools.router,
        tasks.tasks_router,
        tasks.attachments_router,
        tasks.search_router,
        memory.router,
        playbooks.router,
        experiments.router,
        gaps.router,
        intents.router,
        configuration.router,
        completions.router,
    ):
        api.include_router(router, dependencies=AUTHENTICATED)
    api.include_router(health.router)
    api.include_router(web.router)
    api.add_middleware(RequestMiddleware, tokens=tokens, options=options or ServeOptions(), metrics=metrics)
    return api

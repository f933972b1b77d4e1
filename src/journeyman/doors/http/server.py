"""The application and serving it: every resource behind one middleware; a socket, a server, and an orderly end."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from journeyman.app.observing import prometheus_page
from journeyman.app.service import Service, ending_signals
from journeyman.core.errors import ConfigurationError
from journeyman.doors.http import chat, completions, events, health, web
from journeyman.doors.http.auth import AUTHENTICATED, Tokens, check_binding
from journeyman.doors.http.connections import Connection, Connections
from journeyman.doors.http.errors import install_errors
from journeyman.doors.http.health import Metrics, Readiness
from journeyman.doors.http.middleware import QUERY, RequestMiddleware, ServeOptions
from journeyman.doors.http.operated import operations_router

DESCRIPTION = """Tool-calling agents that people can trust, over HTTP.

* Every error has one shape (`ErrorBody`); only under `/v1` it is OpenAI's.
* `X-Request-ID` is echoed, or made where none is given.
* Requests carry a token: `Authorization: Bearer TOKEN`, or the cookie that the link of `journeyman serve` leaves.
"""


class _Api(FastAPI):
    """Keeps the query of an address, which holds what people search for, from FastAPI's own spans."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[QUERY], scope["query_string"] = scope["query_string"], b""
        await super().__call__(scope, receive, send)


def create_app(service: Service, *, tokens: Tokens | None = None, options: ServeOptions | None = None) -> FastAPI:
    """The application over a service that is open. Whoever serves it must have checked where it listens."""
    api = _Api(
        title="Journeyman",
        version=version("journeyman"),
        description=DESCRIPTION,
        # Without it there are no pages of theirs either, which load scripts from elsewhere.
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"logs": False},  # they would hold the texts of exceptions, which may quote what somebody wrote
    )
    api.state.service = service
    api.state.metrics = metrics = Metrics()
    api.state.early_retries = {}
    api.state.closing = asyncio.Event()
    api.state.readiness = Readiness(service)
    api.state.instruments = prometheus_page()
    install_errors(api)
    for router in (operations_router(), chat.router, events.router, chat.calls, completions.router):
        api.include_router(router, dependencies=AUTHENTICATED)
    api.include_router(health.router)
    api.include_router(web.router)
    api.add_middleware(RequestMiddleware, tokens=tokens, options=options or ServeOptions(), metrics=metrics)
    return api


TICKS_TO_SWEEP = 5
"""Uvicorn's ticks, ten a second, from one look at slow connections to the next."""
TOKENS_CHANGED = "tokens_changed"
MOST_CHANGES = 100_000


async def serve(
    service: Service,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Tokens | None = None,
    options: ServeOptions | None = None,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[int], None] | None = None,
    application: ASGIApp | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one; ``ready`` is told which it is.

    ``application`` is served in the place of the service's own, behind the same checks of tokens, origins and sizes.

    Without ``tokens`` every program on this machine may do everything, tools that approve their own calls included;
    ``journeyman serve`` makes a token where none is given.
    Streams that are open end at once; their clients come back with Last-Event-ID.
    """
    check_binding(host, tokens)
    await _audit_tokens(service, tokens or Tokens({}))
    options = options or ServeOptions()
    connections = Connections(options.limits, tls=tls)
    listening = _listen(host, port)
    own = create_app(service, tokens=tokens, options=options)
    config = uvicorn.Config(
        own
        if application is None
        else RequestMiddleware(application, tokens=tokens, options=options, metrics=Metrics()),
        http=partial(Connection, connections=connections),  # type: ignore[arg-type]  # a class is asked for, called like one
        ws="none",
        lifespan="off",
        # It would write addresses with what people search for; the middleware writes its own line.
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=options.limits.keep_alive_seconds,
        # Left alone, uvicorn believes such headers from this machine, and from whom the environment names.
        proxy_headers=bool(options.forwarded_allow_ips),
        forwarded_allow_ips=list(options.forwarded_allow_ips),
        timeout_graceful_shutdown=options.grace_seconds,
    )
    server = _Server(config, connections=connections, ready=ready, closing=own.state.closing)
    with listening:
        try:
            await server.serve(sockets=[listening])
        except asyncio.CancelledError:
            # Uvicorn closes its listeners only when it ends by itself; left behind, they would disturb the next server.
            for running in getattr(server, "servers", ()):
                running.close()
            connections.close()
            raise


def tls_context(certificate: Path, key: Path | None = None) -> ssl.SSLContext:
    """For ``serve``: a certificate chain and its key as PEM files; without a key file it is in the same file."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # A key with a passphrase is refused: there is nobody to type it.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        files = str(certificate) if key is None else f"{certificate} and {key}"
        raise ConfigurationError(f"TLS cannot be served with {files}: {error}") from None
    return context


async def _audit_tokens(service: Service, tokens: Tokens) -> None:
    """Who has access is in the audit whenever that has changed."""
    audit, account = service.store.audit, tokens.account
    known = await audit.list(kind=TOKENS_CHANGED, limit=MOST_CHANGES)
    before = known[-1].details["digest"] if known else Tokens({}).account["digest"]
    if account["digest"] != before:
        now = service.app.clock.time()
        await audit.append(TOKENS_CHANGED, actor=None, run_id=None, subject="tokens", details=account, now=now)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio does not know the connections for TCP's, and lets small answers wait.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host.strip("[]"), port))
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another port, or stop what uses this one"
        ) from None
    return listening


class _Server(uvicorn.Server):
    """Ends on a signal without raising it again, so that the service behind it is closed in order as well."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        connections: Connections,
        ready: Callable[[int], None] | None,
        closing: asyncio.Event,
    ) -> None:
        super().__init__(config)
        self._closing = closing
        self._connections = connections
        self._ready = ready

    async def on_tick(self, counter: int) -> bool:
        if counter % TICKS_TO_SWEEP == 0:
            self._connections.sweep(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready is not None and sockets:
            self._ready(sockets[0].getsockname()[1])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams would go on until the time for an orderly end is over, and then be cut.
        self._closing.set()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with ending_signals(lambda number: self.handle_exit(number, None)):
            yield

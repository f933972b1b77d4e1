"""The two ways in: standard input and output of this process, and streamable HTTP under the service's tokens."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server

from journeyman.app.service import Service
from journeyman.core.data import MCP_MESSAGE_BYTES
from journeyman.core.policy import Principal
from journeyman.doors.mcp.asking import Context
from journeyman.doors.mcp.server import TOO_LARGE, Gateway

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from journeyman.doors.http import Tokens

PATH = "/mcp"


async def serve_stdio(
    opening: AbstractAsyncContextManager[Service],
    made: Callable[..., Gateway],
    *,
    output: TextIO,
    principal: Principal,
) -> None:
    """Serve one client over standard input and an output that nobody else writes to, until the input ends."""
    with own_input() as descriptor:
        lines: Any = BoundedLines(descriptor)
        async with stdio_server(stdin=lines, stdout=anyio.wrap_file(output)) as (read, write), opening as service:
            gateway = made(service, principal=lambda _: principal)
            async with gateway.watching():
                await gateway.server.run(read, write, gateway.server.create_initialization_options())


async def serve_http(
    service: Service,
    made: Callable[..., Gateway],
    *,
    host: str,
    port: int,
    tokens: Tokens | None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve clients under ``/mcp`` until SIGINT or SIGTERM. Each is whom its token stands for."""
    from journeyman.doors import http

    gateway = made(service, principal=_asking)
    # Hosts and origins are checked by the middleware that also knows the tokens.
    application: ASGIApp = gateway.server.streamable_http_app(streamable_http_path=PATH, host="0.0.0.0")
    async with gateway.server.session_manager.run(), gateway.watching():
        application = _introduced(application)
        await http.serve(service, host=host, port=port, tokens=tokens, ready=ready, application=application)


def _asking(ctx: Context) -> Principal:
    request: Any = ctx.request
    principal: Principal = request.scope["state"]["principal"]
    return principal


def _introduced(app: ASGIApp) -> ASGIApp:
    """The same, told who asks: the package lets nobody but the principal who began a session use it."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            principal: Principal = scope["state"]["principal"]
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal.id, scopes=[]))
        await app(scope, receive, send)

    return application


# --- standard input


_CHUNK = 65_536
_HEAD = 400
_ID = re.compile(rb'"id"\s*:\s*(\d{1,15}|"[^"\\]{1,200}")')


@contextmanager
def own_input() -> Iterator[int]:
    """Standard input for us alone: tools, and programs that they start, find it empty meanwhile."""
    private = os.dup(0)
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        yield private
        os.dup2(private, 0)
    finally:
        os.close(private)


class BoundedLines:
    """Lines of text from a file descriptor, as they come.

    The package ``mcp`` would read a line of any size. One that is too large is dropped while it comes, and a request in
    its place lets the server answer whoever waits for it.
    """

    def __init__(self, descriptor: int, *, most: int = MCP_MESSAGE_BYTES, chunk: int = _CHUNK) -> None:
        self._descriptor = descriptor
        self._most = most
        self._chunk = chunk

    async def __aiter__(self) -> AsyncIterator[str]:
        held = bytearray()
        dropped: bytes | None = None
        while chunk := await anyio.to_thread.run_sync(os.read, self._descriptor, self._chunk):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                held += piece
                if dropped is None and len(held) <= self._most:
                    yield held.decode("utf-8", "replace")
                elif (instead := _instead(dropped or bytes(held[:_HEAD]), bytes(held[-_HEAD:]))) is not None:
                    yield instead
                held, dropped = bytearray(), None
            held += rest
            if len(held) > self._most:
                dropped, held = dropped or bytes(held[:_HEAD]), held[-_HEAD:]
        if held and dropped is None:
            yield held.decode("utf-8", "replace")


def _instead(head: bytes, tail: bytes) -> str | None:
    """A request with the id of one that was dropped; None where it names none. Clients write it first, or last."""
    named = _ID.search(head) or next(iter([*_ID.finditer(tail)][-1:]), None)
    if named is None:
        return None
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(named[1]), "method": TOO_LARGE})

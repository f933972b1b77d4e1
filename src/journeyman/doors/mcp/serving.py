"""The two ways in: standard input and output of this process, and streamable HTTP under the service's tokens."""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from mcp.server.stdio import stdio_server

from journeyman.app.service import Service
from journeyman.core.principals import Principal
from journeyman.doors.mcp.calls import Context, Places
from journeyman.doors.mcp.server import Gateway
from journeyman.doors.mcp.stdin import BoundedLines, own_input

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from journeyman.doors.http import ServeOptions, Tokens

PATH = "/mcp"
MOST_SESSIONS = 10_000
_SESSION = b"mcp-session-id"


async def serve_stdio(
    opening: AbstractAsyncContextManager[Service], *, principal: Principal, places: Places, elicit: bool = True
) -> None:
    """Serve one client over standard input and output, until the input ends. Nothing else gets onto the output.

    The service is opened in here: from its first moment on, what its tools print goes to standard error.
    """
    with own_input() as descriptor:
        lines: Any = BoundedLines(descriptor)
        async with stdio_server(stdin=lines) as (read, write), opening as service:
            gateway = Gateway(service, principal=lambda _: principal, places=places, elicit=elicit)
            async with gateway.watching():
                await gateway.server.run(read, write, gateway.server.create_initialization_options())


async def serve_http(
    service: Service,
    *,
    host: str,
    port: int,
    tokens: Tokens | None,
    places: Places,
    elicit: bool = True,
    options: ServeOptions | None = None,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve clients under ``/mcp`` until SIGINT or SIGTERM. Each is whom its token stands for."""
    from journeyman.doors import http

    gateway = Gateway(service, principal=_asking, places=places, elicit=elicit)
    # Hosts and origins are checked by the middleware that also knows the tokens.
    application = gateway.server.streamable_http_app(streamable_http_path=PATH, host="0.0.0.0")
    async with gateway.server.session_manager.run(), gateway.watching():
        await http.serve(
            service,
            host=host,
            port=port,
            tokens=tokens,
            options=options,
            tls=tls,
            ready=ready,
            application=OwnSessions(application),
        )


def _asking(ctx: Context) -> Principal:
    request: Any = ctx.request
    principal: Principal = request.scope["state"]["principal"]
    return principal


class OwnSessions:
    """A session belongs to the principal who began it: another's token does not open it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._owners: OrderedDict[bytes, str] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        principal: Principal = scope["state"]["principal"]
        named = next((value for name, value in scope["headers"] if name == _SESSION), None)
        if named is not None and self._owners.get(named, principal.id) != principal.id:
            await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"there is no such session"})
            return

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                for name, value in message.get("headers", ()):
                    if name.lower() == _SESSION:
                        self._owners[value] = principal.id
                        if len(self._owners) > MOST_SESSIONS:
                            self._owners.popitem(last=False)
            await send(message)

        await self._app(scope, receive, noted)

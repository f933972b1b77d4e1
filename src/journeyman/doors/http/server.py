"""Serving: a socket, a server around the application, and an orderly end."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn

from journeyman.app.service import Service
from journeyman.core.errors import ConfigurationError
from journeyman.doors.http.application import create_app
from journeyman.doors.http.auth import Tokens, check_binding
from journeyman.doors.http.middleware import ServeOptions


async def serve(
    service: Service,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    tokens: Tokens | None = None,
    options: ServeOptions | None = None,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one; ``ready`` is told which it is.

    Streams that are open are cut in the end; their clients come back with Last-Event-ID.
    """
    check_binding(host, tokens)
    options = options or ServeOptions()
    listening = _listen(host, port)
    config = uvicorn.Config(
        create_app(service, tokens=tokens, options=options),
        lifespan="off",
        # It would write addresses with what people search for; the middleware writes its own line.
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=options.grace_seconds,
    )
    server = _Server(config, ready=ready)
    with listening:
        try:
            await server.serve(sockets=[listening])
        except asyncio.CancelledError:
            # Uvicorn closes its listeners only when it ends by itself; left behind, they would disturb the next server.
            for running in getattr(server, "servers", ()):
                running.close()
            raise


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

    def __init__(self, config: uvicorn.Config, *, ready: Callable[[int], None] | None) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready is not None and sockets:
            self._ready(sockets[0].getsockname()[1])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handled = []
        for number in (signal.SIGINT, signal.SIGTERM):
            # Only the main thread hears signals; elsewhere whoever runs the loop ends it.
            with suppress(ValueError, NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, self.handle_exit, number, None)
                handled.append(number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)

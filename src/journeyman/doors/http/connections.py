"""Connections with slow or silent clients: how many there may be, and how long they may keep the service waiting.

Uvicorn itself waits for ever for a request's head and body and for whoever does not read an answer, and takes any
number of connections. Here a connection that waits for its client is closed when its time is up, or as soon as a
newcomer needs its place; a request that is being answered keeps its place.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from uvicorn.protocols.http.h11_impl import H11Protocol

from journeyman.core.data import LOG_FIELDS

logger = logging.getLogger("journeyman.http")

OTHER_FILES = 128
"""Of the files that a process may have open, those left to the store, the models and the tools."""
LINGER_SECONDS = 5.0
"""How much longer a connection is kept for the answer that it was too slow, and for the farewell of TLS."""
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"

Wait: TypeAlias = Literal["head", "body"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What clients may take of the server before it hangs up."""

    connections: int = 1_000
    """At once. Fewer where the system allows the process fewer open files."""
    connections_per_address: int = 500
    """At once from one client address. A proxy in front of the service is one address."""
    head_seconds: float = 10.0
    """From the connection, or the answer before, to the last header of a request; also for a TLS handshake."""
    body_seconds: float = 30.0
    """From then to the end of its body."""
    write_seconds: float = 60.0
    """How long a client may read nothing of an answer, or too little to make room for more."""
    keep_alive_seconds: int = 5
    """How long a connection stays open without a request."""


class Connections:
    """Every connection of a server."""

    def __init__(self, limits: ConnectionLimits, *, tls: ssl.SSLContext | None = None) -> None:
        self.limits = limits
        self.tls = tls
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = limits.connections
        if files != resource.RLIM_INFINITY:
            self._most = min(self._most, max(16, files - OTHER_FILES))
        # Dictionaries for their order: the oldest first.
        self._open: dict[Connection, None] = {}
        self._by_address: dict[str, dict[Connection, None]] = {}
        self._dropped: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection) -> bool:
        """Whether there is a place for it; one that waits for its client is closed for it, if need be."""
        theirs = self._by_address.get(connection.address, {})
        for held, most in ((theirs, self.limits.connections_per_address), (self._open, self._most)):
            if len(held) < most:
                continue
            longest_waiting = next((other for other in held if other.waits_for is not None), None)
            if longest_waiting is None:
                self._dropped["refused"] += 1
                return False
            self._dropped["replaced"] += 1
            longest_waiting.drop()
        self._open[connection] = None
        self._by_address.setdefault(connection.address, {})[connection] = None
        return True

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        if (theirs := self._by_address.get(connection.address)) is not None:
            theirs.pop(connection, None)
            if not theirs:
                del self._by_address[connection.address]

    def close(self) -> None:
        """Hang up on everybody."""
        for connection in list(self._open):
            connection.drop()

    def sweep(self, now: float) -> None:
        """Close whatever has kept the service waiting for too long. Called again and again by the server."""
        for connection in list(self._open):
            if (reason := connection.overdue(now)) is not None:
                self._dropped[reason] += 1
                connection.drop(_TOO_SLOW if reason == "head" else b"")
        if self._dropped:
            # One line for all of them: who opens thousands must not fill the log as well.
            logger.warning("closed connections of slow clients", extra={LOG_FIELDS: {**self._dropped}})
            self._dropped.clear()


class Connection(H11Protocol):
    """One connection, and since when it waits for its client."""

    def __init__(self, *arguments: Any, connections: Connections, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._all = connections
        self._limits = connections.limits
        self._raw: asyncio.Transport | None = None
        self._made = False
        self._early = bytearray()
        """What came between the end of the handshake and the moment at which we were told of it."""
        self._handshake: asyncio.Task[None] | None = None
        self.address = "unknown"
        # How things stood when they were last looked at, and since when.
        self._seen: tuple[Wait | None, object] = (None, None)
        self._since = self._moving_since = self.loop.time()
        self._unsent = 0
        self._paused_since: float | None = None

    @property
    def waits_for(self) -> Wait | None:
        """What of a request is still to come; None while one is being answered."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return "head"
        return "body" if cycle.more_body else None

    def overdue(self, now: float) -> str | None:
        """Why its time is up, if it is."""
        limits = self._limits
        seen = (self.waits_for, self.cycle)
        if seen != self._seen:
            self._seen, self._since = seen, now
        transport = self.transport or self._raw
        if transport is None:
            return None
        unsent, closing = transport.get_write_buffer_size(), transport.is_closing()
        if unsent < self._unsent or (unsent == 0 and not closing):
            self._moving_since = now
        self._unsent = unsent
        if now - self._moving_since > (LINGER_SECONDS if closing and unsent == 0 else limits.write_seconds):
            return "unread"
        if self._paused_since is not None and now - self._paused_since > limits.write_seconds:
            return "unread"
        waited = now - self._since
        if seen[0] == "head" and waited > limits.head_seconds and not closing:
            return "head"
        # The application has said 408 by then, if it cares for the body at all.
        if seen[0] == "body" and waited > limits.body_seconds + LINGER_SECONDS:
            return "body"
        return None

    def drop(self, last_words: bytes = b"") -> None:
        """Hang up, after a last word where somebody has begun to ask for something."""
        self._all.remove(self)
        transport = self.transport or self._raw
        if transport is None:
            return
        if last_words and self._made and self.conn.trailing_data[0]:
            transport.write(last_words)
            transport.close()
        else:
            transport.abort()

    def shutdown(self) -> None:
        """The server ends: what has begun is answered, but nobody waits for the rest of a request."""
        if self._made and self.waits_for == "body":
            self.drop()
        else:
            super().shutdown()

    # --- what asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._raw = transport
        self.address = str((transport.get_extra_info("peername") or ["unknown"])[0])
        if not self._all.add(self):
            if self._all.tls is None:
                transport.write(_TOO_MANY)
            transport.close()
        elif self._all.tls is None:
            self._begin(transport)
        else:
            self._handshake = self.loop.create_task(self._secure(transport, self._all.tls))

    async def _secure(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        secured: asyncio.Transport | None = None
        with suppress(OSError):  # a handshake that fails, or takes too long, is the client's affair
            secured = await self.loop.start_tls(
                transport, self, tls, server_side=True, ssl_handshake_timeout=self._limits.head_seconds
            )
        if secured is None or secured.is_closing():
            self._all.remove(self)
            transport.abort()
            return
        self._begin(secured)
        if self._early:
            self.data_received(bytes(self._early))

    def _begin(self, transport: asyncio.Transport) -> None:
        self._made = True
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.remove(self)
        if self._made:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._made:
            super().data_received(data)
        else:
            self._early += data

    def pause_writing(self) -> None:
        self._paused_since = self.loop.time()
        if self._made:
            super().pause_writing()

    def resume_writing(self) -> None:
        self._paused_since = None
        if self._made:
            super().resume_writing()

"""A server at an address, spoken to over streamable HTTP.

The package ``mcp`` speaks the protocol. What it sends and receives passes a transport of ours: it bounds what is read,
refuses compressed bodies (they may unpack to anything), and turns faults of one request into an error of that request:
otherwise they would end the connection with every other request on it. The package sends a request again after a
redirect and after signing in; a call of a tool is sent once, since nobody knows what the first one has done.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from journeyman.core.errors import ConfigurationError
from journeyman.sources.mcp.guard import LOST, UNREACHABLE, UNREADABLE, Guard

CONNECT_SECONDS = 10.0
READ_SECONDS = 310.0
"""Longer than any call may take: the call's own timeout decides."""
GOODBYE_SECONDS = 2.0
GET_PAUSE = 1.0
"""Between two attempts at the stream of notifications; a server can ask for less."""
LOST_WHILE_READ = "the connection was lost while the answer was read"
_SLICE = 16_384
_SENT = "journeyman_sent"
"""Marks a request that was sent before."""


@dataclass(slots=True, eq=False)
class HttpLink:
    """The requests of one session with a server."""

    url: str
    headers: Mapping[str, str]
    auth: httpx2.Auth | None
    guard: Guard
    most: int
    probe_seconds: float | None = None
    """Every request is answered; signing in may take its time."""
    fault: str | None = None
    exit_code: int | None = None
    last_words: bytes = b""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Never set from here: a lost request does not end a session over HTTP."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[Any, Any]]:
        """The streams that a session of the protocol reads and writes."""
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=READ_SECONDS)
        transport = BoundedTransport(httpx2.AsyncHTTPTransport(), self.url, most=self.most)
        headers = {**self.headers, "accept-encoding": "identity"}
        async with (
            httpx2.AsyncClient(transport=transport, headers=headers, auth=self.auth, timeout=timeout) as client,
            streamable_http_client(self.url, http_client=client, max_sse_event_size=self.most) as (read, write),
        ):
            yield _Admitted(read, self.guard), write


class _Admitted:
    """A stream of messages, each of which has passed the guard."""

    def __init__(self, stream: Any, guard: Guard) -> None:
        self._stream = stream
        self._guard = guard

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for item in self._stream:
            if not isinstance(item, SessionMessage):
                yield item
            elif (message := self._guard.admitted(item.message)) is not None:
                yield item if message is item.message else SessionMessage(message)

    async def __aenter__(self) -> _Admitted:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> Any:
        return await self._stream.__aexit__(*exc)


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Reads no more than it must, and answers in the server's place where the server cannot be reached."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, endpoint: str, *, most: int) -> None:
        self._inner = inner
        self._endpoint = httpx2.URL(endpoint)
        self._most = most
        self._next_get = 0.0
        self._moved: httpx2.URL | None = None
        """Where the endpoint's requests are redirected to: calls go there at once."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        speaks = request.method == "POST" and request.url in (self._endpoint, self._moved)
        if request.method == "GET":
            await self._pause()
        calls = request.method == "POST" and b'"tools/call"' in await request.aread()
        if calls and request.extensions.get(_SENT):
            return _instead(request, 502, LOST, "wanted us to sign in after it was sent the call; it is not sent again")
        request.extensions[_SENT] = True
        if speaks and self._moved is not None:
            request.url = self._moved
        try:
            limit = GOODBYE_SECONDS if request.method == "DELETE" else None
            async with asyncio.timeout(limit):
                response = await self._inner.handle_async_request(request)
        except TimeoutError as error:
            raise httpx2.ReadTimeout("no answer to the end of the session", request=request) from error
        except httpx2.TransportError as error:
            if not speaks:
                raise
            sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
            why = f"{'did not answer' if sent else 'cannot be reached'} ({type(error).__name__})"
            return _instead(request, 502, LOST if sent else UNREACHABLE, why)
        if speaks and response.status_code in (307, 308):
            to = request.url.join(response.headers.get("location", ""))
            # The package follows to the same host alone, also from http to https; to another port it does not.
            followed = to.host == request.url.host and (to.port == request.url.port or to.scheme != request.url.scheme)
            if followed and calls:
                await response.aclose()
                return _instead(request, 502, LOST, "redirected us after it was sent the call; it is not sent again")
            if followed:
                self._moved = to
        if (encoding := response.headers.get("content-encoding", "identity").lower()) not in ("identity", ""):
            await response.aclose()
            why = f"sent a compressed answer ({encoding[:20]!r}), which is not taken"
            return _instead(request, 502, UNREADABLE, why) if speaks else httpx2.Response(502, request=request)
        if (
            speaks
            and response.status_code >= 400
            and response.status_code != 404
            and not (response.headers.get("content-type", "").lower().startswith("application/json"))
        ):
            await response.aclose()
            return _instead(request, response.status_code, UNREACHABLE, _refused(response), response.headers)
        streams = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, None if streams else self._most)
        return response

    async def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        wait = self._next_get - loop.time()
        self._next_get = max(loop.time(), self._next_get) + GET_PAUSE
        if wait > 0:
            await asyncio.sleep(wait)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it is too long or breaks off. Given out in slices: others go on between."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int | None) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size += len(chunk)
                if self._most is not None and size > self._most:
                    raise httpx2.StreamError(f"the answer is larger than {self._most:,} bytes")
                for at in range(0, len(chunk), _SLICE):
                    yield chunk[at : at + _SLICE]
                    if len(chunk) > _SLICE:
                        await asyncio.sleep(0)
        except httpx2.TransportError as error:
            raise httpx2.StreamError(f"{LOST_WHILE_READ} ({type(error).__name__})") from error

    async def aclose(self) -> None:
        await self._inner.aclose()


def _refused(response: httpx2.Response) -> str:
    hint = "; check its headers or auth" if response.status_code in (401, 403) else ""
    return f"answered with HTTP status {response.status_code} {response.reason_phrase}{hint}"


def _instead(
    request: httpx2.Request, status: int, code: int, why: str, headers: Mapping[str, str] | None = None
) -> httpx2.Response:
    """An answer in the server's place, as the protocol has it; the status and what authentication reads of it stay."""
    kept = {key: value for key, value in (headers or {}).items() if key.lower() == "www-authenticate"}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}}).encode()
    return httpx2.Response(status, headers={**kept, "content-type": "application/json"}, content=body, request=request)


def client_credentials(url: str, given: Mapping[str, Any]) -> httpx2.Auth:
    """OAuth for a program of its own: an access token is fetched for a client id and secret, and renewed."""
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    known = ("client_id", "client_secret", "issuer", "scope")
    if unknown := sorted(set(given) - set(known)):
        raise ConfigurationError(f"oauth: unknown {', '.join(map(repr, unknown))}; there are {', '.join(known)}")
    # Without an issuer the server itself would say who gets to see the secret.
    if missing := [name for name in known[:3] if not given.get(name)]:
        raise ConfigurationError(f"oauth: {' and '.join(missing)} must be given")
    return ClientCredentialsOAuthProvider(
        server_url=url,
        storage=_Nothing(),
        client_id=given["client_id"],
        client_secret=given["client_secret"],
        scope=given.get("scope"),
        issuer=given["issuer"],
    )


class _Nothing:
    """Keeps no tokens: the provider holds its own, and fetches others when the program starts again."""

    async def get_tokens(self, *_: Any) -> Any:
        return None

    get_client_info = set_tokens = set_client_info = get_tokens

"""The road to a model server: one POST after another, over HTTP/1.1 connections that are kept.

For the ordinary case, and therefore small: no redirects, no cookies, no pipelining. Whoever must go through a proxy
goes through aiohttp (:class:`ProxiedClient`), with the same face. Nothing that a server sends is trusted: heads have a
size, what is packed is unpacked in slices, reading stops while nobody takes what was read, and silence ends.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache, partial
from typing import Any, Self

import httptools
from yarl import URL

from journeyman.core.data import OverBudgetError
from journeyman.core.errors import ConfigurationError
from journeyman.core.model_settings import Timeouts
from journeyman.models.bounded import unpacker

HEAD_BYTES = 65_536
READ_AHEAD = 1_000_000
"""Bytes that are read before anybody takes them."""
KEPT_SECONDS = 15.0
"""A connection that was not used for so long is not used again: its server may be closing it."""


class SilenceError(TimeoutError):
    """Nothing came for ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"nothing for {seconds:g} s")


class CutError(ConnectionError):
    """The connection ended in the middle of an answer, or what came is no answer."""


class Answer:
    """What a server says to one request. ``pieces`` are its body, unpacked; leaving it frees the connection."""

    status = 0

    def __init__(self, release: Callable[[bool], None]) -> None:
        self.headers: dict[str, str] = {}
        self.complete = False
        self.begun = False
        self._release = release
        self._pieces: list[bytes] = []
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._resume: Callable[[], None] | None = None
        self._unpack: Callable[[bytes], Any] | None = None

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._release(self.complete and self._error is None)

    async def head(self) -> None:
        """Wait until status and headers are there."""
        while not self.begun:
            await self._more()
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            self._unpack = unpacker(encoding)

    async def pieces(self) -> AsyncIterator[bytes]:
        while True:
            if self._pieces:
                piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
                self._pieces.clear()
                if self._resume is not None:
                    self._resume()
                if self._unpack is None:
                    yield piece
                else:
                    for unpacked in self._unpack(piece):
                        yield unpacked
                        await asyncio.sleep(0)
            elif self.complete:
                return
            else:
                await self._more()

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises OverBudgetError."""
        if self.complete and self._unpack is None:  # as nearly always: head and body came in one
            body = b"".join(self._pieces)
            self._pieces.clear()
        else:
            parts: list[bytes] = []
            size = 0
            async for piece in self.pieces():
                parts.append(piece)
                size += len(piece)
                if size > limit:
                    break
            body = b"".join(parts)
        if len(body) > limit:
            raise OverBudgetError(f"answered with more than {limit:,} bytes")
        return body

    async def _more(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not self._pieces:
            raise self._error

    def _wake(self, error: Exception | None = None) -> None:
        self._error = self._error or error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Connection(asyncio.Protocol):
    """One connection: parses what comes, for the one answer that is waited for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.transport: asyncio.Transport | None = None
        self.answer: Answer | None = None
        self.closed = False
        self.used_at = 0.0
        self._parser: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes = self._read_ahead = 0
        self._to_the_end = self._stays = self._paused = False

    def ask(self, answer: Answer, request: bytes, timeouts: Timeouts, began: float) -> None:
        self.answer, self._timeouts = answer, timeouts
        self._began, self._heard_at, self._heard = began, self._loop.time(), False
        if self._parser is None:  # one for all answers: a connection on which something went wrong is not used again
            self._parser = httptools.HttpResponseParser(self)
        self._head_bytes = self._read_ahead = 0
        self._to_the_end = self._stays = False
        answer._resume = self._resume
        assert self.transport is not None
        self.transport.write(request)
        self._watch()

    def end(self, *, reusable: bool) -> None:
        """The answer is no longer wanted."""
        self.answer = None
        if not reusable or not self._stays:
            self.close()
        self.used_at = self._loop.time()

    def close(self) -> None:
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.transport is not None:
            self.transport.abort()

    # --- time

    def _due(self) -> tuple[float, float] | None:
        """When this answer has taken too long, and for how long it may."""
        limits, due = self._timeouts, None
        quiet = limits.idle if self._heard else limits.first_byte
        if quiet is not None and not self._paused:
            due = self._heard_at + quiet, quiet
        if limits.total is not None and (due is None or self._began + limits.total < due[0]):
            due = self._began + limits.total, limits.total
        return due

    def _watch(self) -> None:
        """Look again no later than that. A timer that goes off earlier stays, also from one answer to the next."""
        due = self._due()
        if due is None or (self._timer is not None and self._timer.when() <= due[0]):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(due[0], self._look)

    def _look(self) -> None:
        self._timer = None
        if self.answer is None or self.answer.complete or (due := self._due()) is None:
            return
        if self._loop.time() >= due[0]:
            self._fail(SilenceError(due[1]))
        else:
            self._watch()

    # --- what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # it is one that reads and writes

    def data_received(self, data: bytes) -> None:
        answer = self.answer
        if answer is None:
            self.close()  # nobody has asked
            return
        first, self._heard, self._heard_at = not self._heard, True, self._loop.time()
        if not answer.begun:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(CutError("it wants to speak another protocol"))
        except httptools.HttpParserError as error:
            self._fail(CutError(f"what it says is not HTTP ({error})"))
        else:
            if not answer.begun and self._head_bytes > HEAD_BYTES:
                self._fail(CutError(f"its head has more than {HEAD_BYTES:,} bytes"))
            elif answer.complete or answer._pieces:
                answer._wake()
            if first and not answer.complete:
                self._watch()  # from now on another silence counts

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = True
        answer = self.answer
        if answer is None or answer.complete:
            return
        if answer.begun and self._to_the_end and error is None:
            answer.complete = True
            answer._wake()
        else:
            answer._wake(error if isinstance(error, OSError) else CutError("it closed the connection"))

    def _fail(self, error: Exception) -> None:
        if self.answer is not None:
            self.answer._wake(error)
        self.close()

    def _resume(self) -> None:
        self._read_ahead = 0
        if self._paused and self.transport is not None:
            self._paused = False
            self._heard_at = self._loop.time()
            self._watch()
            self.transport.resume_reading()

    # --- what the parser tells

    def on_message_begin(self) -> None:
        if self.answer is not None and self.answer.complete:
            self.close()  # a second answer that nobody has asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.answer is not None and not self.answer.begun:
            self.answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        answer = self.answer
        if answer is None or answer.begun:
            return
        answer.status = self._parser.get_status_code()
        if answer.status < 200:  # the answer itself comes later
            answer.headers.clear()
            return
        chunked = "chunked" in answer.headers.get("transfer-encoding", "").lower()
        self._to_the_end = not chunked and "content-length" not in answer.headers
        answer.begun = True

    def on_body(self, data: bytes) -> None:
        if self.answer is None or self.answer.complete:
            return
        self.answer._pieces.append(data)
        self._read_ahead += len(data)
        if self._read_ahead > READ_AHEAD and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self.answer is not None and self.answer.begun and not self.answer.complete:
            self.answer.complete = True
            self._stays = self._parser.should_keep_alive()


class Client:
    """Connections to one server, for one event loop."""

    def __init__(self, url: URL, headers: Mapping[str, str]) -> None:
        lines = {"Host": url.host_port_subcomponent or "", "Accept": "*/*", "Accept-Encoding": "identity", **headers}
        if url.user is not None:
            lines["Authorization"] = "Basic " + b64encode(f"{url.user}:{url.password or ''}".encode()).decode()
        if bad := [name for name, value in lines.items() if {"\r", "\n"} & {*name, *value}]:
            raise ConfigurationError(f"the header {bad[0]!r} has a line break in it; write it in one line")
        written = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._head = f"POST {url.raw_path_qs} HTTP/1.1\r\n{written}Content-Length: ".encode()
        self._url = url
        self._free: list[_Connection] = []
        self._open: set[_Connection] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._open:
            connection.close()
        await asyncio.sleep(0)  # closing is carried out by the event loop

    async def post(self, body: bytes, timeouts: Timeouts) -> Answer:
        """Send, and wait for the head of the answer. Raises TimeoutError and OSError."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        request = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        while True:
            connection = self._kept(began)
            fresh = connection is None
            if connection is None:
                connection = await self._connect(loop, timeouts)
            answer = Answer(partial(self._done, connection))
            connection.ask(answer, request, timeouts, began)
            try:
                await answer.head()
            except CutError:
                self._done(connection, False)
                if fresh or connection._heard:
                    raise
                continue  # the server has closed it meanwhile, and has read nothing of this
            except BaseException:
                self._done(connection, False)
                raise
            return answer

    def _kept(self, now: float) -> _Connection | None:
        while self._free:
            connection = self._free.pop()
            if not connection.closed and now - connection.used_at < KEPT_SECONDS:
                return connection
            connection.close()
            self._open.discard(connection)
        return None

    async def _connect(self, loop: asyncio.AbstractEventLoop, timeouts: Timeouts) -> _Connection:
        url, connection = self._url, _Connection(loop)
        assert url.host is not None
        assert url.port is not None
        context = _tls() if url.scheme == "https" else None
        limits = [limit for limit in (timeouts.connect, timeouts.total) if limit is not None]
        try:
            async with asyncio.timeout(min(limits, default=None)):
                await loop.create_connection(
                    lambda: connection, url.host, url.port, ssl=context, happy_eyeballs_delay=0.25
                )
        except TimeoutError:
            raise SilenceError(min(limits)) from None
        self._open.add(connection)
        return connection

    def _done(self, connection: _Connection, reusable: bool) -> None:
        if connection.answer is None:
            return
        connection.end(reusable=reusable)
        if connection.closed:
            self._open.discard(connection)
        else:
            self._free.append(connection)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


# --- through a proxy


class _Proxied(Answer):
    """An answer that aiohttp reads, and unpacks."""

    def __init__(self, response: Any) -> None:
        super().__init__(lambda _: response.close())
        self.status, self.begun, self._response = response.status, True, response
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    async def pieces(self) -> AsyncIterator[bytes]:
        import aiohttp

        try:
            async for piece in self._response.content.iter_any():
                yield piece
        except aiohttp.ClientError as error:
            raise CutError(str(error)) from None
        self.complete = True


class ProxiedClient:
    """The same through a proxy."""

    def __init__(self, url: URL, headers: Mapping[str, str], proxy: str) -> None:
        import aiohttp

        self._url = url
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), headers=headers, cookie_jar=aiohttp.DummyCookieJar(), proxy=proxy
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def post(self, body: bytes, timeouts: Timeouts) -> Answer:
        import aiohttp

        limits = aiohttp.ClientTimeout(
            total=timeouts.total, sock_connect=timeouts.connect, sock_read=timeouts.first_byte
        )
        try:
            response = await self._session.post(self._url, data=body, timeout=limits, allow_redirects=False)
        except aiohttp.ClientError as error:
            raise ConnectionError(str(error)) from None
        return _Proxied(response)

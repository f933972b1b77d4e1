"""A bound on what the HTTP clients inside providers' SDKs read: ``OpenAIModel`` has its own client and its own bound.

The SDKs read an answer whole, however large it is after decompression. So the body is unpacked here, slice by slice,
and reading stops at the limit. The SDKs wrap the error that stops it in their own; ``over_budget`` finds it again.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from journeyman.core.data import (
    ANSWER_BYTES,
    EVENT_BYTES,
    EVENT_LINES,
    JSON_CONTAINERS,
    SLICE_BYTES,
    STREAM_BYTES,
    OverBudgetError,
)

if TYPE_CHECKING:
    from pydantic_ai.models import Model as AiModel

_ACCEPTED = "gzip, deflate"
"""Nothing else is asked for: these can be unpacked by slices with the standard library."""
_AMAZONS_STREAM = "application/vnd.amazon.eventstream"
_STREAMS = ("text/event-stream", "application/x-ndjson", "application/stream+json", _AMAZONS_STREAM)


async def bound(model: AiModel) -> None:
    """Limit what a model's client reads. A client of a kind not known here is left as it is."""
    provider = getattr(model, "_provider", None)
    client: Any = getattr(provider, "_own_http_client", None)
    sdk: Any = getattr(provider, "client", None)
    if client is None and hasattr(sdk, "_get_async_client"):  # Hugging Face's opens its client later
        client = await sdk._get_async_client()
    elif client is None and hasattr(getattr(sdk, "_client", None), "event_hooks"):  # one that was made for its address
        client = sdk._client
    if client is not None:
        modules = (sys.modules[kind.__module__.partition(".")[0]] for kind in type(client).__mro__)
        _bound_httpx(client, next(module.AsyncByteStream for module in modules if hasattr(module, "AsyncByteStream")))
    elif hasattr(sdk, "meta") and hasattr(sdk, "_endpoint"):
        _bound_botocore(sdk)


def over_budget(error: BaseException) -> OverBudgetError | None:
    """The limit that was passed, where that is what an SDK's error comes from."""
    seen = 0
    cause: BaseException | None = error
    while cause is not None and seen < 20:
        if isinstance(cause, OverBudgetError):
            return cause
        # botocore keeps what it wraps in a field of its own.
        inner = getattr(cause, "kwargs", {}).get("error") if hasattr(cause, "kwargs") else None
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
        seen += 1
    return None


class _Counter:
    """Counts what is read of one answer."""

    def __init__(self, content_type: str) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        self._streamed, self._events = kind in _STREAMS, kind == "text/event-stream"
        self._bytes = self._containers = self._event_bytes = self._event_lines = 0
        self._end = b""

    def take(self, piece: bytes) -> bytes:
        self._bytes += len(piece)
        if self._streamed:
            if self._bytes > STREAM_BYTES:
                raise OverBudgetError(f"streamed more than {STREAM_BYTES:,} bytes")
            if self._events:
                self._count_event(piece)
            return piece
        if self._bytes > ANSWER_BYTES:
            raise OverBudgetError(f"answered with more than {ANSWER_BYTES:,} bytes")
        self._containers += piece.count(b"[") + piece.count(b"{")
        if self._containers > JSON_CONTAINERS:
            raise OverBudgetError(f"answered with more than {JSON_CONTAINERS:,} lists and objects")
        return piece

    def _count_event(self, piece: bytes) -> None:
        """SDKs put an event together again at each of its lines, which takes the square of its length."""
        text = self._end + piece  # what ends an event may come in two pieces
        ended = max(text.rfind(b"\n\n"), text.rfind(b"\n\r\n"), text.rfind(b"\r\r"))
        if ended >= 0:
            self._event_bytes = self._event_lines = 0
            rest = text[ended + 2 :]
        else:
            rest = piece
        self._end = text[-2:]
        self._event_bytes += len(rest)
        self._event_lines += rest.count(b"\n") + rest.count(b"\r")
        if self._event_bytes > EVENT_BYTES or self._event_lines > EVENT_LINES:
            raise OverBudgetError(f"streamed an event of more than {EVENT_BYTES:,} bytes or {EVENT_LINES:,} lines")


def unpacker(encoding: str) -> Callable[[bytes], Iterator[bytes]]:
    """What turns a piece of a packed body into slices. Raises OverBudgetError for a packing that nobody asked for."""
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise OverBudgetError(f"answered in the encoding {encoding[:40]!r}, which was not asked for")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip, or zlib: whatever its header says
    begun = False

    def slices(piece: bytes) -> Iterator[bytes]:
        nonlocal unpacker, begun
        while piece:
            try:
                unpacked = unpacker.decompress(piece, SLICE_BYTES)
            except zlib.error:
                if begun or encoding != "deflate":
                    raise OverBudgetError(f"answered with what is not {encoding}, as it said") from None
                unpacker, begun = zlib.decompressobj(-zlib.MAX_WBITS), True  # some servers leave the header out
                continue
            begun = True
            piece = unpacker.unconsumed_tail
            if unpacked:
                yield unpacked

    return slices


# --- httpx, and httpx2, which has the same API


def _bound_httpx(client: Any, stream_class: type[Any]) -> None:
    class Bounded(stream_class):  # type: ignore[misc]  # a class found at run time
        """The body of an answer, unpacked and counted."""

        def __init__(self, packed: Any, encoding: str, counter: _Counter) -> None:
            self._packed = packed
            self._slices: Callable[[bytes], Iterable[bytes]] = (
                unpacker(encoding) if encoding else lambda piece: (piece,)
            )
            self._counter = counter

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._packed:
                for part in self._slices(piece):
                    yield self._counter.take(part)
                    if len(part) >= SLICE_BYTES:
                        await asyncio.sleep(0)

        async def aclose(self) -> None:
            await self._packed.aclose()

    async def ask(request: Any) -> None:
        request.headers["Accept-Encoding"] = _ACCEPTED

    async def limit(response: Any) -> None:
        encoding = response.headers.get("Content-Encoding", "").strip().lower().replace("identity", "")
        if encoding:
            unpacker(encoding)
            del response.headers["Content-Encoding"]
        response.stream = Bounded(response.stream, encoding, _Counter(response.headers.get("Content-Type", "")))

    hooks = client.event_hooks
    client.event_hooks = {"request": [*hooks["request"], ask], "response": [limit, *hooks["response"]]}


# --- botocore, which unpacks nothing


def _bound_botocore(sdk: Any) -> None:
    def send(request: Any, **_: Any) -> Any:
        streamed, request.stream_output = request.stream_output, True  # else it would read all before we see it
        response = sdk._endpoint.http_session.send(request)
        read, counter = response.raw.stream, _Counter(response.headers.get("Content-Type", ""))

        def stream(*args: Any, **options: Any) -> Iterator[bytes]:
            try:
                for piece in read(*args, **options):
                    yield counter.take(piece)
            except OverBudgetError:
                response.raw.close()  # nobody reads the rest
                raise

        response.raw.stream = stream
        if not streamed:
            _ = response.content  # kept by the response, for whoever reads it next
        return response

    sdk.meta.events.register("before-send.bedrock-runtime", send)

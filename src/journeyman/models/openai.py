"""The adapter for every server that speaks OpenAI's chat completions.

HTTP is in ``http``, the wire format is in ``wire`` and ``answer``, the errors in ``faults``, retries in ``remote``.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from journeyman.core.content import MediaKind
from journeyman.core.data import (
    ANSWER_BYTES,
    ERROR_BYTES,
    LARGE_TEXT,
    SLICE_BYTES,
    STREAM_BYTES,
    OverBudgetError,
    read_at_most,
    retry_after,
)
from journeyman.core.errors import ConfigurationError
from journeyman.core.model_settings import ModelSettings, Timeouts
from journeyman.core.protocols import Clock, Deltas, ModelRequest, ModelResponse, SystemClock
from journeyman.core.specification import ToolSpecification
from journeyman.models.answer import (
    BadAnswerError,
    EventParser,
    ServerReportedError,
    StreamedAnswer,
    read_answer,
    read_body,
)
from journeyman.models.faults import Faults
from journeyman.models.http import Answer, Client, CutError, ProxiedClient, SilenceError
from journeyman.models.remote import AttemptDeltas, AttemptError, PerEventLoop, RemoteModel, with_retries
from journeyman.models.structured import OutputMode, OutputModes, response_format, without_finish
from journeyman.models.wire import EncodedTools, encode, encode_messages, make_offer, media_of

PUBLIC_ENDPOINT = "https://api.openai.com/v1"
OFFERS_KEPT = 64
DRAIN_SECONDS = 0.1
DRAIN_BYTES = 64_000
OWN_FIELDS = frozenset({"model", "messages", "tools", "stream", "stream_options", "response_format"})


class OpenAIModel(RemoteModel):
    """A model behind an OpenAI-compatible server.

    The key of the environment goes only to the server of the environment: a ``base_url`` given here that is another
    one gets ``api_key``, or none. ``timeout`` as a number is for the whole answer, which by default may go on as long
    as something comes. ``options`` are further fields of the request, e.g. ``{"temperature": 0}``.
    ``output`` is how runs ask for data: ``"native"`` by a JSON Schema, ``"finish"`` by a tool, ``"auto"`` by the first
    where the model has no tools. ``media`` is what the model takes besides text, unless its name tells.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: Timeouts | float | None = None,
        retries: int = 2,
        headers: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        output: OutputMode = "auto",
        media: Sequence[MediaKind] | None = None,
        clock: Clock | None = None,
        address: str | None = None,
    ) -> None:
        if taken := OWN_FIELDS.intersection(options or ()):
            raise ConfigurationError(f"options: {sorted(taken)} are set by the adapter; leave them out")
        usual = _usual()
        self.name = name
        self.media = media_of(name) if media is None else tuple(media)
        self.base_url = _checked(base_url or usual)
        # What a server of one's own runs is small more often than not, and then one strategy is what helps.
        self.several_strategies = is_public(self.base_url)
        if api_key is None and self.base_url == _checked(usual):
            api_key = os.environ.get("OPENAI_API_KEY")
        self._url = self.base_url / "chat/completions"
        self._timeouts = timeout if isinstance(timeout, Timeouts) else Timeouts(total=timeout)
        self._retries = retries
        self._clock = clock or SystemClock()
        self._headers = {"Content-Type": "application/json", "User-Agent": "journeyman"}
        if api_key and not self.base_url.user:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._headers.update(headers or {})
        self._keyless = is_public(self.base_url) and "Authorization" not in self._headers
        server = f"{self.base_url.host}:{self.base_url.port}"
        where = address or ("OPENAI_BASE_URL" if base_url is None else "base_url")
        self._faults = Faults(model=name, server=server, secret=api_key or "", address=where)
        self._head = encode({"model": name, **(options or {})})[:-1] + b',"messages":['
        self._offers: dict[int, EncodedTools] = {}
        self._modes = OutputModes(output)
        self._clients = PerEventLoop[Client | ProxiedClient](self._new_client)

    @classmethod
    def of(cls, settings: ModelSettings, name: str, *, base_url: str | None, address: str | None) -> OpenAIModel:
        """The model that settings describe; ``name`` is the server's name for it."""
        return cls(
            name,
            base_url=base_url,
            api_key=None if settings.api_key is None else settings.api_key.get_secret_value(),
            timeout=settings.timeout,
            retries=settings.retries,
            headers=settings.headers,
            options=_fields(settings, public=is_public(_checked(base_url or _usual()))),
            media=settings.media,
            address=address,
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={str(self.base_url.with_user(None))!r})"

    def say_named_by(self, variable: str) -> None:
        """The environment variable that this model's name comes from, for its errors."""
        self._faults.named_by = variable

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        """Ask, and ask again where that may help."""
        if self._keyless:
            raise self._faults.no_key()
        if request.output is not None and self._modes.native(request):
            native = partial(self._natively, request, deltas, request.output)
            return await self._modes.ask(native, lambda: self.respond(replace(request, output=None), deltas))
        return await self._asked(request, deltas, self._offer(request.tools))

    async def _natively(self, request: ModelRequest, deltas: Deltas | None, schema: dict[str, Any]) -> ModelResponse:
        field = b',"response_format":' + encode(response_format(schema))
        return await self._asked(request, deltas, self._offer(without_finish(request)), field)

    def _asked(
        self, request: ModelRequest, deltas: Deltas | None, offer: EncodedTools, field: bytes = b""
    ) -> Awaitable[ModelResponse]:
        attempt = partial(self._attempt, self._body(request, offer, field, stream=deltas is not None), offer)
        return with_retries(attempt, request, deltas, retries=self._retries, clock=self._clock)

    def _offer(self, tools: tuple[ToolSpecification, ...]) -> EncodedTools:
        offer = self._offers.get(id(tools))
        if offer is None:
            if len(self._offers) >= OFFERS_KEPT:
                # All at once: safe from any thread, and kinder than dropping one to sets that take turns.
                self._offers.clear()
            offer = self._offers[id(tools)] = make_offer(tools)
        return offer

    def _body(self, request: ModelRequest, offer: EncodedTools, field: bytes = b"", *, stream: bool) -> bytes:
        messages = encode_messages(request.messages, offer, request.memo, request.call_ids)
        tail = b',"stream":true,"stream_options":{"include_usage":true}}' if stream else b"}"
        return b"".join((self._head, messages, b"]", offer.encoded, field, tail))

    async def _attempt(
        self, body: bytes, offer: EncodedTools, stream: AttemptDeltas | None, left: float | None
    ) -> ModelResponse:
        timeouts = self._timeouts
        if left is not None and (timeouts.total is None or left < timeouts.total):
            if left <= 0:
                raise AttemptError(self._faults.timed_out(0))
            timeouts = timeouts.model_copy(update={"total": left})
        try:
            client = await self._clients.get()
            with await client.post(body, timeouts) as answer:
                if answer.status >= 300:
                    raise await self._refusal(answer)
                # A page is no stream that broke off: it is the answer of something else at that address.
                if stream is not None and answer.content_type not in ("application/json", "text/html"):
                    answered = await self._read_stream(answer, stream)
                    return read_answer(answered, names=offer.names, model=self.name)
                raw = await answer.read(ANSWER_BYTES)
            if len(raw) < LARGE_TEXT:
                whole = self._read_whole(raw, offer)
            else:
                whole = await asyncio.to_thread(self._read_whole, raw, offer)
        except SilenceError as error:
            raise AttemptError(self._faults.timed_out(error.seconds)) from None
        except CutError as error:
            raise AttemptError(self._faults.cut(str(error))) from None
        except OSError as error:
            raise AttemptError(self._faults.unreachable(error)) from None
        except OverBudgetError as error:
            raise AttemptError(self._faults.too_large(str(error))) from None
        except ServerReportedError as error:
            raise AttemptError(self._faults.reported(error.report)) from None
        except BadAnswerError as error:
            raise AttemptError(self._faults.bad_answer(str(error))) from None
        if stream is not None and whole.text:
            stream.text(whole.text)
        return whole

    def _read_whole(self, raw: bytes, offer: EncodedTools) -> ModelResponse:
        try:
            return read_answer(read_body(raw), names=offer.names, model=self.name)
        except BadAnswerError as error:
            raise AttemptError(self._faults.bad_answer(str(error), raw)) from None

    async def _read_stream(self, response: Answer, stream: AttemptDeltas) -> dict[str, Any]:
        answer, parser = StreamedAnswer(stream.text), EventParser()
        try:
            async for piece in _slices(response.pieces()):
                if answer.take(parser.feed(piece)):
                    break
            else:
                answer.take(data for data in parser.finish() if data.strip() == b"[DONE]")
        except OSError:
            if not answer.complete:
                raise
        if not answer.complete:
            raise AttemptError(self._faults.cut())
        # Only a connection that was read to its end can be used again; the end is nearly always there already.
        if not response.complete:
            with contextlib.suppress(OSError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await read_at_most(response.pieces(), DRAIN_BYTES)
        return answer.body()

    async def _refusal(self, response: Answer) -> AttemptError:
        said, _ = await read_at_most(response.pieces(), ERROR_BYTES)
        error = self._faults.refused(response.status, said, location=response.headers.get("location", ""))
        return AttemptError(error, wait=retry_after(response.headers.get("retry-after"), now=self._clock.time()))

    def _new_client(self) -> Client | ProxiedClient:
        proxy = _proxy(self.base_url)
        return Client(self._url, self._headers) if proxy is None else ProxiedClient(self._url, self._headers, proxy)


def _usual() -> str:
    return os.environ.get("OPENAI_BASE_URL") or PUBLIC_ENDPOINT


def is_public(url: URL) -> bool:
    return url.host == URL(PUBLIC_ENDPOINT).host


def _fields(settings: ModelSettings, *, public: bool) -> dict[str, Any]:
    """Settings as fields of a request. OpenAI itself has renamed one, and keeps what it has read unasked."""
    said = {
        "temperature": settings.temperature,
        "max_completion_tokens" if public else "max_tokens": settings.max_output_tokens,
        "reasoning_effort": settings.reasoning,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
        "cache_prompt": None if public else settings.cache_prompt,
    }
    return {name: value for name, value in said.items() if value is not None} | settings.extra


async def _slices(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """A stream in slices of a size that nobody else has to wait for long. Raises OverBudgetError."""
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > STREAM_BYTES:
            raise OverBudgetError(f"streamed more than {STREAM_BYTES:,} bytes")
        if len(piece) <= SLICE_BYTES:
            yield piece
            continue
        for at in range(0, len(piece), SLICE_BYTES):
            yield piece[at : at + SLICE_BYTES]
            await asyncio.sleep(0)


def _checked(base_url: str) -> URL:
    try:
        url = URL(base_url)
        usable = url.scheme in ("http", "https") and bool(url.host)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigurationError(
            f"base_url {base_url!r} is no address of a server; write e.g. 'http://127.0.0.1:8000/v1'"
        )
    return url.with_fragment(None).with_path(url.path.rstrip("/"))


def _proxy(url: URL) -> str | None:
    """The proxy the environment names for this address; this machine itself needs none."""
    host = url.host or ""
    if host in ("localhost", "127.0.0.1", "::1") or proxy_bypass(host):
        return None
    return getproxies().get(url.scheme)

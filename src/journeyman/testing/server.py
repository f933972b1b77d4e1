"""An OpenAI-compatible server on the loopback interface that plays a script, faults included."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from journeyman.core.protocols import ModelResponse
from journeyman.core.runs import ToolCall
from journeyman.testing.scripted import Said, as_response, pieces

if TYPE_CHECKING:
    from aiohttp import web

ARGUMENT_PIECE = 6


@dataclass(frozen=True, slots=True)
class Reply:
    """Exactly these bytes, written piece by piece; made by ``http``, ``html``, ``raw`` and ``hang``."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    ending: Literal["end", "hang"] = "end"


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks in the middle of an answer; made by ``cut``."""

    said: Said
    after_bytes: int


Served: TypeAlias = Said | Reply | Cut
ServerTurn: TypeAlias = Served | Callable[[dict[str, Any]], Served]
"""What a model may say, a fault, or a function of the request's body that gives one."""


def http(status: int, *, retry_after: float | str | None = None, message: str = "scripted fault") -> Reply:
    """An error as OpenAI's API writes it."""
    headers = [("Content-Type", "application/json")]
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    return Reply((_json({"error": {"message": message, "type": "scripted", "code": None}}),), status, tuple(headers))


def html(status: int = 502) -> Reply:
    """An error page, as a proxy in between writes it."""
    page = f"<html><head><title>{status} Bad Gateway</title></head><body><hr>{'<p>proxy</p>' * 500}</body></html>"
    return Reply((page.encode(),), status, (("Content-Type", "text/html"),))


def hang() -> Reply:
    """No answer until the server stops."""
    return Reply(ending="hang")


def cut(said: Said = "An answer that breaks off.", *, after_bytes: int = 40) -> Cut:
    """An answer of which only the first bytes arrive."""
    return Cut(said, after_bytes)


def raw(*pieces: bytes, status: int = 200, content_type: str = "application/json") -> Reply:
    """Any bytes at all, sent in these pieces."""
    return Reply(pieces, status, (("Content-Type", content_type),))


class ScriptedServer:
    """Plays its turns in the order in which requests arrive; a retry is a request too.

    ``async with ScriptedServer([http(429), say("Hello")]) as server: OpenAIModel("any", base_url=server.url)``
    """

    def __init__(self, turns: Iterable[ServerTurn]) -> None:
        self.turns = tuple(turns)
        self.requests: list[dict[str, Any]] = []
        """The bodies it was sent."""
        self.headers: list[dict[str, str]] = []
        """The headers that came with them, names in lower case."""
        self.arrived = asyncio.Event()
        """Set by the first request."""
        self.connections: set[Any] = set()
        """The client addresses seen: how many connections there were."""
        self.url = ""
        self._stopping = asyncio.Event()
        self._runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        from aiohttp import web

        self._runner = web.ServerRunner(web.Server(self._handle), access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = json.loads(await request.content.read())
        self.requests.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if request.transport is not None:
            self.connections.add(request.transport.get_extra_info("peername"))
        self.arrived.set()
        served = self._next(body)
        if isinstance(served, Reply):
            return await self._send(request, served)
        said, keep = (served.said, served.after_bytes) if isinstance(served, Cut) else (served, None)
        answer = as_response(said)
        reply = raw(_json(_completion(answer, body)))
        if body.get("stream"):
            reply = raw(*_events(answer, body), content_type="text/event-stream")
        return await self._send(request, reply, keep=keep)

    def _next(self, body: dict[str, Any]) -> Served:
        number = len(self.requests)
        if number > len(self.turns):
            return http(400, message=f"the script has {len(self.turns)} turns; this is request {number}")
        turn = self.turns[number - 1]
        return turn(body) if callable(turn) else turn

    async def _send(self, request: web.BaseRequest, reply: Reply, *, keep: int | None = None) -> web.StreamResponse:
        from aiohttp import web

        if reply.ending == "hang":
            await self._stopping.wait()
            return web.Response(status=503)
        response = web.StreamResponse(status=reply.status, headers=dict(reply.headers))
        await response.prepare(request)
        for piece in reply.pieces if keep is None else (b"".join(reply.pieces)[:keep],):
            await response.write(piece)
            # Sends each piece on its own, so that it arrives split.
            await asyncio.sleep(0)
        if keep is not None and request.transport is not None:
            request.transport.close()
        return response


def _completion(answer: ModelResponse, body: dict[str, Any]) -> dict[str, Any]:
    calls = [_call(number, call) for number, call in enumerate(answer.calls)]
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    about = {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": body.get("model")}
    return {**about, "choices": [choice], "usage": _usage(answer)}


def _events(answer: ModelResponse, body: dict[str, Any]) -> Iterator[bytes]:
    def event(delta: dict[str, Any] | None, finish: str | None = None, usage: Any = None) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        chunk = {"object": "chat.completion.chunk", "model": body.get("model"), "choices": choices, "usage": usage}
        return b"data: " + _json(chunk) + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for piece in pieces(answer.text):
        yield event({"content": piece})
    for number, call in enumerate(answer.calls):
        whole = _call(number, call)
        arguments = whole["function"]["arguments"]
        yield event({"tool_calls": [{**whole, "index": number, "function": {**whole["function"], "arguments": ""}}]})
        for at in range(0, len(arguments), ARGUMENT_PIECE):
            part = {"arguments": arguments[at : at + ARGUMENT_PIECE]}
            yield event({"tool_calls": [{"index": number, "function": part}]})
    yield event({}, "tool_calls" if answer.calls else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield event(None, usage=_usage(answer))
    yield b"data: [DONE]\n\n"


def _call(number: int, call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(call.arguments) if call.malformed is None else call.malformed
    function = {"name": call.tool_name, "arguments": arguments}
    return {"id": call.id or f"call_{number}", "type": "function", "function": function}


def _usage(answer: ModelResponse) -> dict[str, int]:
    used = answer.usage
    parts = {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens}
    return {**parts, "total_tokens": used.total_tokens}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()

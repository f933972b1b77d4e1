"""A language model that does not think: it asks for one tool, then answers in a few pieces, streamed as OpenAI does."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from benchmarks.programs import serve

PIECES = [f"word{number} " for number in range(20)]
AT_LENGTH = "at length"
"""What a request ends with whose answer has so many times the words."""
LONGER = 10
TOOLS = {"look": {"place": "here"}, "erase": {"place": "here"}}


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    body = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def _call(name: str) -> bytes:
    function = {"name": name, "arguments": json.dumps(TOOLS[name])}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return _chunk({"role": "assistant", "tool_calls": [call]}) + _chunk({}, "tool_calls")


CALLS = {name: _call(name) for name in TOOLS}
ANSWER = [_chunk({"content": piece}) for piece in PIECES]


async def _complete(request: web.Request) -> web.StreamResponse:
    messages = json.loads(await request.read())["messages"]
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    if messages[-1]["role"] == "user":
        await response.write(CALLS["erase" if "erase" in messages[-1]["content"] else "look"])
    else:
        said = [message["content"] for message in messages if message["role"] == "user"]
        for piece in ANSWER * (LONGER if said[-1].endswith(AT_LENGTH) else 1):
            await response.write(piece)
        await response.write(_chunk({}, "stop"))
    await response.write(b"data: [DONE]\n\n")
    return response


async def main() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _complete)
    await serve(app)


if __name__ == "__main__":
    asyncio.run(main())

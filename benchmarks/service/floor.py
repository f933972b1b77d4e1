"""The floor: a bare Starlette endpoint, a hand-written loop. No validation, no store, no governance, no way back."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}


def look(place: str) -> str:
    return f"nothing at {place}"


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def bare(model_url: str, session: aiohttp.ClientSession) -> Starlette:
    conversations: dict[str, list[dict[str, Any]]] = {}

    async def answered(said: dict[str, str]) -> AsyncIterator[bytes]:
        messages = conversations.setdefault(said["session_id"], [])
        messages.append({"role": "user", "content": said["message"]})
        while True:
            text, calls = "", []
            body = {"model": "any", "stream": True, "messages": messages, "tools": [TOOL]}
            async with session.post(f"{model_url}/chat/completions", json=body) as response:
                async for line in response.content:
                    if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                        continue
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    calls += delta.get("tool_calls", [])
                    if piece := delta.get("content"):
                        text += piece
                        yield _event("text_delta", text=piece)
            if not calls:
                messages.append({"role": "assistant", "content": text})
                yield _event("answer", text=text) + b"data: [DONE]\n\n"
                return
            messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            for call in calls:
                result = look(**json.loads(call["function"]["arguments"]))
                yield _event("call_finished", result=result)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    async def chat(request: Request) -> StreamingResponse:
        return StreamingResponse(answered(await request.json()), media_type="text/event-stream")

    return Starlette(routes=[Route("/api/v1/chat", chat, methods=["POST"])])


async def main(model_url: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        config = uvicorn.Config(bare(model_url, session), port=0, access_log=False, log_config=None, backlog=2048)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:  # noqa: ASYNC110 (uvicorn has no event for it)
            await asyncio.sleep(0.02)
        print(server.servers[0].sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.should_exit = True
        await serving


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

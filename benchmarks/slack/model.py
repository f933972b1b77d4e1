"""A language model that does not think: it looks at what the last message names, then answers with that name."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from benchmarks.programs import serve


async def _complete(request: web.Request) -> web.Response:
    body = json.loads(await request.read())
    said = body["messages"][-1]
    name = next(str(m["content"]) for m in reversed(body["messages"]) if m["role"] == "user").split()[-1]
    message: dict[str, Any] = {"role": "assistant", "content": f"answer to {name}"}
    if said["role"] == "user":
        function = {"name": "look", "arguments": json.dumps({"place": name})}
        message = {"role": "assistant", "content": None}
        message["tool_calls"] = [{"id": f"call_{name}", "type": "function", "function": function}]
    finish = "tool_calls" if "tool_calls" in message else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return web.json_response({"object": "chat.completion", "choices": [choice], "usage": usage})


async def main() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _complete)
    await serve(app)


if __name__ == "__main__":
    asyncio.run(main())

"""The floor: the least a person could write by hand to run tool calls against an OpenAI-compatible server.

No validation, no timeout, no error handling, no trace: what every other contender is measured against.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import aiohttp
import orjson


class Floor:
    """A conversation loop over one HTTP session."""

    def __init__(
        self, base_url: str, tools: Mapping[str, Callable[..., Awaitable[Any]]], schemas: Sequence[dict[str, Any]]
    ) -> None:
        self.url = f"{base_url}/chat/completions"
        self.tools = tools
        self.schemas = schemas
        self.session = aiohttp.ClientSession()

    async def call(self, call: dict[str, Any]) -> dict[str, Any]:
        function = call["function"]
        result = await self.tools[function["name"]](**orjson.loads(function["arguments"]))
        return {"role": "tool", "tool_call_id": call["id"], "content": str(result)}

    async def run(self, prompt: str) -> str:
        messages = [{"role": "system", "content": "You are a bench."}, {"role": "user", "content": prompt}]
        while True:
            body = orjson.dumps({"model": "scripted", "messages": messages, "tools": self.schemas})
            headers = {"content-type": "application/json"}
            async with self.session.post(self.url, data=body, headers=headers) as response:
                message = orjson.loads(await response.read())["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            messages += await asyncio.gather(*map(self.call, message["tool_calls"]))

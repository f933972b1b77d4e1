"""The floor: a bot as one writes it by hand with slack-bolt. No store, no governance, no way back after a crash.

It says that it is at work, asks the model, calls the tool, and answers in the thread.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from tests.doors.slack.loopback import APP_TOKEN, SECRET, TEAM, TOKENS

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


def bot(model_url: str, slack_url: str, session: aiohttp.ClientSession) -> AsyncApp:
    app = AsyncApp(client=AsyncWebClient(token=TOKENS[TEAM], base_url=slack_url), signing_secret=SECRET)

    async def answer(event: dict[str, Any], client: AsyncWebClient) -> None:
        where = {"channel": event["channel"], "thread_ts": event["ts"]}
        await client.chat_postMessage(text="Working on it …", **where)
        messages: list[dict[str, Any]] = [{"role": "user", "content": event["text"]}]
        while True:
            body = {"model": "any", "messages": messages, "tools": [TOOL]}
            async with session.post(f"{model_url}/chat/completions", json=body) as response:
                said = (await response.json())["choices"][0]["message"]
            messages.append(said)
            if not said.get("tool_calls"):
                await client.chat_postMessage(text=said["content"], **where)
                return
            for call in said["tool_calls"]:
                result = look(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    @app.event("app_mention")
    async def mentioned(event: dict[str, Any], client: AsyncWebClient) -> None:
        await answer(event, client)

    return app


async def main(model_url: str, slack_url: str, delivery: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        app = bot(model_url, slack_url, session)
        if delivery == "socket":
            handler = AsyncSocketModeHandler(app, APP_TOKEN)
            await handler.connect_async()  # type: ignore[no-untyped-call]  # Bolt leaves it so
            print(0, flush=True)
            await asyncio.to_thread(sys.stdin.read)
            await handler.close_async()  # type: ignore[no-untyped-call]  # Bolt leaves it so
            return

        async def receive(request: web.Request) -> web.Response:
            return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

        site = web.Application()
        site.router.add_post("/slack/events", receive)
        runner = web.AppRunner(site, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))

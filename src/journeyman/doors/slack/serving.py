"""How Slack reaches us: a socket that we open (Socket Mode), or requests that Slack sends and signs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_sdk.errors import SlackApiError

from journeyman.app.service import ending_signals
from journeyman.core.errors import ConfigurationError
from journeyman.core.words import packaged_text
from journeyman.doors.slack.client import reason
from journeyman.doors.slack.door import SlackDoor

PATH = "/slack/events"
"""Where events and buttons are to be sent."""
MOST_BYTES = 1_000_000
logger = logging.getLogger("journeyman.slack")


def manifest(*, http: bool = False) -> str:
    """What Slack makes the app from, in YAML; with ``http``, for signed requests instead of Socket Mode."""
    text = packaged_text("journeyman.doors.slack", "manifest.yaml")
    if not http:
        return text
    url = f"\n    request_url: https://bot.example.com{PATH}  # put yours here"
    for line in ("    bot_events: [app_mention, message.im, app_home_opened]", "    is_enabled: true"):
        text = text.replace(line, line + url)
    return text.replace("socket_mode_enabled: true", "socket_mode_enabled: false")


@asynccontextmanager
async def over_socket(door: SlackDoor, app_token: str) -> AsyncIterator[None]:
    """Receive over Socket Mode as long as this lasts. It reconnects by itself."""
    handler = AsyncSocketModeHandler(door.bolt, app_token)
    under_way: set[asyncio.Task[None]] = set()

    async def at_once(client: Any, request: Any) -> None:
        # One after another, a message that takes long would hold up those of other channels.
        task = asyncio.create_task(handler.handle(client, request))
        under_way.add(task)
        task.add_done_callback(ended)

    def ended(task: asyncio.Task[None]) -> None:
        under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The socket was renewed meanwhile, for example.
            logger.warning("Slack could not be told that something arrived, and sends it again: %s", error)

    handler.client.socket_mode_request_listeners[:] = [at_once]
    try:
        try:
            await handler.client.issue_new_wss_url()  # the client itself would try for ever
        except SlackApiError as error:
            raise ConfigurationError(
                f"Slack does not accept the app token: {reason(error)}; make one with the scope 'connections:write' "
                "under 'Basic Information', and switch Socket Mode on"
            ) from None
        await door.open()
        await handler.client.connect()  # type: ignore[no-untyped-call]  # the SDK leaves it so
        yield
    finally:
        await handler.client.close()  # type: ignore[no-untyped-call]  # the SDK leaves it so
        for task in under_way:
            task.cancel()
        await door.close()


@asynccontextmanager
async def over_http(door: SlackDoor, *, host: str, port: int) -> AsyncIterator[int]:
    """Receive signed requests at /slack/events as long as this lasts; gives the port."""

    async def receive(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await door.bolt.async_dispatch(await to_bolt_request(request)))

    application = web.Application(client_max_size=MOST_BYTES)
    application.router.add_post(PATH, receive)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await door.open()
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another port, or stop what uses this one"
            ) from None
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
        await door.close()


async def until_stopped(ready: Callable[[], None]) -> None:
    """Return at SIGINT or SIGTERM."""
    stop = asyncio.Event()
    with ending_signals(lambda _: stop.set()):
        ready()
        await stop.wait()

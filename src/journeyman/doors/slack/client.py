"""Calling Slack: as often as it allows, later when it says so, and never so that a message may be written twice."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from journeyman.core.data import retry_after

if TYPE_CHECKING:
    from journeyman.app import Pace

SLACK_API = "https://slack.com/api/"
SECONDS = 30.0
MOST_RETRIES = 5
"""How often a call that Slack wants later is made again."""
MOST_RECONNECTIONS = 2
OPENED_WITHIN = 2.0
"""Seconds that a dialogue is waited for: three after the button was pressed, Slack opens none any more."""
NO_PAUSE_GIVEN = 30.0
"""Seconds, where Slack wants a pause and does not say of how long."""
PASSING = frozenset({"ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout"})
"""Errors of Slack that are gone after a while."""
_QUIET = logging.getLogger("journeyman.slack.web")
_QUIET.setLevel(logging.INFO)  # at DEBUG the SDK writes down what people say


class SlackClient(AsyncWebClient):
    """Slack's own client, with a pace that is shared by everybody who calls Slack with the same store.

    The SDK would go by the first digit of ``Retry-After`` alone, and make a call again whose connection broke, also one
    that writes a message.
    """

    def __init__(self, token: str | None, *, base_url: str = SLACK_API, pace: Pace | None = None) -> None:
        super().__init__(token=token, base_url=base_url.rstrip("/") + "/", logger=_QUIET, retry_handlers=[])
        self.timeout = int(SECONDS)
        self.team = ""
        self.pace = pace

    async def api_call(self, api_method: str, **options: Any) -> AsyncSlackResponse:
        """Call a method when it is its turn. Raises SlackApiError, or aiohttp's errors."""
        given: Mapping[str, Any] = options.get("json") or options.get("params") or {}
        channel = str(given.get("channel", ""))
        if self.pace is not None:
            await self.pace.turn(self.team, api_method, channel)
        return await self._call(api_method, channel, options)

    async def call_if_there_is_room(self, method: str, given: Mapping[str, Any]) -> AsyncSlackResponse | None:
        """The same for what can be left out: None, and nothing is called, where others need what Slack allows."""
        channel = str(given.get("channel", ""))
        if self.pace is not None and await self.pace.room(self.team, method, channel) > 0:
            return None
        return await self._call(method, channel, {"json": dict(given)})

    async def _call(self, method: str, channel: str, options: Mapping[str, Any]) -> AsyncSlackResponse:
        limited = broken = 0
        while True:
            try:
                return await super().api_call(method, **options)
            except SlackApiError as error:
                wait = wanted_pause(error)
                if wait is None or limited == MOST_RETRIES or (method == "views.open" and wait > OPENED_WITHIN):
                    raise
                limited += 1
                await self._rest(method, channel, wait)
            except (aiohttp.ClientConnectionError, TimeoutError):
                # A message may have been written although nobody said so: whoever wrote it looks first.
                if method == "chat.postMessage" or broken == MOST_RECONNECTIONS:
                    raise
                broken += 1
                await asyncio.sleep(2.0 ** (broken - 2))

    async def _rest(self, method: str, channel: str, seconds: float) -> None:
        if self.pace is None:
            await asyncio.sleep(seconds)
            return
        await self.pace.pause(self.team, method, seconds)
        await self.pace.turn(self.team, method, channel)


def wanted_pause(error: SlackApiError) -> float | None:
    """The seconds for which Slack wants no call, when this is what it says."""
    if reason(error) != "ratelimited" and getattr(error.response, "status_code", None) != 429:
        return None
    headers = getattr(error.response, "headers", {})
    value = next((str(headers[name]) for name in headers if name.lower() == "retry-after"), "")
    wait = retry_after(value, now=time.time())
    return NO_PAUSE_GIVEN if wait is None else wait


def reason(error: SlackApiError) -> str:
    """Slack's word for what is wrong, whatever the answer looks like."""
    data = getattr(error.response, "data", error.response)
    if isinstance(data, Mapping) and data.get("error"):
        return str(data["error"])
    status = getattr(error.response, "status_code", None) or getattr(error.response, "status", None)
    return "service_unavailable" if status is None or int(status) >= 500 else f"status {status}"

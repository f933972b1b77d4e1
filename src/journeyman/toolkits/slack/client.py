"""Reading Slack with the bot's own token: every refusal becomes an error that a model can act on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json

from journeyman.core.budgets import check_containers, read_at_most
from journeyman.core.context import ToolContext
from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.toolkits.addresses import check_address
from journeyman.toolkits.slack.pace import Pace, retry_after

SLACK_API = "https://slack.com/api/"
TOKEN = "SLACK_BOT_TOKEN"
"""The secret; followed by ``_TEAM`` that of one of several workspaces."""
SECONDS = 15.0
LONGEST_WAIT = 15.0
"""Seconds that a tool waits for its turn; what takes longer, the model is told to leave for now."""
MOST_BYTES = 4_000_000
MOST_MEMBER_PAGES = 10
_PERSON = re.compile(r"slack:([A-Z0-9]+):([A-Z0-9]+)")


class SlackReader:
    """A client for what tools read, as often as ``pace`` lets it.

    ``base_url`` may be that of another server, as tests need it.
    """

    def __init__(self, *, base_url: str = SLACK_API, pace: Pace | None = None) -> None:
        self._base_url = base_url.rstrip("/") + "/"
        self._private = self._base_url != SLACK_API
        check_address(self._base_url, private=self._private)
        self._pace = pace
        self._teams: dict[str, str] = {}
        """Which workspace a token belongs to, by the token; it does not change."""

    async def token_for(self, context: ToolContext) -> str:
        """The bot's token of the workspace that the run was asked for in. Nobody reads another workspace with it."""
        person = _PERSON.fullmatch(context.principal.id) if context.principal is not None else None
        own = context.secrets.get(f"{TOKEN}_{person[1]}") if person is not None else None
        token = own or context.secrets.get(TOKEN)
        if not token:
            raise ToolError(
                "SLACK_NOT_CONFIGURED",
                "there is no Slack token for this workspace",
                category=ErrorCategory.AUTHENTICATION,
                recover_action="Tell the user that Slack cannot be read; calling again will not help",
                user_guidance=f"Put the app's bot token into JOURNEYMAN_SECRET_{TOKEN}",
            )
        if person is not None and own is None and await self._team(token) != person[1]:
            raise forbidden("Slack's token is of another workspace than the user")
        return token

    async def _team(self, token: str) -> str:
        if token not in self._teams:
            self._teams[token] = str((await self._ask("auth.test", {}, token=token)).get("team_id"))
        return self._teams[token]

    async def must_be_open_to(self, channel: str, context: ToolContext, *, token: str) -> None:
        """Refuse a private channel to a person of Slack who is not in it: the bot may be, and must not tell."""
        person = _PERSON.fullmatch(context.principal.id) if context.principal is not None else None
        if person is None:
            return  # whoever runs a program of their own with the token could read it anyway
        found = (await self.ask("conversations.info", {"channel": channel}, token=token)).get("channel")
        if isinstance(found, dict) and not found.get("is_private") and not found.get("is_im"):
            return
        cursor = ""
        for _ in range(MOST_MEMBER_PAGES):
            given = {"channel": channel, "limit": "1000", "cursor": cursor}
            told = await self.ask("conversations.members", given, token=token)
            if person[2] in (told.get("members") or ()):
                return
            cursor = next_cursor(told)
            if not cursor:
                break
        raise forbidden(f"the user is not a member of the private channel {channel}")

    async def ask(self, method: str, given: Mapping[str, str], *, token: str) -> dict[str, Any]:
        """Call a method that reads, when it is its turn. Raises ToolError."""
        pace = self._pace
        if pace is None:
            return await self._ask(method, given, token=token)
        team = await self._team(token)
        if wait := await pace.room(team, method):
            try:
                async with asyncio.timeout(LONGEST_WAIT):
                    await pace.turn(team, method)
            except TimeoutError:
                raise _rate_limited(max(wait, 1.0)) from None
        try:
            return await self._ask(method, given, token=token)
        except ToolError as error:
            if error.info.code == "RATE_LIMITED":
                await pace.pause(team, method, error.info.retry_after or 0.0)
            raise

    async def _ask(self, method: str, given: Mapping[str, str], *, token: str) -> dict[str, Any]:
        status, headers, body = await self._get(method, given, token=token)
        found: Any = None
        if status == 200:
            try:
                check_containers(body)
                found = from_json(body)
            except ValueError:
                found = None
        error = found.get("error") if isinstance(found, dict) else None
        if status == 429 or error == "ratelimited":
            raise _rate_limited(retry_after(headers.get("retry-after")))
        if not isinstance(found, dict):
            raise _failed(f"Slack answered {status} to {method}, which cannot be read")
        if not found.get("ok"):
            raise _refused(str(error), given.get("channel", ""))
        return found

    async def _get(self, method: str, given: Mapping[str, str], *, token: str) -> tuple[int, dict[str, str], bytes]:
        import aiohttp  # later than this module: most commands fetch nothing

        from journeyman.toolkits.fetching import guarded_connector

        address = f"{self._base_url}{method}?{urlencode({name: value for name, value in given.items() if value})}"
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "journeyman"}
        try:
            # A redirect could send the token to another host.
            async with (
                aiohttp.ClientSession(
                    connector=guarded_connector(private=self._private), timeout=aiohttp.ClientTimeout(total=SECONDS)
                ) as session,
                session.get(address, headers=headers, allow_redirects=False) as response,
            ):
                body, _ = await read_at_most(response.content.iter_any(), MOST_BYTES)
                return response.status, {name.lower(): value for name, value in response.headers.items()}, body
        except TimeoutError:
            raise _failed(f"Slack did not answer within {SECONDS:g} s", category=ErrorCategory.TIMEOUT) from None
        except aiohttp.ClientError as error:
            raise _failed(f"Slack cannot be reached: {type(error).__name__}") from None


def next_cursor(told: Mapping[str, Any]) -> str:
    return str((told.get("response_metadata") or {}).get("next_cursor") or "")


def forbidden(why: str) -> ToolError:
    return ToolError(
        "FORBIDDEN",
        why,
        category=ErrorCategory.PERMISSION,
        recover_action="Tell the user that they have no access; calling again will not help",
    )


def _rate_limited(seconds: float) -> ToolError:
    return ToolError(
        "RATE_LIMITED",
        "Slack answers no more questions for now",
        True,
        f"Do not call it again now; tell the user to try again in {seconds:g} s",
        category=ErrorCategory.RATE_LIMIT,
        # For so long nobody calls the tool, in any process that works on the same store.
        retry_after=seconds,
    )


def _failed(why: str, *, category: ErrorCategory = ErrorCategory.NETWORK) -> ToolError:
    recover = "Try once more; if it happens again, go on without it and say so"
    return ToolError("FETCH_FAILED", why, True, recover, category=category)


_INVITE = "Invite the bot to the channel (/invite), and give the app the scopes channels:history and groups:history"


def _refused(error: str, channel: str) -> ToolError:
    if error in ("channel_not_found", "thread_not_found", "invalid_ts_latest", "invalid_ts_oldest"):
        what = f"thread in {channel}" if error == "thread_not_found" else f"channel {channel!r}"
        return ToolError(
            "CHANNEL_NOT_FOUND",
            f"Slack knows no {what}, or does not show it to the bot",
            category=ErrorCategory.INVALID_INPUT,
            recover_action="Check the channel with the user; its id begins with C and is in its details",
            user_guidance=_INVITE,
        )
    if error in ("not_in_channel", "missing_scope", "no_permission", "access_denied", "is_archived"):
        found = forbidden(f"the bot may not read {channel or 'this'} ({error})")
        found.info = found.info.model_copy(update={"user_guidance": _INVITE})
        return found
    if error in ("invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"):
        return ToolError(
            "SLACK_TOKEN_REFUSED",
            f"Slack refuses the token ({error})",
            category=ErrorCategory.AUTHENTICATION,
            recover_action="Tell the user that the Slack token must be renewed; calling again will not help",
            user_guidance=f"Put a valid bot token into JOURNEYMAN_SECRET_{TOKEN}",
        )
    return _failed(f"Slack refused: {error[:100]}")

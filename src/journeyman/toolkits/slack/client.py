"""Reading Slack with the bot's own token: every refusal becomes an error that a model can act on.

How often Slack is called is counted by workspace, where all processes on one store see it: bots and tools in several of
them share what Slack allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from journeyman.core.calls import ToolContext
from journeyman.core.data import name_of, retry_after
from journeyman.core.errors import ErrorCategory, StoreError, ToolError
from journeyman.core.policy import RateLimit
from journeyman.core.protocols import Clock, RateLimiter, SystemClock
from journeyman.sensitive import FETCH_SECONDS
from journeyman.sensitive.addresses import check_address

_TIER_1, _TIER_3, _TIER_4 = (RateLimit(calls=calls) for calls in (1, 50, 100))
METHODS: Mapping[str, RateLimit] = MappingProxyType(
    {
        "apps.connections.open": _TIER_1,
        # In one channel: one a second, and a few more now and then.
        "chat.postMessage": RateLimit(calls=1, seconds=1, burst=5),
        **{f"conversations.{action}": _TIER_3 for action in ("history", "info", "open", "replies")},
        "chat.update": _TIER_3,
        **dict.fromkeys(("auth.test", "chat.postEphemeral", "conversations.members", "users.info"), _TIER_4),
        **dict.fromkeys(("views.open", "views.publish"), _TIER_4),
    }
)
"""What Slack allows of each method that is used here, in one workspace: most belong to tiers of 1, 20, 50 or 100 calls
a minute."""
IN_ONE_CHANNEL = frozenset({"chat.postMessage"})
"""Methods that are limited for each channel alone."""
NO_PAUSE_GIVEN = 30.0
"""Seconds, where Slack wants a pause and does not say of how long."""
LONGEST_SLEEP = 5.0
"""Another process may find that Slack wants no pause any more; and a clock may be wrong."""


class Pace:
    """Lets calls through as Slack's limits allow; ``limits`` are others, by method, and one without any is not held up.

    What Slack itself asks for (``Retry-After``) holds in any case.
    """

    def __init__(
        self, limiter: RateLimiter, *, limits: Mapping[str, RateLimit] = METHODS, clock: Clock | None = None
    ) -> None:
        self._limiter = limiter
        self._limits = limits
        self._clock = clock or SystemClock()
        self._turns: dict[str, asyncio.Lock] = {}
        """One of those that wait for the same looks at the store, and the others stand behind it."""
        self._short: set[str] = set()
        """What somebody waits for, who goes first."""

    async def turn(self, team: str, method: str, channel: str = "") -> None:
        """Wait until a method may be called, in the order in which this process asks."""
        bucket = self._bucket(team, method, channel)
        async with self._turns.setdefault(bucket, asyncio.Lock()):
            try:
                while (wait := await self._take(team, method, bucket)) > 0:
                    self._short.add(bucket)
                    await self._clock.sleep(min(wait, LONGEST_SLEEP))
            finally:
                self._short.discard(bucket)

    async def room(self, team: str, method: str, channel: str = "") -> float:
        """0 when a method may be called right now, which then counts as called; else the seconds to wait at least."""
        bucket = self._bucket(team, method, channel)
        return 1.0 if bucket in self._short else await self._take(team, method, bucket)

    async def _take(self, team: str, method: str, bucket: str) -> float:
        limits = {bucket: self._limits[method]} if method in self._limits else {}
        try:
            return await self._limiter.take(_name(team, method), limits)
        except StoreError:
            return 0.0  # Slack itself says when it is too much

    async def pause(self, team: str, method: str, seconds: float) -> None:
        """Slack wants no call of a method for so long."""
        with contextlib.suppress(StoreError):
            await self._limiter.pause(_name(team, method), seconds)

    def _bucket(self, team: str, method: str, channel: str) -> str:
        name = _name(team, method)
        return f"{name}:{channel}" if method in IN_ONE_CHANNEL else name


def _name(team: str, method: str) -> str:
    return f"slack:{team}:{method}"


SLACK_API = "https://slack.com/api/"
TOKEN = "SLACK_BOT_TOKEN"
"""The secret; followed by ``_TEAM`` that of one of several workspaces."""
LONGEST_WAIT = 15.0
"""Seconds that a tool waits for its turn; what takes longer, the model is told to leave for now."""
MOST_BYTES = 4_000_000
MOST_PAGES = 10
MOST_NAMES = 10_000
_CLOSED = ("is_private", "is_im", "is_mpim")
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
        self._names: dict[tuple[str, str], str] = {}

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
        about = (await self.ask("conversations.info", {"channel": channel}, token=token)).get("channel")
        if isinstance(about, dict) and not any(about.get(kind) for kind in _CLOSED):
            return
        async for page in self.pages("conversations.members", {"channel": channel}, token=token):
            if person[2] in (page.get("members") or ()):
                return
        raise forbidden(f"the user is not a member of the private channel {channel}")

    async def names(self, users: Iterable[str], *, token: str) -> Mapping[str, str]:
        """What people are called, as far as Slack says."""
        for user in {user for user in users if (token, user) not in self._names}:
            answer: Mapping[str, Any] = {}
            try:
                answer = await self.ask("users.info", {"user": user}, token=token)
            except ToolError as error:
                if error.info.retryable:
                    break
                # Without the scope, for example: their id must do.
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            self._names[token, user] = name_of(answer.get("user") or {})
        return {user: name for (known, user), name in self._names.items() if known == token and name}

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

    async def pages(self, method: str, given: Mapping[str, str], *, token: str) -> AsyncIterator[dict[str, Any]]:
        """A long list, the first pages of it. Raises ToolError."""
        cursor = ""
        for _ in range(MOST_PAGES):
            page = await self.ask(method, {**given, "limit": "1000", "cursor": cursor}, token=token)
            yield page
            if not (cursor := str((page.get("response_metadata") or {}).get("next_cursor") or "")):
                return

    async def _ask(self, method: str, given: Mapping[str, str], *, token: str) -> dict[str, Any]:
        from journeyman.sensitive.fetching import fetch  # later than this module: most commands fetch nothing

        address = f"{self._base_url}{method}?{urlencode({name: value for name, value in given.items() if value})}"
        headers = {"Authorization": f"Bearer {token}"}
        answer = await fetch(address, headers, private=self._private, most=MOST_BYTES, failed=_unreachable)
        content = answer.json() if answer.status == 200 else None
        error = content.get("error") if isinstance(content, dict) else None
        if answer.status == 429 or error == "ratelimited":
            wait = retry_after(answer.headers.get("retry-after"), now=time.time())
            raise _rate_limited(NO_PAUSE_GIVEN if wait is None else wait)
        if not isinstance(content, dict):
            raise _failed(f"Slack answered {answer.status} to {method}, which cannot be read")
        if not content.get("ok"):
            raise _refused(str(error), given.get("channel", ""))
        return content


def _unreachable(error: Exception) -> ToolError:
    if isinstance(error, TimeoutError):
        return _failed(f"Slack did not answer within {FETCH_SECONDS:g} s", category=ErrorCategory.TIMEOUT)
    return _failed(f"Slack cannot be reached: {type(error).__name__}")


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
        refusal = forbidden(f"the bot may not read {channel or 'this'} ({error})")
        refusal.info = refusal.info.model_copy(update={"user_guidance": _INVITE})
        return refusal
    if error in ("invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"):
        return ToolError(
            "SLACK_TOKEN_REFUSED",
            f"Slack refuses the token ({error})",
            category=ErrorCategory.AUTHENTICATION,
            recover_action="Tell the user that the Slack token must be renewed; calling again will not help",
            user_guidance=f"Put a valid bot token into JOURNEYMAN_SECRET_{TOKEN}",
        )
    return _failed(f"Slack refused: {error[:100]}")

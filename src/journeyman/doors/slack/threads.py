"""A thread of Slack: what was said in it, and the messages that the bot keeps there. Slack itself remembers them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from journeyman.core.runs import Message, Role
from journeyman.core.words import packaged_json
from journeyman.doors.slack.client import reason
from journeyman.doors.slack.people import Workspace
from journeyman.doors.slack.posts import ANSWER, Post
from journeyman.doors.slack.text import plain

logger = logging.getLogger("journeyman.slack")

MOST_MESSAGES = 100
"""Of a thread, the latest, that a run is told of."""
MOST_PAGES = 10
PAGE = 1_000
_PLACE = ("team_id", "channel_id", "user_id", "thread_ts", "ts")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run was asked for: kept in the run's metadata under "slack"."""

    team: str
    channel: str
    user: str
    thread_ts: str
    ts: str

    @property
    def metadata(self) -> dict[str, Any]:
        return {"slack": dict(zip(_PLACE, astuple(self), strict=True))}

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> Place | None:
        """Where a run was asked for; None for one of another door."""
        found = metadata.get("slack")
        if not isinstance(found, dict):
            return None
        values = [found.get(name) for name in _PLACE]
        return cls(*map(str, values)) if all(isinstance(value, str) for value in values) else None


class NotOursError(Exception):
    """Another process may be writing here by now."""


class Thread:
    """One thread, and the messages of the bot in it that are known here.

    ``is_ours`` is asked before anything is written that another process might write as well.
    """

    def __init__(self, workspace: Workspace, place: Place, *, is_ours: Callable[[], bool] = lambda: True) -> None:
        self._is_ours = is_ours
        self._workspace = workspace
        self._client = workspace.client
        self.place = place
        self._known: dict[str, tuple[str, Post | None]] = {}

    async def look(self) -> None:
        """Find the messages that were written before, here or by an earlier process."""
        for message in await self._messages(oldest=self.place.ts):
            if self._is_own(message):
                for block in message.get("blocks", ()):
                    if "block_id" in block:
                        self._known.setdefault(str(block["block_id"]), (message["ts"], None))

    def knows(self, block_id: str) -> bool:
        return block_id in self._known

    async def put(self, post: Post, *, once: bool = False, if_room: bool = False) -> bool:
        """Write a message, or bring the one that is there up to date; with ``once``, what is there stays.

        With ``if_room``, it is left as it is while Slack takes no more of them: then False. Raises NotOursError.
        """
        if not self._is_ours():
            raise NotOursError
        ts, shown = self._known.get(post.key, (None, None))
        if ts is not None and (once or shown == post):
            return True
        given: dict[str, Any] = {"channel": self.place.channel, "text": post.text, "blocks": post.blocks}
        if ts is None:
            # A link that a model wrote is fetched by nobody before a person follows it.
            given |= {"thread_ts": self.place.thread_ts, "unfurl_links": False, "unfurl_media": False}
            told = await self._call("chat.postMessage", given, if_room=if_room)
            if told is None:
                return False
            ts = str(told["ts"])
        else:
            try:
                if await self._call("chat.update", {**given, "ts": ts}, if_room=if_room) is None:
                    return False
            except SlackApiError as error:
                if reason(error) not in _UNCHANGEABLE:
                    raise
                logger.warning("a message is left as it is: %s", reason(error), extra={"channel": self.place.channel})
        for block in post.blocks:
            self._known[block["block_id"]] = (ts, None)
        self._known[post.key] = (ts, post)
        return True

    async def _call(self, method: str, given: dict[str, Any], *, if_room: bool) -> AsyncSlackResponse | None:
        if if_room:
            return await self._client.call_if_there_is_room(method, given)
        return await self._client.api_call(method, json=given)

    async def say(self, text: str) -> None:
        """Write something that needs no keeping."""
        await self._client.chat_postMessage(channel=self.place.channel, thread_ts=self.place.thread_ts, text=text)

    async def history(self) -> Sequence[Message]:
        """What was said before the request, the latest so many: people's messages with who wrote them, our answers."""
        said = (self._said(message) for message in await self._messages() if _moment(message) < float(self.place.ts))
        return [message for message in said if message is not None][-MOST_MESSAGES:]

    def _said(self, message: Mapping[str, Any]) -> Message | None:
        text = plain(str(message.get("text", "")), bot=self._workspace.bot_user)
        if not self._is_own(message):
            who = message.get("user") or message.get("username") or message.get("bot_id") or "somebody"
            return Message.user(f"@{who}: {text}") if text else None
        # Our own status and questions are no part of the conversation, our answers are: whole, not as notified.
        answers = [
            block["text"]["text"] for block in message.get("blocks", ()) if block.get("block_id", "").startswith(ANSWER)
        ]
        return Message(role=Role.ASSISTANT, content=plain("\n".join(answers))) if answers else None

    def _is_own(self, message: Mapping[str, Any]) -> bool:
        workspace = self._workspace
        by_bot = bool(workspace.bot_id) and message.get("bot_id") == workspace.bot_id
        return by_bot or message.get("user") == workspace.bot_user

    async def _messages(self, *, oldest: str | None = None) -> list[dict[str, Any]]:
        """The thread, oldest first. Of one with thousands of messages, the first pages and nothing after."""
        found: list[dict[str, Any]] = []
        cursor = ""
        for _ in range(MOST_PAGES):
            told = await self._client.conversations_replies(
                channel=self.place.channel, ts=self.place.thread_ts, oldest=oldest, limit=PAGE, cursor=cursor or None
            )
            found += told.get("messages") or []
            cursor = (told.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                break
        return found


_UNCHANGEABLE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
"""Somebody has deleted it, or Slack lets nobody edit it any more: no reason to keep the answer back."""


async def say_why_not(workspace: Workspace, place: Place, why: str, *, run_id: str | None = None) -> None:
    """Tell whoever asked, directly, that their thread cannot be written to."""
    advice = packaged_json("journeyman.doors.slack", "advice.json").get(why, "Tell whoever runs me.")
    kept = f" What I did is kept as run `{run_id}`." if run_id is not None else ""
    logger.error(
        "Slack does not take what is to be said in a channel: %s",
        why,
        extra={"run_id": run_id, "channel": place.channel, "team": place.team},
    )
    text = f":warning: I cannot answer you in <#{place.channel}> (`{why}`). {advice}{kept}"
    try:
        await workspace.client.chat_postMessage(channel=place.user, text=text)
    except SlackApiError as error:
        logger.error("nor can its writer be told: %s", reason(error), extra={"run_id": run_id, "team": place.team})


def _moment(message: Mapping[str, Any]) -> float:
    return float(message.get("ts", 0))

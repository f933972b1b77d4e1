"""A thread of Slack: what was said in it, and the messages that the bot keeps there. Slack itself remembers them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from journeyman.core.content import MEDIUM_BYTES, MESSAGE_MEDIA, REQUEST_MEDIA_BYTES, Medium
from journeyman.core.data import one_line, read_at_most
from journeyman.core.errors import InvalidDataError
from journeyman.core.runs import Message, Role
from journeyman.core.words import packaged_json
from journeyman.doors.slack.client import PASSING, SECONDS, reason
from journeyman.doors.slack.people import Workspace
from journeyman.doors.slack.posts import ANSWER, Post
from journeyman.doors.slack.text import plain

logger = logging.getLogger("journeyman.slack")

MOST_MESSAGES = 100
"""Of a thread, the latest, that a run is told of."""
MOST_PAGES = 10
PAGE = 999
PLAIN = "journeyman_plain"
"""What the metadata of a message are called whose blocks Slack has refused."""
_PLACE = ("team_id", "channel_id", "user_id", "thread_ts", "ts")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run was asked for: kept in the run's metadata under "slack".

    Without ``thread_ts`` it is the conversation itself, as in direct messages.
    """

    team: str
    channel: str
    user: str
    thread_ts: str
    ts: str
    people: Mapping[str, str] = field(default_factory=dict)
    """Whom the model knows, by the names under which it was told of them."""

    @property
    def metadata(self) -> dict[str, Any]:
        values = (self.team, self.channel, self.user, self.thread_ts, self.ts)
        return {"slack": {**dict(zip(_PLACE, values, strict=True)), "people": dict(self.people)}}

    @classmethod
    def read(cls, metadata: Mapping[str, Any]) -> Place | None:
        """Where a run was asked for; None for one of another door."""
        kept = metadata.get("slack")
        if not isinstance(kept, dict):
            return None
        values = [kept[name] for name in _PLACE if isinstance(kept.get(name), str)]
        if len(values) < len(_PLACE):
            return None
        team, channel, user, thread_ts, ts = values
        people = kept.get("people")
        return cls(team, channel, user, thread_ts, ts, people if isinstance(people, dict) else {})


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
                for block_id in _block_ids(message):
                    self._known.setdefault(block_id, (message["ts"], None))

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
        try:
            answer = await self._write(post, ts, if_room=if_room)
            if answer is None:
                return False
            ts = ts or str(answer["ts"])
        except SlackApiError as error:
            if ts is None or reason(error) not in _UNCHANGEABLE:
                raise
            logger.warning("a message is left as it is: %s", reason(error), extra={"channel": self.place.channel})
        for block in post.blocks:
            self._known[block["block_id"]] = (ts, None)
        self._known[post.key] = (ts, post)
        return True

    async def _write(self, post: Post, ts: str | None, *, if_room: bool) -> AsyncSlackResponse | None:
        method, given = "chat.update", dict[str, Any](channel=self.place.channel, ts=ts)
        if ts is None:
            # A link that a model wrote is fetched by nobody before a person follows it.
            method, given = "chat.postMessage", {**self._where, "unfurl_links": False, "unfurl_media": False}
        try:
            return await self._call(method, {**given, "text": post.text, "blocks": post.blocks}, if_room=if_room)
        except SlackApiError as error:
            if reason(error) not in _REFUSED_BLOCKS:
                raise
            logger.error("Slack refuses the blocks of %s: %s", post.key, error.response.get("response_metadata"))
        # As plain text, whose metadata say what the ids of its blocks would have said.
        payload = {"block_ids": [block["block_id"] for block in post.blocks]}
        metadata = {"event_type": PLAIN, "event_payload": payload}
        return await self._call(
            method, {**given, "text": post.whole, "blocks": [], "metadata": metadata}, if_room=False
        )

    @property
    def _where(self) -> dict[str, Any]:
        """Where a message is to be written."""
        thread = {"thread_ts": self.place.thread_ts} if self.place.thread_ts else {}
        return {"channel": self.place.channel, **thread}

    async def _call(self, method: str, given: dict[str, Any], *, if_room: bool) -> AsyncSlackResponse | None:
        if if_room:
            return await self._client.call_if_there_is_room(method, given)
        return await self._client.api_call(method, json=given)

    async def members(self) -> set[str]:
        """Who sees the thread, as far as Slack says."""
        if self.place.channel.startswith("D"):
            return {self.place.user}
        members: set[str] = set()
        try:
            async for page in self._pages(self._client.conversations_members):
                members |= set(page.get("members") or ())
        except SlackApiError as error:
            if reason(error) in PASSING:
                raise
            logger.warning("who is in a channel is not known: %s", reason(error))
        return members

    async def directly(self, user: str) -> Thread | None:
        """The same for somebody alone, in their direct messages; None where they cannot be written to."""
        try:
            opened = await self._client.conversations_open(users=user)
            channel = str((opened.get("channel") or {}).get("id") or "")
            direct = Thread(
                self._workspace, replace(self.place, channel=channel, user=user, thread_ts=""), is_ours=self._is_ours
            )
            await direct.look()
            return direct
        except SlackApiError as error:
            if reason(error) in PASSING:
                raise
            logger.warning("somebody who may decide cannot be written to: %s", reason(error), extra={"user": user})
            return None

    async def say(self, text: str) -> None:
        """Write something that needs no keeping."""
        await self._client.chat_postMessage(**self._where, text=text)

    async def before(self) -> list[dict[str, Any]]:
        """What was said in the thread before the request, the latest so many messages."""
        said = [message for message in await self._messages() if _moment(message) < float(self.place.ts)]
        return [message for message in said if not self._is_own(message) or _answer(message)][-MOST_MESSAGES:]

    def history(self, said: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[Message]:
        """The same as a conversation: people's messages with who wrote them, and our answers."""
        messages = (self._said(message, names) for message in said)
        return [message for message in messages if message is not None]

    def _said(self, message: Mapping[str, Any], names: Mapping[str, str]) -> Message | None:
        # Our own status and questions are no part of the conversation, our answers are: whole, not as notified.
        if self._is_own(message):
            return Message(role=Role.ASSISTANT, content=plain(_answer(message), names=names))
        text = plain(str(message.get("text", "")), bot=self._workspace.bot_user, names=names)
        user = str(message.get("user") or message.get("username") or message.get("bot_id") or "somebody")
        return Message.user(f"@{names.get(user, user)}: {text}") if text else None

    def _is_own(self, message: Mapping[str, Any]) -> bool:
        workspace = self._workspace
        by_bot = bool(workspace.bot_id) and message.get("bot_id") == workspace.bot_id
        return by_bot or message.get("user") == workspace.bot_user

    async def _messages(self, *, oldest: str | None = None) -> list[dict[str, Any]]:
        """The thread, oldest first. Of one with thousands of messages, the first pages and nothing after."""
        read: Callable[..., Awaitable[AsyncSlackResponse]] = self._client.conversations_history
        if self.place.thread_ts:
            read = partial(self._client.conversations_replies, ts=self.place.thread_ts)
        pages = self._pages(partial(read, oldest=oldest, include_all_metadata=True))
        return [message async for page in pages for message in page.get("messages") or []]

    async def _pages(self, read: Callable[..., Awaitable[AsyncSlackResponse]]) -> AsyncIterator[AsyncSlackResponse]:
        """What Slack tells of the channel, the first pages and nothing after."""
        cursor = ""
        for _ in range(MOST_PAGES):
            page = await read(channel=self.place.channel, limit=PAGE, cursor=cursor or None)
            yield page
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return


_UNCHANGEABLE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
"""Somebody has deleted it, or Slack lets nobody edit it any more: no reason to keep the answer back."""


_REFUSED_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "block_mismatch"})


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


def _block_ids(message: Mapping[str, Any]) -> list[str]:
    """The ids of a message's blocks, also of those that Slack has refused."""
    ids = [str(block["block_id"]) for block in message.get("blocks") or () if "block_id" in block]
    metadata = message.get("metadata") or {}
    refused = (metadata.get("event_payload") or {}).get("block_ids") if metadata.get("event_type") == PLAIN else None
    return ids + [str(block_id) for block_id in refused or ()]


def _answer(message: Mapping[str, Any]) -> str:
    """What a message of ours says of an answer; nothing where it is a status or a question."""
    if not any(block_id.startswith(ANSWER) for block_id in _block_ids(message)):
        return ""
    blocks = (block for block in message.get("blocks") or () if block.get("block_id", "").startswith(ANSWER))
    return "\n".join(block["text"]["text"] for block in blocks) or str(message.get("text", ""))


def _moment(message: Mapping[str, Any]) -> float:
    return float(message.get("ts", 0))


# --- files that somebody shares in a message: fetched with the bot's token, from Slack and nowhere else


_HOSTS = ("slack.com", "slack-gov.com")
TOO_MANY = f"I take at most {MESSAGE_MEDIA} files and {REQUEST_MEDIA_BYTES // 1_000_000} MB with a message"


async def shared_files(event: Mapping[str, Any], workspace: Workspace) -> tuple[list[Medium], list[str]]:
    """The files of a message that can be handed on, and of each other one why it cannot, for people."""
    media: list[Medium] = []
    missing: list[str] = []
    shared = [file for file in event.get("files") or () if isinstance(file, Mapping)]
    for file in shared:
        name = str(file.get("name") or "a file")
        try:
            if len(media) == MESSAGE_MEDIA:
                raise ValueError(TOO_MANY)
            medium = await _fetched(file, name, workspace)
            if sum(each.bytes for each in media) + medium.bytes > REQUEST_MEDIA_BYTES:
                raise ValueError(TOO_MANY)
            media.append(medium)
        except InvalidDataError as error:
            missing.append(f"{one_line(name, most=100)}: {error.problems[0][1]}")
        except (ValueError, OSError, TimeoutError, aiohttp.ClientError) as error:
            missing.append(f"{one_line(name, most=100)}: {error or type(error).__name__}")
    return media, missing[:MESSAGE_MEDIA]


async def _fetched(file: Mapping[str, Any], name: str, workspace: Workspace) -> Medium:
    url = str(file.get("url_private_download") or file.get("url_private") or "")
    if not _is_slack(url, workspace.client.base_url):
        raise ValueError("Slack does not say where it is kept" if not url else "it is not kept at Slack")
    headers, limit = {"Authorization": f"Bearer {workspace.token}"}, aiohttp.ClientTimeout(total=SECONDS)
    # Nowhere else than there: a redirection would take the token along.
    async with (
        aiohttp.ClientSession(timeout=limit, auto_decompress=False) as session,
        session.get(url, headers=headers, allow_redirects=False) as response,
    ):
        said = str(file.get("mimetype") or "")
        page = response.content_type == "text/html" and said != "text/html"  # to sign in
        if response.status != 200 or page or response.headers.get("Content-Encoding"):
            raise ValueError(f"Slack does not give it to me ({response.status}); do I have the scope files:read?")
        data, _ = await read_at_most(response.content.iter_any(), MEDIUM_BYTES + 1)
    return Medium.from_bytes(data, mime_type=said, name=name)


def _is_slack(url: str, api: str) -> bool:
    """Whether an address is Slack's: by its name over https, or where its API is."""
    try:
        parts, own = urlsplit(url), urlsplit(api)
        if (parts.scheme, parts.hostname, parts.port) == (own.scheme, own.hostname, own.port):
            return parts.username is None
        host = parts.hostname or ""
        known = any(host == name or host.endswith(f".{name}") for name in _HOSTS)
        return parts.scheme == "https" and parts.port in (None, 443) and parts.username is None and known
    except ValueError:
        return False

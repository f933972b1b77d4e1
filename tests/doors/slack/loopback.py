"""A Slack on the loopback interface: the Web API over HTTP, Socket Mode over a websocket, signed requests."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import WSMsgType, web

from tests.waiting import until

SECRET = "signing-secret-of-the-loopback"
APP_TOKEN = "xapp-1-loopback"
TEAM, OTHER_TEAM = "T0AAAAAAA", "T0BBBBBBB"
TOKENS = {TEAM: "xoxb-team-a", OTHER_TEAM: "xoxb-team-b"}
BOT = {TEAM: "U0BOTAAAA", OTHER_TEAM: "U0BOTBBBB"}
ADA, GRACE, EVE = "U0ADAAAAA", "U0GRACEEE", "U0EVEEEEE"
NAMES = {ADA: "Ada Lovelace", GRACE: "Grace", EVE: "Eve"}
CHANNEL, SECRET_CHANNEL = "C0GENERAL1", "C0SECRET01"

Json = dict[str, Any]


class LoopbackSlack:
    """Messages by channel, every request it got, and the socket of whoever listens."""

    def __init__(self) -> None:
        self.url = ""
        self.messages: dict[str, list[Json]] = {}
        self._posted: dict[tuple[str, str], Json] = {}
        """The bot's messages by channel and moment."""
        self.requests: list[tuple[str, Json]] = []
        self.ephemeral: list[Json] = []
        self.views: list[Json] = []
        self.homes: dict[str, Json] = {}
        self.acknowledged: list[str] = []
        self.members: dict[str, set[str]] = {SECRET_CHANNEL: {GRACE, BOT[TEAM]}}
        self.limited: dict[str, int] = {}
        """How many times a method answers 429 before it works."""
        self.retry_after = "1"
        self.refusing: dict[str, str] = {}
        """Methods that answer with an error."""
        self.holding: dict[str, asyncio.Event] = {}
        """Methods that answer when their event is set."""
        self.closed: dict[str, str] = {}
        """Channels in which nothing can be written, and why."""
        self.files: dict[str, bytes] = {}
        """What people have shared, by name."""
        self.fetched: list[tuple[str, str]] = []
        """Which of it was asked for, and with which token."""
        self._sockets: list[web.WebSocketResponse] = []
        self._numbers = count(1)

    # --- what the bot sees

    async def handle(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        given: Json = dict(request.query) | dict(await request.post())
        if request.content_type == "application/json":
            given |= await request.json()
        read = ("blocks", "view", "metadata")
        given = {name: json.loads(v) if name in read and isinstance(v, str) else v for name, v in given.items()}
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or given.pop("token", "")
        self.requests.append((method, given))
        if self.limited.get(method, 0) > 0:
            self.limited[method] -= 1
            headers = {"Retry-After": self.retry_after}
            return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
        if method in self.holding:
            await self.holding[method].wait()
        if method in self.refusing:
            return web.json_response({"ok": False, "error": self.refusing[method]})
        team = next((name for name, known in TOKENS.items() if known == token), None)
        if method == "apps.connections.open":
            good = token == APP_TOKEN
            socket = self.url.replace("http", "ws", 1).replace("/api/", "/socket")
            return web.json_response({"ok": good, "url": socket} if good else {"ok": False, "error": "invalid_auth"})
        if team is None:
            return web.json_response({"ok": False, "error": "invalid_auth"})
        answer: Json = getattr(self, method.lower().replace(".", "_"), _unknown)(team, given)
        return web.json_response({"ok": "error" not in answer, **answer})

    async def file(self, request: web.Request) -> web.Response:
        name, token = request.match_info["name"], request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.fetched.append((name, token))
        if name == "elsewhere":
            raise web.HTTPFound("/files/photo.png")
        if token not in TOKENS.values():
            return web.Response(text="<html>Sign in</html>", content_type="text/html")
        return web.Response(body=self.files[name], content_type="application/octet-stream")

    def share(self, *names: str, mimetype: str = "image/png") -> list[Json]:
        """Files as an event names them."""
        at = self.url.replace("/api/", "/files/")
        return [{"id": "F1", "name": name, "mimetype": mimetype, "url_private": f"{at}{name}"} for name in names]

    def auth_test(self, team: str, _: Json) -> Json:
        return {"team_id": team, "user_id": BOT[team], "bot_id": f"B{team}"}

    def chat_postmessage(self, team: str, given: Json) -> Json:
        if given["channel"] in self.closed:
            return {"error": self.closed[given["channel"]]}
        if (wrong := _wrong(given)) is not None:
            return {"error": wrong}
        message = {"user": BOT[team], "bot_id": f"B{team}", "ts": self.moment(), "team": team, **given}
        self.messages.setdefault(given["channel"], []).append(message)
        self._posted[given["channel"], message["ts"]] = message
        return {"ts": message["ts"], "channel": given["channel"], "message": message}

    def chat_update(self, _: str, given: Json) -> Json:
        message = self._posted.get((given["channel"], given["ts"]))
        if message is None:
            return {"error": "message_not_found"}
        if (wrong := _wrong(given)) is not None:
            return {"error": wrong}
        message |= given | {"edits": message.get("edits", 0) + 1}
        return {"ts": given["ts"]}

    def chat_postephemeral(self, _: str, given: Json) -> Json:
        self.ephemeral.append(given)
        return {"message_ts": self.moment()}

    def conversations_replies(self, _: str, given: Json) -> Json:
        told = [m for m in self.messages.get(given["channel"], []) if _thread(m) == given["ts"]]
        oldest = float(given.get("oldest") or 0)
        return self._page([m for m in told if m["ts"] == given["ts"] or float(m["ts"]) > oldest], given)

    def conversations_history(self, _: str, given: Json) -> Json:
        if given["channel"] not in self.messages:
            return {"error": "channel_not_found"}
        told = [m for m in self.messages[given["channel"]] if m.get("thread_ts", m["ts"]) == m["ts"]]
        recent = [m for m in told if float(m["ts"]) >= float(given.get("oldest") or 0)]
        return self._page(recent[::-1], given)

    def _page(self, found: list[Json], given: Json) -> Json:
        at, limit = int(given.get("cursor") or 0), int(given.get("limit") or 100)
        following = str(at + limit) if len(found) > at + limit else ""
        return {"messages": found[at : at + limit], "response_metadata": {"next_cursor": following}}

    def conversations_info(self, _: str, given: Json) -> Json:
        if given["channel"] not in self.messages:
            return {"error": "channel_not_found"}
        return {"channel": {"id": given["channel"], "is_private": given["channel"] in self.members}}

    def conversations_members(self, _: str, given: Json) -> Json:
        return {"members": sorted(self.members.get(given["channel"], NAMES))}

    def conversations_open(self, _: str, given: Json) -> Json:
        return {"channel": {"id": f"D{given['users'][1:]}"}}

    def users_info(self, _: str, given: Json) -> Json:
        if given["user"] not in NAMES:
            return {"error": "user_not_found"}
        return {"user": {"id": given["user"], "name": "x", "profile": {"display_name": NAMES[given["user"]]}}}

    def views_open(self, _: str, given: Json) -> Json:
        self.views.append(given["view"])
        return {"view": {"id": "V1"}}

    def views_publish(self, _: str, given: Json) -> Json:
        self.homes[given["user_id"]] = given["view"]
        return {"view": {"id": "V2"}}

    # --- Socket Mode

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self._sockets.append(socket)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self.acknowledged.append(json.loads(message.data)["envelope_id"])
        self._sockets.remove(socket)
        return socket

    @property
    def listeners(self) -> int:
        return len(self._sockets)

    def delete(self, message: Json) -> None:
        """Somebody deletes a message of the bot's."""
        self.messages[message["channel"]].remove(message)
        del self._posted[message["channel"], message["ts"]]

    async def refresh(self) -> None:
        """Ask whoever listens to connect anew, as Slack does every few hours, and hang up."""
        for socket in list(self._sockets):
            await socket.send_json({"type": "disconnect", "reason": "refresh_requested"})
            await socket.close()

    async def deliver(self, payload: Json, *, kind: str = "events_api", times: int = 1, wait: bool = True) -> None:
        """Send something over the socket; return when it was acknowledged each time."""
        await until(lambda: bool(self._sockets))
        envelopes = [f"envelope-{next(self._numbers)}" for _ in range(times)]
        for number, envelope in enumerate(envelopes):
            sent = {"envelope_id": envelope, "type": kind, "payload": payload, "accepts_response_payload": False}
            await self._sockets[-1].send_json({**sent, "retry_attempt": number})
        if wait:
            await until(lambda: set(envelopes) <= set(self.acknowledged))

    # --- signed requests

    async def request(
        self, url: str, payload: Json, *, secret: str = SECRET, age: float = 0.0, form: bool = False
    ) -> int:
        """Send something over HTTP, signed as Slack signs; the status."""
        body, headers = signed(payload, secret=secret, age=age, form=form)
        async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as response:
            return response.status

    # --- people

    def write(self, text: str, *, user: str = ADA, channel: str = CHANNEL, thread: str | None = None) -> Json:
        """A person's message, in the channel and as the event that tells of it."""
        message = {"type": "message", "user": user, "text": text, "ts": self.moment(), "channel": channel}
        if thread is not None:
            message["thread_ts"] = thread
        self.messages.setdefault(channel, []).append(message)
        return message

    def mention(self, text: str, *, team: str = TEAM, **options: Any) -> Json:
        event = {**self.write(f"<@{BOT[team]}> {text}", **options), "type": "app_mention"}
        return envelope(event, team)

    def moment(self) -> str:
        # Counted behind the point, so that messages of one second differ.
        return f"{int(time.time())}.{next(self._numbers):06d}"

    def said(self, channel: str = CHANNEL, *, key: str = "answer:") -> list[Json]:
        """The bot's messages of a kind."""
        return [
            m for m in self.messages.get(channel, []) if any(b["block_id"].startswith(key) for b in m.get("blocks", ()))
        ]

    def press(self, message: Json, label: str, *, user: str = GRACE, team: str = TEAM) -> Json:
        """What Slack sends when somebody presses a button of a message."""
        buttons = [e for b in message["blocks"] if b["type"] == "actions" for e in b["elements"]]
        button = next(b for b in buttons if b["text"]["text"] == label)
        return {
            "type": "block_actions",
            "team": {"id": team},
            "user": {"id": user, "team_id": team},
            "api_app_id": "A1",
            "channel": {"id": message["channel"]},
            "container": {"type": "message", "message_ts": message["ts"]},
            "message": message,
            "trigger_id": "1.2.3",
            "actions": [{"type": "button", "block_id": "b", "action_ts": "1.1", **button}],
        }

    def submit(self, view: Json, *, user: str = GRACE, team: str = TEAM, **fields: str) -> Json:
        """What Slack sends when somebody fills in a dialogue."""
        values = {block: {"journeyman:field": {"type": "plain_text_input", "value": v}} for block, v in fields.items()}
        return {
            "type": "view_submission",
            "team": {"id": team},
            "user": {"id": user, "team_id": team},
            "api_app_id": "A1",
            "view": {**view, "id": "V1", "state": {"values": values}},
        }

    def counted(self, method: str) -> int:
        return sum(name == method for name, _ in self.requests)


def _wrong(given: Json) -> str | None:
    """What Slack would have against a message."""
    if len(given.get("text", "")) > 40_000:
        return "msg_too_long"
    blocks = given.get("blocks") or []
    if not blocks:
        return None if given.get("text", "").strip() else "no_text"
    ids = [block["block_id"] for block in blocks]
    buttons = [element for block in blocks if block["type"] == "actions" for element in block["elements"]]
    texts = [
        element["text"]
        for block in blocks
        if block["type"] in ("section", "context")
        for element in ([block["text"]] if block["type"] == "section" else block["elements"])
    ]
    right = (
        len(blocks) <= 50
        and len(set(ids)) == len(ids)
        and all(0 < len(block_id) <= 255 for block_id in ids)
        and all(0 < len(text.strip()) <= 3_000 for text in texts)
        and all(len(button["value"]) <= 2_000 and len(button["text"]["text"]) <= 75 for button in buttons)
    )
    return None if right else "invalid_blocks"


def envelope(event: Json, team: str = TEAM) -> Json:
    return {
        "type": "event_callback",
        "team_id": team,
        "api_app_id": "A1",
        "event_id": f"Ev{event['ts']}",
        "event": event,
        "authorizations": [{"team_id": team, "user_id": BOT[team], "is_bot": True}],
    }


def signed(payload: Json, *, secret: str = SECRET, age: float = 0.0, form: bool = False) -> tuple[str, dict[str, str]]:
    """The body of a request and its headers, signed as Slack signs them."""
    body = urlencode({"payload": json.dumps(payload)}) if form else json.dumps(payload)
    at = str(int(time.time() - age))
    signature = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
    return body, {
        "X-Slack-Request-Timestamp": at,
        "X-Slack-Signature": f"v0={signature}",
        "Content-Type": "application/x-www-form-urlencoded" if form else "application/json",
    }


def _thread(message: Json) -> str:
    return str(message.get("thread_ts", message["ts"]))


def _unknown(_: str, __: Json) -> Json:
    return {"error": "unknown_method"}


@asynccontextmanager
async def loopback_slack() -> AsyncIterator[LoopbackSlack]:
    slack = LoopbackSlack()
    async with serving(slack):
        yield slack


@asynccontextmanager
async def serving(slack: LoopbackSlack) -> AsyncIterator[None]:
    application = web.Application()
    application.router.add_route("*", "/api/{method}", slack.handle)
    application.router.add_get("/socket", slack.socket)
    application.router.add_get("/files/{name}", slack.file)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        slack.url = f"http://127.0.0.1:{runner.addresses[0][1]}/api/"
        yield
    finally:
        await runner.cleanup()

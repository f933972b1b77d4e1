"""Another Slack on the loopback interface, by Starlette: it knows who is where, and holds to Slack's published limits.

What ``loopback`` lets pass is refused here: messages into channels that the bot is not in, people whom nobody has told
of, and every block that Slack's documentation or its own SDK would not take.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.waiting import until

Json = dict[str, Any]
APP_TOKEN = "xapp-strict"
_TS = re.compile(r"\d{10}\.\d{6}")
_TEXTS = {"section": 3_000, "header": 150}
_KNOWN = {
    "chat.postMessage": {"channel", "text", "blocks", "thread_ts", "unfurl_links", "unfurl_media", "metadata"},
    "chat.update": {"channel", "ts", "text", "blocks", "metadata"},
    "chat.postEphemeral": {"channel", "user", "text", "thread_ts"},
    "views.open": {"trigger_id", "view"},
    "views.publish": {"user_id", "view"},
    "users.info": {"user"},
    "conversations.open": {"users"},
    "conversations.members": {"channel", "limit", "cursor"},
    "conversations.replies": {"channel", "ts", "oldest", "limit", "cursor", "include_all_metadata"},
    "conversations.history": {"channel", "oldest", "limit", "cursor", "include_all_metadata"},
    "auth.test": set(),
}
"""What each method is documented to take, of what is used here."""


class RefusedError(Exception):
    """What Slack answers instead."""


@dataclass
class Team:
    """One workspace."""

    id: str
    bot: str
    people: dict[str, str]
    """Names by id."""
    channels: dict[str, set[str]]
    """Who is in which."""
    messages: dict[str, list[Json]] = field(default_factory=dict)
    homes: dict[str, Json] = field(default_factory=dict)
    whispers: list[Json] = field(default_factory=list)
    triggers: dict[str, str] = field(default_factory=dict)
    """Who may be shown a dialogue, once."""
    views: list[tuple[str, Json]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    """Whose accounts are closed."""

    def direct(self, user: str) -> str:
        channel = f"D{user[1:]}"
        self.channels.setdefault(channel, {user, self.bot})
        return channel

    def seen_by(self, user: str) -> str:
        """Everything that somebody has been shown, in one text."""
        shown = [m for name, said in self.messages.items() if user in self.channels[name] for m in said]
        own = [item for item in self.whispers if item["user"] == user]
        return json.dumps([shown, own, self.homes.get(user), [v for who, v in self.views if who == user]])


class StrictSlack:
    def __init__(self, *teams: Team) -> None:
        self.teams = {team.id: team for team in teams}
        self.url = ""
        self.problems: list[str] = []
        """Every request that Slack would have refused for its form."""
        self.calls: list[tuple[str, str, Json]] = []
        self.storm: dict[str, list[str]] = {}
        """For a method, the pauses that its next calls are told to make."""
        self.no_blocks = False
        self._now = 1_780_000_000.0
        self._count = 0
        self._sockets: list[WebSocket] = []
        self.acknowledged: dict[str, Json] = {}

    # --- the Web API

    async def call(self, request: Request) -> Response:
        method = request.path_params["method"]
        given: Json = dict(request.query_params)
        if request.headers.get("content-type", "").startswith("application/json"):
            given |= await request.json()
        elif request.method == "POST":
            async with request.form() as form:
                given |= dict(form)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if method == "apps.connections.open":
            return JSONResponse({"ok": token == APP_TOKEN, "url": self.url.replace("http", "ws") + "link"})
        team = self.teams.get(token.removeprefix("xoxb-"))
        for name in ("blocks", "view", "metadata"):
            if isinstance(given.get(name), str):
                given[name] = json.loads(given[name])
        self.calls.append((method, "" if team is None else team.id, given))
        if self.storm.get(method):
            return JSONResponse({"ok": False, "error": "ratelimited"}, 429, {"Retry-After": self.storm[method].pop(0)})
        try:
            if team is None:
                raise RefusedError("invalid_auth")
            if method not in _KNOWN or (unknown := given.keys() - _KNOWN[method]):
                self.problems.append(f"{method} takes no {unknown if method in _KNOWN else 'call'}")
                raise RefusedError("unknown_method")
            answer = getattr(self, method.replace(".", "_"))(team, given)
            return JSONResponse({"ok": True, **answer})
        except RefusedError as error:
            return JSONResponse({"ok": False, "error": str(error)})

    def auth_test(self, team: Team, _: Json) -> Json:
        return {"team_id": team.id, "user_id": team.bot, "bot_id": f"B{team.id}"}

    def chat_postMessage(self, team: Team, given: Json) -> Json:  # noqa: N802  # as Slack calls it
        channel = self._channel(team, given["channel"])
        if "thread_ts" in given and not any(m["ts"] == given["thread_ts"] for m in team.messages.get(channel, ())):
            raise RefusedError("thread_not_found")
        self._check_message(given)
        message = {**given, "user": team.bot, "bot_id": f"B{team.id}", "ts": self.moment(), "channel": channel}
        team.messages.setdefault(channel, []).append(message)
        return {"channel": channel, "ts": message["ts"], "message": message}

    def chat_update(self, team: Team, given: Json) -> Json:
        channel = self._channel(team, given["channel"])
        found = [m for m in team.messages.get(channel, ()) if m["ts"] == given["ts"] and m["user"] == team.bot]
        if not found:
            raise RefusedError("message_not_found")
        self._check_message(given)
        found[0].update(given)
        return {"channel": channel, "ts": given["ts"]}

    def chat_postEphemeral(self, team: Team, given: Json) -> Json:  # noqa: N802  # as Slack calls it
        if given["user"] not in team.channels[self._channel(team, given["channel"])]:
            raise RefusedError("user_not_in_channel")
        self._check_message(given)
        team.whispers.append(given)
        return {"message_ts": self.moment()}

    def conversations_open(self, team: Team, given: Json) -> Json:
        if given["users"] not in team.people:
            raise RefusedError("user_not_found")
        if given["users"] in team.gone:
            raise RefusedError("user_disabled")
        return {"channel": {"id": team.direct(given["users"])}}

    def conversations_members(self, team: Team, given: Json) -> Json:
        members = sorted(team.channels[self._channel(team, given["channel"])])
        return _page(members, given, "members")

    def conversations_replies(self, team: Team, given: Json) -> Json:
        said = team.messages.get(self._channel(team, given["channel"]), [])
        found = [m for m in said if given["ts"] in (m["ts"], m.get("thread_ts"))]
        return _page([m for m in found if m["ts"] == given["ts"] or _after(m, given)], given, "messages")

    def conversations_history(self, team: Team, given: Json) -> Json:
        said = team.messages.get(self._channel(team, given["channel"]), [])
        found = [m for m in said if m.get("thread_ts") in (None, m["ts"]) and _after(m, given)]
        return _page(found[::-1], given, "messages")

    def users_info(self, team: Team, given: Json) -> Json:
        if given["user"] not in team.people:
            raise RefusedError("user_not_found")
        return {"user": {"id": given["user"], "profile": {"display_name": team.people[given["user"]]}}}

    def views_open(self, team: Team, given: Json) -> Json:
        user = team.triggers.pop(given["trigger_id"], None)
        if user is None:
            raise RefusedError("expired_trigger_id")
        self._check_view(given["view"], most=100)
        team.views.append((user, given["view"]))
        return {"view": {"id": "V1"}}

    def views_publish(self, team: Team, given: Json) -> Json:
        self._check_view(given["view"], most=100)
        team.homes[given["user_id"]] = given["view"]
        return {"view": {"id": "V2"}}

    def _channel(self, team: Team, name: str) -> str:
        name = team.direct(name) if name in team.people else name
        if name not in team.channels:
            raise RefusedError("channel_not_found")
        if team.bot not in team.channels[name]:
            raise RefusedError("not_in_channel")
        return name

    # --- Slack's limits

    def _check_message(self, given: Json) -> None:
        blocks = given.get("blocks") or []
        if blocks and self.no_blocks:
            raise RefusedError("invalid_blocks")
        if not given.get("text") or (len(given["text"]) > 4_000 and blocks):
            self._wrong(given, "a message has a text of at most 4,000 characters beside its blocks")
        if len(given["text"]) > 40_000:
            self._wrong(given, "a text has at most 40,000 characters")
        if re.search(r"<!(?:channel|here|everyone)|@(?:channel|here|everyone)\b", json.dumps(given)):
            self._wrong(given, "nobody calls everybody")
        self._check_blocks(blocks, most=50)

    def _check_view(self, view: Json, *, most: int) -> None:
        try:
            View(**view).validate_json()
        except Exception as error:  # of the SDK's own checks
            self._wrong(view, str(error))
        for name in ("title", "submit", "close"):
            if name in view and len(view[name]["text"]) > 24:
                self._wrong(view, f"{name} has at most 24 characters")
        if len(view.get("private_metadata", "")) > 3_000 or len(view.get("callback_id", "")) > 255:
            self._wrong(view, "too much in a view")
        self._check_blocks(view["blocks"], most=most)

    def _check_blocks(self, blocks: list[Json], *, most: int) -> None:
        ids = [block.get("block_id") for block in blocks]
        if len(blocks) > most or len(set(ids)) < len(ids) or not all(i and len(i) <= 255 for i in ids):
            self._wrong(blocks, f"at most {most} blocks, each with an id of its own of at most 255 characters")
        for block, parsed in zip(blocks, Block.parse_all(blocks), strict=True):
            try:
                parsed.validate_json()
            except Exception as error:  # of the SDK's own checks
                self._wrong(block, str(error))
            text = block.get("text", {}).get("text")
            if block["type"] in _TEXTS and not 0 < len((text or "").strip()) <= _TEXTS[block["type"]]:
                self._wrong(block, f"a text of 1 to {_TEXTS[block['type']]} characters")
            held = block.get("elements", []) + [block[name] for name in ("accessory", "element") if name in block]
            for item in held:
                if item["type"] == "button":
                    fits = len(item["text"]["text"]) <= 75 and len(item["value"]) <= 2_000
                    if not fits or len(item["action_id"]) > 255 or item.get("style") not in (None, "primary", "danger"):
                        self._wrong(block, "a button")
                elif item["type"] == "static_select":
                    texts = [(len(each["text"]["text"]), len(each["value"])) for each in item["options"]]
                    if not 0 < len(texts) <= 100 or any(
                        not 0 < text <= 75 or not 0 < value <= 150 for text, value in texts
                    ):
                        self._wrong(block, "1 to 100 options of 75 characters")
                    if len({each["value"] for each in item["options"]}) < len(texts):
                        self._wrong(block, "options have values of their own")
                elif item["type"] == "plain_text_input" and len(item.get("initial_value", "")) > 3_000:
                    self._wrong(block, "a field has at most 3,000 characters")
            if block["type"] == "actions" and not 0 < len(held) <= 25:
                self._wrong(block, "1 to 25 buttons")
            if block["type"] == "input" and not 0 < len(block["label"]["text"]) <= 2_000:
                self._wrong(block, "a label")

    def _wrong(self, what: object, why: str) -> None:
        self.problems.append(f"{why}: {json.dumps(what)[:400]}")
        raise RefusedError("invalid_blocks")

    # --- Socket Mode

    async def link(self, socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_json({"type": "hello"})
        self._sockets.append(socket)
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                told = json.loads(await socket.receive_text())
                self.acknowledged[told["envelope_id"]] = told.get("payload") or {}
        self._sockets.remove(socket)

    async def send(self, payload: Json, kind: str = "interactive", *, wait: bool = True) -> Json:
        """Deliver something, again where its listener is gone before it has answered; the answer."""
        self._count += 1
        name = f"e{self._count}"
        listener: WebSocket | None = None
        while name not in self.acknowledged:
            await until(lambda: bool(self._sockets) or name in self.acknowledged)
            if self._sockets and self._sockets[-1] is not listener:
                listener = self._sockets[-1]
                with suppress(RuntimeError, WebSocketDisconnect):
                    await listener.send_json({"envelope_id": name, "type": kind, "payload": payload})
            if not wait:
                return {}
            await asyncio.sleep(0.02)
        return self.acknowledged[name]

    # --- people

    def moment(self) -> str:
        self._now += 1.0
        return f"{self._now:.6f}"

    def days_pass(self, days: float) -> None:
        self._now += days * 86_400

    async def says(self, team: Team, user: str, text: str, channel: str, **more: Any) -> Json:
        """Somebody writes: in a channel with a mention of the bot, or directly."""
        direct = channel.startswith("D")
        raw = text if direct else f"<@{team.bot}> {text}"
        said = {"type": "message", "user": user, "text": raw, "ts": self.moment(), "channel": channel, **more}
        team.messages.setdefault(channel, []).append(said)
        event = {**said, "channel_type": "im"} if direct else {**said, "type": "app_mention"}
        await self.send(_event(event, team), "events_api")
        return said

    async def opens_home(self, team: Team, user: str) -> str:
        event = {"type": "app_home_opened", "user": user, "tab": "home", "channel": team.direct(user)}
        await self.send(_event(event, team), "events_api")
        return json.dumps(team.homes[user])

    async def presses(self, team: Team, user: str, message: Json, label: str, *, home: str | None = None) -> Json:
        held = [e for b in message["blocks"] for e in (*b.get("elements", ()), *filter(None, [b.get("accessory")]))]
        button = next(e for e in held if e["type"] == "button" and e["text"]["text"] == label)
        self._count += 1
        team.triggers[f"t{self._count}"] = user
        place = {} if message.get("type") == "home" else {"channel": {"id": message["channel"]}, "message": message}
        return await self.send(
            {
                "type": "block_actions",
                "team": {"id": team.id},
                "user": {"id": user, "team_id": home or team.id},
                "trigger_id": f"t{self._count}",
                "actions": [{**button, "block_id": "b", "action_ts": "1.1"}],
                **place,
            }
        )

    async def fills_in(self, team: Team, user: str, **fields: str | None) -> Json:
        """Send the dialogue that somebody was shown last, with other values in these fields."""
        view = next(view for who, view in reversed(team.views) if who == user)
        inputs = {b["block_id"]: b["element"] for b in view["blocks"] if b["type"] == "input"}
        values = {name: element.get("initial_value") for name, element in inputs.items()} | fields
        state = {name: {inputs[name]["action_id"]: _entered(inputs[name], value)} for name, value in values.items()}
        return await self.send(
            {
                "type": "view_submission",
                "team": {"id": team.id},
                "user": {"id": user, "team_id": team.id},
                "view": {**view, "id": "V1", "state": {"values": state}},
            }
        )


def _event(event: Json, team: Team) -> Json:
    return {
        "type": "event_callback",
        "team_id": team.id,
        "event": event,
        "event_id": f"Ev{event.get('ts', '')}",
        "authorizations": [{"team_id": team.id, "user_id": team.bot, "is_bot": True}],
    }


def _page(found: list[Any], given: Json, name: str) -> Json:
    at, limit = int(given.get("cursor") or 0), int(given.get("limit") or 100)
    if limit > 999:
        raise RefusedError("invalid_limit")
    return {
        name: found[at : at + limit],
        "response_metadata": {"next_cursor": str(at + limit) if len(found) > at + limit else ""},
    }


def _after(message: Json, given: Json) -> bool:
    return float(message["ts"]) > float(given.get("oldest") or 0)


@asynccontextmanager
async def strict_slack(*teams: Team) -> AsyncIterator[StrictSlack]:
    slack = StrictSlack(*teams)
    routes = [Route("/api/{method}", slack.call, methods=["GET", "POST"]), WebSocketRoute("/api/link", slack.link)]
    config = uvicorn.Config(
        Starlette(routes=routes), port=0, log_level="error", ws="websockets-sansio", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]  # they are the test runner's
    serving = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        slack.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/api/"
        yield slack
    finally:
        server.should_exit = True
        await serving
    assert not slack.problems, slack.problems


def _entered(element: Json, value: str | None) -> Json:
    if element["type"] != "static_select":
        return {"value": value}
    chosen = [each for each in element["options"] if value in (each["value"], each["text"]["text"])]
    return {"selected_option": chosen[0] if chosen else None}

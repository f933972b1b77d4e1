"""The section doors.slack of a configuration file: what is wrong with it, and that the program goes by it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from journeyman.app.configuration import Configuration
from journeyman.app.service import slack_pace
from journeyman.core.calls import Secrets, ToolContext
from journeyman.doors.cli.configured import forget
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.slack import slack as slack_command
from journeyman.doors.slack import Admission, People
from journeyman.settings.problems import SettingsError
from journeyman.settings.reading import read_settings
from journeyman.settings.schema import Slack
from journeyman.testing import ScriptedServer, call, say
from journeyman.toolkits.slack import METHODS
from tests.doors.slack.loopback import (
    ADA,
    APP_TOKEN,
    CHANNEL,
    EVE,
    GRACE,
    OTHER_TEAM,
    SECRET_CHANNEL,
    TEAM,
    TOKENS,
    loopback_slack,
)
from tests.doors.slack.test_slack_program import program
from tests.waiting import until

SHOP = """
from journeyman import Agent, tool

@tool(risk="irreversible")
def delete_order(order_id: str) -> str:
    "Delete an order. Use when the user wants an order gone."
    with open("deleted.txt", "a") as file:
        file.write(order_id + "\\n")
    return "deleted"

AGENT = Agent(name="clerk", instruction="Help with orders.", tools=[delete_order])
"""
FILE = f"""
version: 1
agent: shop.py:AGENT
doors:
  slack:
    app_token: ${{OUR_APP_TOKEN}}
    status: 500ms
    rate_limits: {{chat.update: 40/min}}
    workspaces:
      {TEAM}:
        bot_token: file:bot-token.txt
        channels: [{CHANNEL}]
        direct_messages: false
        approvers: [{GRACE}]
        permissions: {{"*": [orders:read], {ADA}: [orders:write]}}
"""


def written(tmp_path: Path, slack: str) -> Path:
    path = tmp_path / "journeyman.yaml"
    path.write_text("version: 1\ndoors:\n  slack:\n    " + slack + "\n")
    return path


@pytest.mark.parametrize(
    ("slack", "told"),
    [
        ("workspaces: {acme: {}}", "must be an id of Slack such as T0123ABCD"),
        ("workspaces: {T0AAAAAAA: {channels: ['#general']}}", "such as C0789IJKL, and no name"),
        ("workspaces: {T0AAAAAAA: {users: [ada]}}", "such as U0456EFGH, and no name"),
        ("workspaces: {T0AAAAAAA: {approvers: ['*']}}", "such as U0456EFGH"),
        ("workspaces: {T0AAAAAAA: {permissions: {everybody: [a:b]}}}", "or '*' for everybody"),
        ("workspaces: {T0AAAAAAA: {permissions: {'*': ['']}}}", "permission"),
        ("workspaces: {T0AAAAAAA: {bot_token: xoxb-123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx}}", "secret"),
        ("signing_secret: 0123456789abcdef0123456789abcdef", "is called a secret and is written out"),
        ("rate_limits: {chat.postMesage: 1/s}", "chat.postMessage"),
        ("rate_limits: {chat.update: often}", "20/min"),
        ("mode: rtm", "socket"),
        ("tokens: {}", "unknown key"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, slack: str, told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings(written(tmp_path, slack))
    problem = str(raised.value)
    assert told in problem
    assert "journeyman.yaml:4:" in problem
    assert "AbCdEfGhIjKlMnOpQrStUvWx" not in problem
    assert "0123456789abcdef" not in problem


def test_tokens_are_looked_up_by_the_one_command_that_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "app_token: ${NOBODY_HAS_SET_IT}")
    assert read_settings(path).settings.doors.slack.app_token == "${NOBODY_HAS_SET_IT}"
    monkeypatch.setenv("JOURNEYMAN_CONFIG", str(path))
    forget()
    try:
        with pytest.raises(
            WrongUsageError, match=r"journeyman.yaml:4:5.*doors.slack.app_token.*NOBODY_HAS_SET_IT is not"
        ):
            slack_command()
        monkeypatch.setenv("NOBODY_HAS_SET_IT", APP_TOKEN)
        forget()
        with pytest.raises(WrongUsageError, match=r"workspaces\.ID\.bot_token"):
            slack_command()
        assert "NOBODY_HAS_SET_IT" not in os.environ  # no tool finds it
    finally:
        forget()


def test_the_methods_that_can_be_limited_are_those_that_are_called() -> None:
    schema = Slack.model_json_schema()["properties"]["rate_limits"]
    assert set(schema["propertyNames"]["enum"]) == set(METHODS)


def test_limits_are_taken_to_the_letter_unless_bursts_are_asked_for(tmp_path: Path) -> None:
    rates = "rate_limits: {chat.update: 1/min, conversations.replies: {calls: 5, seconds: 60, burst: 3}}"
    limits = read_settings(written(tmp_path, rates)).settings.doors.slack.limits
    assert limits["chat.update"].capacity == 1
    assert limits["conversations.replies"].capacity == 15


async def test_the_toolkit_of_a_file_keeps_to_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "journeyman.yaml"
    path.write_text(
        f"version: 1\nstore: sqlite:///{tmp_path}/s.db\ntoolkits: [slack]\n"
        "doors: {slack: {rate_limits: {conversations.history: 1/h}}}\n"
    )
    async with loopback_slack() as slack:
        slack.write("hello")
        configuration = Configuration(path, environ={"SLACK_API_URL": slack.url})
        await configuration.database.open()
        try:
            fetch = configuration.library["fetch_slack_messages"]
            context = ToolContext(secrets=Secrets({"SLACK_BOT_TOKEN": TOKENS[TEAM]}))
            assert (await fetch(CHANNEL, context=context))["count"] == 1
            pace = slack_pace(configuration.database, configuration.settings.doors.slack.limits)
            assert await pace.room(TEAM, "conversations.history") > 3_000
        finally:
            await configuration.database.close()


def test_who_may_ask_and_where() -> None:
    rule = Admission(channels=frozenset({CHANNEL}), users=frozenset({ADA}), direct_messages=False)
    people = People(admitted={TEAM: rule})
    assert people.turned_away(TEAM, TEAM, ADA, CHANNEL) is None
    assert f"<#{CHANNEL}>" in (people.turned_away(TEAM, TEAM, ADA, SECRET_CHANNEL) or "")
    assert "direct messages" in (people.turned_away(TEAM, TEAM, ADA, "D0DIRECT01") or "")
    assert "Ask them to add you" in (people.turned_away(TEAM, TEAM, EVE, CHANNEL) or "")
    # Of the same id, but of another organisation.
    assert people.turned_away(TEAM, OTHER_TEAM, ADA, CHANNEL) is not None
    assert people.turned_away(OTHER_TEAM, OTHER_TEAM, EVE, CHANNEL) is None


@pytest.mark.slow
async def test_the_program_goes_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "journeyman.yaml").write_text(FILE)
    (tmp_path / "bot-token.txt").write_text(TOKENS[TEAM] + "\n")
    server = ScriptedServer([call("delete_order", order_id="W-17"), say("It is gone.")])
    async with loopback_slack() as slack, server:
        variables = {"OUR_APP_TOKEN": APP_TOKEN, "SLACK_API_URL": slack.url, "JOURNEYMAN_CONFIG": "journeyman.yaml"}
        async with program(tmp_path, "--model", f"{server.url}#any", **variables):
            await slack.deliver(slack.mention("delete W-17", channel="C0ELSEWHERE"))
            await until(lambda: bool(slack.ephemeral))
            assert f"Ask me in <#{CHANNEL}>" in slack.ephemeral[0]["text"]
            await slack.deliver(slack.mention("delete W-17"))
            await until(lambda: bool(slack.said(key="decide:")))
            question = dict(slack.said(key="decide:")[0])
            await slack.deliver(slack.press(question, "Approve", user=ADA), kind="interactive")
            await until(lambda: len(slack.ephemeral) == 2)
            assert f"Ask <@{GRACE}>" in slack.ephemeral[1]["text"]
            await slack.deliver(slack.press(question, "Approve"), kind="interactive")
            await until(lambda: bool(slack.said(key="end:")))
        assert slack.said()[-1]["blocks"][0]["text"]["text"] == "It is gone."
        assert (tmp_path / "deleted.txt").read_text() == "W-17\n"

"""``journeyman slack`` as a program: what it needs, and that kill -9 loses nothing."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.slack import slack as slack_command
from journeyman.testing import ScriptedServer, call, say
from tests.doors.slack.loopback import ADA, APP_TOKEN, GRACE, SECRET, TEAM, TOKENS, LoopbackSlack, loopback_slack
from tests.waiting import until

SHOP = """
import os, pathlib, signal
from journeyman import Agent, tool

@tool(risk="irreversible", isolation="thread")
def delete_order(order_id: str) -> str:
    "Delete an order. Use when the user wants an order gone."
    with open("deleted.txt", "a") as file:
        file.write(order_id + "\\n")
    os.kill(os.getpid(), signal.SIGKILL)

AGENT = Agent(name="clerk", instruction="Help with orders.", tools=[delete_order])
"""
DECIDING = f"version: 1\ndoors: {{slack: {{workspaces: {{{TEAM}: {{approvers: [{GRACE}]}}}}}}}}\n"


@asynccontextmanager
async def program(folder: Path, *arguments: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program in a folder, until it ends or is killed."""
    environment = {name: value for name, value in os.environ.items() if "SLACK" not in name}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "journeyman", "slack", *arguments),
        cwd=folder,
        env={**environment, **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def settings(slack: LoopbackSlack) -> dict[str, str]:
    return {
        "SLACK_APP_TOKEN": APP_TOKEN,
        "JOURNEYMAN_SECRET_SLACK_BOT_TOKEN": TOKENS[TEAM],
        "SLACK_API_URL": slack.url,
    }


@pytest.mark.slow
async def test_kill_9_with_a_pending_approval_and_in_the_middle_of_a_call_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    deleted = tmp_path / "deleted.txt"
    server = ScriptedServer([call("delete_order", order_id="W-17"), say("It is gone.")])
    async with loopback_slack() as slack, server:
        (tmp_path / "slack.yaml").write_text(DECIDING)
        given = ("--agent", "shop.py:AGENT", "--model", f"{server.url}#any", "--config", "slack.yaml")
        async with program(tmp_path, *given, **settings(slack)):
            await slack.deliver(slack.mention("delete W-17"))
            await until(lambda: bool(slack.said(key="decide:")))
        question = dict(slack.said(key="decide:")[0])
        async with program(tmp_path, *given, **settings(slack)) as second:
            await slack.deliver(slack.press(question, "Approve"), kind="interactive", wait=False)
            await second.wait()  # its tool has killed it
        async with program(tmp_path, *given, **settings(slack)):
            await until(lambda: bool(slack.said(key="settle:")))
            unknown = dict(slack.said(key="settle:")[0])
            await slack.deliver(slack.press(unknown, "It happened", user=ADA), kind="interactive")
            await until(lambda: bool(slack.ephemeral))
            assert "You may not decide this" in slack.ephemeral[0]["text"]
            await slack.deliver(slack.press(unknown, "It happened"), kind="interactive")
            await until(lambda: bool(slack.said(key="end:")))
        assert slack.said()[-1]["blocks"][0]["text"]["text"] == "It is gone."
        assert (
            len(slack.said(key="status:")) == len(slack.said(key="approval:")) == len(slack.said(key="unknown:")) == 1
        )
        assert deleted.read_text().splitlines() == ["W-17"]


@pytest.mark.slow
async def test_kill_9_of_the_process_that_shows_runs_leaves_them_to_the_other(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP.replace("os.kill(os.getpid(), signal.SIGKILL)", "return 'deleted'"))
    server = ScriptedServer([call("delete_order", order_id="W-17"), say("It is gone.")])
    async with loopback_slack() as slack, server:
        (tmp_path / "slack.yaml").write_text(DECIDING)
        given = ("--agent", "shop.py:AGENT", "--model", f"{server.url}#any", "--config", "slack.yaml")
        async with program(tmp_path, *given, **settings(slack)) as first:
            await until(lambda: slack.listeners == 1)
            async with program(tmp_path, *given, **settings(slack)):
                await until(lambda: slack.listeners == 2)
                await slack.deliver(slack.mention("delete W-17"))  # to the second
                await until(lambda: bool(slack.said(key="decide:")))
                first.kill()
                await first.wait()
                await slack.deliver(slack.press(dict(slack.said(key="decide:")[0]), "Approve"), kind="interactive")
                await until(lambda: bool(slack.said(key="end:")))
        assert slack.said()[-1]["blocks"][0]["text"]["text"] == "It is gone."
        assert len(slack.said(key="status:")) == len(slack.said(key="approval:")) == 1
        assert (tmp_path / "deleted.txt").read_text() == "W-17\n"


@pytest.mark.parametrize(
    ("variables", "options", "told"),
    [
        ({"SLACK_APP_TOKEN": ""}, {}, "Socket Mode needs SLACK_APP_TOKEN"),
        ({}, {"http": True}, "--http needs SLACK_SIGNING_SECRET"),
        ({"JOURNEYMAN_SECRET_SLACK_BOT_TOKEN": ""}, {}, "set JOURNEYMAN_SECRET_SLACK_BOT_TOKEN"),
        ({"JOURNEYMAN_SLACK_PEOPLE": "nowhere.json"}, {}, "the file of people 'nowhere.json' cannot be read"),
    ],
)
def test_what_is_missing_is_named_before_slack_is_asked(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], options: dict[str, Any], told: str
) -> None:
    given = {"SLACK_APP_TOKEN": APP_TOKEN, "JOURNEYMAN_SECRET_SLACK_BOT_TOKEN": TOKENS[TEAM], **variables}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(WrongUsageError, match=re.escape(told)):
        slack_command(**options)
    assert "SLACK_APP_TOKEN" not in os.environ  # no tool finds it


@pytest.mark.slow
async def test_over_http_it_listens_and_ends_in_order(tmp_path: Path) -> None:
    async with loopback_slack() as slack, ScriptedServer([say("Hello.")]) as server:
        variables = settings(slack) | {"SLACK_SIGNING_SECRET": SECRET}
        (tmp_path / "slack.yaml").write_text("version: 1\ndoors: {slack: {mode: http, port: 0}}\n")
        given = ("--config", "slack.yaml", "--model", f"{server.url}#any")
        async with program(tmp_path, *given, **variables) as process:
            assert process.stderr is not None
            line = (await process.stderr.readline()).decode()
            assert f"in Slack as {TEAM}" in line
            url = next(word for word in line.split() if word.startswith("http://"))
            assert await slack.request(url, slack.mention("hello"), secret="another") == 401
            assert await slack.request(url, slack.mention("hello")) == 200
            await until(lambda: bool(slack.said(key="end:")))
            process.terminate()
            _, errors = await process.communicate()
            assert process.returncode == 0
            assert b"Traceback" not in errors
            assert TOKENS[TEAM].encode() not in errors

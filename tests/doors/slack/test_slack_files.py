"""Files that people share in Slack: a model gets them, and nothing but Slack gets the token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.content import MEDIUM_BYTES
from journeyman.doors.slack.threads import _is_slack
from journeyman.models import OpenAIModel
from journeyman.testing import ScriptedServer, say
from tests.doors.slack.loopback import CHANNEL, TEAM, TOKENS, LoopbackSlack, loopback_slack
from tests.doors.slack.test_slack_door import answers, listening
from tests.pictures import png, seen, told

RED = png(200)


@pytest.fixture
async def slack() -> AsyncIterator[LoopbackSlack]:
    async with loopback_slack() as found:
        found.files = {"photo.png": RED, "huge.bin": b"x" * (MEDIUM_BYTES + 1), "page.png": b"<html>no picture</html>"}
        yield found


async def asked(slack: LoopbackSlack, tmp_path: Path, text: str, files: list[dict[str, Any]]) -> dict[str, Any]:
    """What a model that can see was asked when somebody wrote this."""
    async with ScriptedServer([say("A dot.")]) as server:
        async with listening(slack, tmp_path, OpenAIModel("gpt-4o", base_url=server.url)):
            mention = slack.mention(text)
            mention["event"]["files"] = files
            await slack.deliver(mention)
            assert await answers(slack) == ["A dot."]
        [body] = server.requests
        return body


async def test_a_model_gets_the_picture_that_somebody_shares(slack: LoopbackSlack, tmp_path: Path) -> None:
    body = await asked(slack, tmp_path, "What is on it?", slack.share("photo.png"))
    assert seen(body) == [RED]
    assert body["messages"][-1]["content"][0]["text"] == "What is on it?"
    assert slack.fetched == [("photo.png", TOKENS[TEAM])]


async def test_a_picture_without_words_is_enough(slack: LoopbackSlack, tmp_path: Path) -> None:
    body = await asked(slack, tmp_path, "", slack.share("photo.png"))
    assert seen(body) == [RED]


async def test_what_cannot_be_read_is_said_and_the_rest_is_answered(slack: LoopbackSlack, tmp_path: Path) -> None:
    files = slack.share("photo.png", "huge.bin", "page.png", "elsewhere")
    files.append(
        {"name": "secret.png", "mimetype": "image/png", "url_private": "https://files.slack.com.evil.example/x"}
    )
    files.append({"name": "hidden.png", "mode": "hidden_by_limit"})
    body = await asked(slack, tmp_path, "What is on it?", files)
    assert seen(body) == [RED]
    assert "[file page.png, application/octet-stream, 23 bytes: this model cannot read it]" in told(body)
    [warning] = [said for said in slack.messages[CHANNEL] if "could not read" in said.get("text", "")]
    for words in (
        "huge.bin: must have at most",
        "elsewhere: Slack does not give it to me (302)",
        "secret.png: it is not kept at Slack",
        "hidden.png: Slack does not say where",
    ):
        assert words in warning["text"]
    assert [name for name, _ in slack.fetched] == ["photo.png", "huge.bin", "page.png", "elsewhere"]


@pytest.mark.parametrize(
    ("url", "slacks"),
    [
        ("https://files.slack.com/files-pri/T1-F1/a.png", True),
        ("https://acme.slack.com/a.png", True),
        ("http://files.slack.com/a.png", False),
        ("https://slack.com@evil.example/a.png", False),
        ("https://evil.example/slack.com", False),
        ("https://files.slack.com.evil.example/a.png", False),
        ("https://notslack.com/a.png", False),
        ("https://files.slack.com:8443/a.png", False),
        ("file:///etc/passwd", False),
        ("https://[broken", False),
        ("", False),
    ],
)
def test_only_slacks_own_addresses_are_asked(url: str, slacks: bool) -> None:
    assert _is_slack(url, "https://slack.com/api/") is slacks

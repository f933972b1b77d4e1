"""Slack's limits: its tiers, and the pauses it asks for, over all processes on one store."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError

from benchmarks.rate_limits import most_over
from journeyman import RateLimit
from journeyman.app.service import slack_pace
from journeyman.core.calls import Secrets, ToolContext
from journeyman.core.errors import StoreError, ToolError
from journeyman.core.policy import Principal
from journeyman.doors.slack.client import SlackClient, wanted_pause
from journeyman.doors.slack.people import Workspace
from journeyman.doors.slack.posts import Post, status_post
from journeyman.doors.slack.threads import Place, Thread
from journeyman.execution.checks import LocalLimiter
from journeyman.stores.store import open_store
from journeyman.testing import FakeClock
from journeyman.toolkits.slack import METHODS, Pace, SlackTools
from tests.doors.slack.loopback import ADA, BOT, CHANNEL, TEAM, TOKENS, LoopbackSlack, loopback_slack, serving


@pytest.fixture
async def slack() -> AsyncIterator[LoopbackSlack]:
    async with loopback_slack() as found:
        yield found


def paced(slack: LoopbackSlack, clock: FakeClock, **options: Any) -> SlackClient:
    client = SlackClient(TOKENS[TEAM], base_url=slack.url, pace=Pace(LocalLimiter(clock=clock), clock=clock, **options))
    client.team = TEAM
    return client


@pytest.mark.parametrize(("header", "seconds"), [("1.5", 1.5), ("0.25", 0.25), ("soon", 30.0), ("nan", 30.0)])
async def test_a_pause_is_as_long_as_slack_wants_it_in_fractions_of_a_second(
    slack: LoopbackSlack, header: str, seconds: float
) -> None:
    slack.limited["chat.postMessage"], slack.retry_after = 1, header
    clock = FakeClock()
    begun = clock.monotonic()
    await paced(slack, clock).chat_postMessage(channel=CHANNEL, text="hello")
    assert clock.monotonic() - begun == pytest.approx(seconds, abs=0.01)


async def test_retry_after_is_waited_out_to_the_last_digit(slack: LoopbackSlack) -> None:
    slack.limited["chat.postMessage"], slack.retry_after = 2, "12"
    clock = FakeClock()
    await paced(slack, clock).chat_postMessage(channel=CHANNEL, text="hello")
    assert clock.monotonic() == pytest.approx(24)
    assert [message["text"] for message in slack.messages[CHANNEL]] == ["hello"]


async def test_a_pause_holds_for_everybody_who_calls_the_method_and_for_no_other(slack: LoopbackSlack) -> None:
    slack.limited["chat.update"], slack.retry_after = 1, "30"
    clock = FakeClock()
    client = paced(slack, clock)
    told = await client.chat_postMessage(channel=CHANNEL, text="hello")
    await client.chat_update(channel=CHANNEL, ts=told["ts"], text="hello!")
    assert clock.monotonic() == pytest.approx(30)
    assert client.pace is not None
    await client.pace.pause(TEAM, "chat.update", 60)
    given = {"channel": CHANNEL, "ts": told["ts"], "text": "never"}
    assert await client.call_if_there_is_room("chat.update", given) is None
    await client.chat_postMessage(channel=CHANNEL, text="of another method")
    assert clock.monotonic() == pytest.approx(30)


async def test_it_is_given_up_when_slack_never_takes_it(slack: LoopbackSlack) -> None:
    slack.limited["chat.postMessage"], slack.retry_after = 100, "1"
    with pytest.raises(SlackApiError) as raised:
        await paced(slack, FakeClock()).chat_postMessage(channel=CHANNEL, text="hello")
    assert wanted_pause(raised.value) == 1
    assert slack.counted("chat.postMessage") == 6


async def test_a_message_is_not_sent_again_when_nobody_knows_whether_it_arrived(slack: LoopbackSlack) -> None:
    class Deaf(LoopbackSlack):
        async def handle(self, request: Any) -> Any:
            answer = await super().handle(request)
            if self.counted("chat.postMessage") + self.counted("conversations.replies") in (1, 2):
                request.transport.close()  # after it was written
            return answer

    deaf = Deaf()
    async with serving(deaf):
        client = paced(deaf, FakeClock())
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.chat_postMessage(channel=CHANNEL, text="hello")
        await client.conversations_replies(channel=CHANNEL, ts=deaf.messages[CHANNEL][0]["ts"])
    assert deaf.counted("chat.postMessage") == len(deaf.messages[CHANNEL]) == 1
    assert deaf.counted("conversations.replies") == 2


async def test_methods_keep_to_their_tiers_and_posts_to_one_a_second_in_each_channel() -> None:
    clock = FakeClock()
    pace = Pace(LocalLimiter(clock=clock), clock=clock)
    for method, calls in (("conversations.history", 50), ("conversations.members", 100), ("apps.connections.open", 1)):
        for _ in range(calls):
            assert await pace.room(TEAM, method) == 0
        assert await pace.room(TEAM, method) == pytest.approx(60)
        assert await pace.room("T0OTHER", method) == 0  # each workspace has its own
    begun = clock.monotonic()
    for _ in range(15):
        await pace.turn(TEAM, "chat.postMessage", CHANNEL)
    assert clock.monotonic() - begun == pytest.approx(10)
    assert await pace.room(TEAM, "chat.postMessage", "C0OTHER001") == 0


async def test_where_there_is_little_room_answers_go_before_what_is_said_meanwhile(slack: LoopbackSlack) -> None:
    clock = FakeClock()
    client = paced(slack, clock, limits={"chat.postMessage": RateLimit(calls=1, seconds=1)})
    threads = [
        Thread(Workspace(TEAM, BOT[TEAM], "", client), Place(TEAM, CHANNEL, ADA, ts, ts)) for ts in ("1.1", "1.2")
    ]
    assert await threads[0].put(status_post("run_0", ["…"]), if_room=True)
    assert not await threads[1].put(status_post("run_1", ["…"]), if_room=True)
    assert not threads[1].knows("status:run_1")
    for number, thread in enumerate(threads):
        await thread.put(Post(f"answer:{number}", "done", [{"type": "divider", "block_id": f"answer:{number}"}]))
    assert clock.monotonic() == pytest.approx(2)
    assert [message["text"] for message in slack.messages[CHANNEL]] == ["…", "done", "done"]


async def test_a_store_that_is_away_holds_up_no_message() -> None:
    class Away:
        async def take(self, *_: Any) -> float:
            raise StoreError("away")

        async def pause(self, *_: Any) -> None:
            raise StoreError("away")

    pace = Pace(Away())
    await pace.turn(TEAM, "chat.postMessage", CHANNEL)
    await pace.pause(TEAM, "chat.postMessage", 5)


async def test_tools_share_the_pause_of_a_method(slack: LoopbackSlack) -> None:
    clock = FakeClock()
    pace = Pace(LocalLimiter(clock=clock), clock=clock)
    tools = SlackTools(base_url=slack.url, pace=pace)
    context = ToolContext(
        principal=Principal(f"slack:{TEAM}:{ADA}"), secrets=Secrets({f"SLACK_BOT_TOKEN_{TEAM}": TOKENS[TEAM]})
    )
    slack.write("hello")
    slack.limited["conversations.history"], slack.retry_after = 1, "45"
    with pytest.raises(ToolError) as raised:
        await tools.fetch_slack_messages(CHANNEL, context=context)
    assert raised.value.info.code == "RATE_LIMITED"
    assert raised.value.info.retry_after == 45
    assert await pace.room(TEAM, "conversations.history") == pytest.approx(45)
    found = await tools.summarize_messages(channel=CHANNEL, context=context)  # another tool, the same method
    assert clock.monotonic() >= 45
    assert found["messages"] == 1


async def test_a_tool_that_would_wait_too_long_says_so_instead(
    slack: LoopbackSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journeyman.toolkits.slack.client.LONGEST_WAIT", 0.01)
    clock = FakeClock(manual=True)
    pace = Pace(LocalLimiter(clock=clock), clock=clock)
    tools = SlackTools(base_url=slack.url, pace=pace)
    await pace.pause(TEAM, "conversations.history", 300)
    slack.write("hello")
    with pytest.raises(ToolError, match="no more questions") as raised:
        await tools.fetch_slack_messages(
            CHANNEL, context=ToolContext(secrets=Secrets({"SLACK_BOT_TOKEN": TOKENS[TEAM]}))
        )
    assert raised.value.info.retry_after == 300
    assert slack.counted("conversations.history") == 0


# --- two processes

LIMIT = RateLimit(calls=4, seconds=1)
SECONDS = 4.0


def keep_asking(store: str, url: str) -> None:
    """One process that reads a thread as often as it may."""

    async def ask() -> None:
        database = open_store(store)
        await database.open()
        try:
            client = SlackClient(
                TOKENS[TEAM], base_url=url, pace=slack_pace(database, {"conversations.replies": LIMIT})
            )
            client.team = TEAM
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                await client.conversations_replies(channel=CHANNEL, ts="1.1")
        finally:
            await database.close()

    asyncio.run(ask())


class Watchful(LoopbackSlack):
    """Notes when it is asked, and wants a pause once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.refused: float | None = None
        self.retry_after = "2"

    async def handle(self, request: Any) -> Any:
        self.asked.append(time.time())
        if len(self.asked) == 10:
            self.limited["conversations.replies"], self.refused = 1, self.asked[-1]
        return await super().handle(request)


@pytest.mark.slow
async def test_two_processes_share_limits_and_pauses(tmp_path: Path) -> None:
    slack, store = Watchful(), f"sqlite:///{tmp_path / 'store.db'}"
    database = open_store(store)
    await database.open()
    await database.close()
    context = multiprocessing.get_context("spawn")
    async with serving(slack):
        processes = [context.Process(target=keep_asking, args=(store, slack.url)) for _ in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            await asyncio.to_thread(process.join)
        assert [process.exitcode for process in processes] == [0, 0]
    assert len(slack.asked) > 10
    assert slack.refused is not None
    # As in the benchmark of limits: what is seen is when a call arrives, and two that were let through one after
    # another may arrive together.
    assert most_over(slack.asked, calls=LIMIT.calls, seconds=LIMIT.seconds) <= 1 + LIMIT.calls
    # A process hears of the other's pause within a second; one call of each may be under way.
    resting = [at for at in slack.asked if slack.refused + 1.0 < at < slack.refused + 2.0]
    assert len(resting) <= 2


def test_every_limit_is_one_of_slacks() -> None:
    assert {limit.calls for name, limit in METHODS.items() if name != "chat.postMessage"} <= {1, 20, 50, 100}

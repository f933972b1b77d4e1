"""Several processes for one app, on one store: one of them writes, and nothing is written twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from journeyman.app.journeyman import Journeyman
from journeyman.doors.slack import SlackDoor, over_http, over_socket
from journeyman.doors.slack.posts import status_post
from journeyman.doors.slack.showing import Showing
from journeyman.doors.slack.threads import NotOursError, Place, Thread
from tests.app.test_clocks import SkewedClock
from tests.doors.slack.loopback import (
    ADA,
    APP_TOKEN,
    CHANNEL,
    TEAM,
    LoopbackSlack,
    loopback_slack,
)
from tests.doors.slack.test_slack_door import DELETED, answers, listening, nothing_deleted, opened
from tests.doors.slack.test_slack_mischief import Echo, deletes, question
from tests.waiting import until

__all__ = ["nothing_deleted"]


@pytest.fixture
async def slack() -> AsyncIterator[LoopbackSlack]:
    async with loopback_slack() as found:
        yield found


@asynccontextmanager
async def several(
    slack: LoopbackSlack, tmp_path: Path, model: Any, *, store: str | None = None
) -> AsyncIterator[list[tuple[SlackDoor, int]]]:
    """Two doors on one store, each with a service of its own and an address."""
    async with AsyncExitStack() as stack:
        found = []
        for _ in range(2):
            door = await stack.enter_async_context(opened(slack, tmp_path, model, store=store))
            door._showing._look_seconds = 0.05
            found.append((door, await stack.enter_async_context(over_http(door, host="127.0.0.1", port=0))))
        yield found


async def both_told(slack: LoopbackSlack, tmp_path: Path, store: str | None = None) -> None:
    async with several(slack, tmp_path, Echo(), store=store) as doors:
        payloads = [slack.mention(f"hello {number}") for number in range(8)]
        statuses = await asyncio.gather(
            *(
                slack.request(f"http://127.0.0.1:{port}/slack/events", payload)
                for payload in payloads
                for _, port in doors
            )
        )
        assert set(statuses) == {200}
        assert sorted(await answers(slack, 8)) == [f"re hello {number}" for number in range(8)]
        await until(lambda: all("Completed" in message["text"] for message in slack.said(key="status:")))
        assert len(slack.said(key="status:")) == len(slack.said(key="end:")) == 8
        assert len(await doors[0][0]._service.store.runs.list()) == 8


async def test_two_processes_that_are_both_told_of_everything_write_nothing_twice(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    await both_told(slack, tmp_path)


@pytest.mark.slow
async def test_nor_do_they_on_postgresql(slack: LoopbackSlack, tmp_path: Path, postgres_url: str) -> None:
    await both_told(slack, tmp_path, postgres_url)


@pytest.mark.slow
async def test_a_button_works_at_a_process_that_does_not_show_the_run(slack: LoopbackSlack, tmp_path: Path) -> None:
    async with several(slack, tmp_path, deletes()) as doors:
        first, second = (f"http://127.0.0.1:{port}/slack/events" for _, port in doors)
        assert await slack.request(second, slack.mention("delete W-17")) == 200
        await until(lambda: bool(slack.said(key="decide:")))
        pressed = slack.press(dict(slack.said(key="decide:")[0]), "Approve")
        for url in (second, first):
            assert await slack.request(url, pressed, form=True) == 200
        assert await answers(slack) == ["Deleted."]
        assert DELETED == ["W-17"]
        assert len(slack.said(key="status:")) == len(slack.said(key="approval:")) == 1


async def test_when_the_process_that_shows_runs_goes_another_does(slack: LoopbackSlack, tmp_path: Path) -> None:
    model = deletes()
    async with opened(slack, tmp_path, model) as second:
        second._showing._look_seconds = 0.05
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(opened(slack, tmp_path, model))
            await stack.enter_async_context(over_http(first, host="127.0.0.1", port=0))
            async with over_socket(second, APP_TOKEN):
                assert second._showing._lease is None
                asked = await question(slack)  # taken by the second, shown by the first
                await stack.aclose()
                await until(lambda: second._showing._lease is not None)
                await slack.deliver(slack.press(asked, "Approve"), kind="interactive")
                assert await answers(slack) == ["Deleted."]
        assert len(slack.said(key="status:")) == len(slack.said(key="approval:")) == 1


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
@pytest.mark.parametrize("ahead", [25.0, -25.0, 3_600.0])
async def test_however_wrong_its_clock_is_one_process_leads(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, ahead: float
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}" if database == "sqlite" else request.getfixturevalue("postgres_url")
    async with Journeyman(store=url) as right, Journeyman(store=url, clock=SkewedClock(ahead)) as wrong:
        first, second = Showing(right, {}, seconds=1.0), Showing(wrong, {}, seconds=1.0)
        for leader, other in ((first, second), (second, first)):
            await leader.open()
            await other.open()
            try:
                for showing in (other, leader, other):
                    await showing._lead()
                    assert (leader._holds(), other._holds()) == (True, False)
            finally:
                await other.close()
                await leader.close()


async def test_a_process_that_has_stood_still_writes_nothing_until_it_has_asked_again(
    slack: LoopbackSlack, tmp_path: Path
) -> None:
    async with listening(slack, tmp_path, deletes()) as service:
        await question(slack)
        row = (await service.store.runs.list())[0]
    async with opened(slack, tmp_path, deletes()) as door:
        await door.open()
        try:
            showing = door._showing
            assert showing._lease is not None
            assert showing._holds()
            showing._asked = (showing._asked[0] - 60, showing._asked[1])
            thread = Thread(door._workspaces[TEAM], Place(TEAM, CHANNEL, ADA, "1.1", "1.1"), is_ours=showing._holds)
            with pytest.raises(NotOursError):
                await thread.put(status_post(row.id, ["Working on it"]))
            await showing._lead()
            assert showing._holds()
        finally:
            await door.close()

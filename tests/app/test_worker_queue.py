"""What a worker says when its queue fails it: one line that tells what happened."""

from __future__ import annotations

import asyncio
import gc

import psycopg
import pytest

from journeyman import Agent, ToolLibrary, tool
from journeyman.app.journeyman import Journeyman
from journeyman.app.worker import JobQueue, work
from journeyman.core.errors import StoreError
from journeyman.testing import ScriptedModel, call, say
from tests.waiting import WAIT_SECONDS, until

pytestmark = pytest.mark.slow


async def test_a_job_that_was_dropped_meanwhile_costs_one_line(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool(read_only=True)
    def drop() -> str:
        """Take the job away, as another worker does that believes this one dead."""
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DELETE FROM procrastinate_jobs")
        return "dropped"

    agent = Agent(name="hand", instruction="Work.", tools=[drop])
    model, stop, ready = ScriptedModel([call("drop"), say("Done.")]), asyncio.Event(), asyncio.Event()
    async with asyncio.timeout(WAIT_SECONDS):
        async with (
            Journeyman(library=ToolLibrary([drop]), store=postgres_url, model=model) as app,
            Journeyman(library=ToolLibrary([drop]), store=postgres_url, model=model, workers=True) as client,
        ):
            working = asyncio.create_task(work(app, postgres_url, stop=stop, ready=ready.set))
            await ready.wait()
            handle = await client.start(agent, "Do it")
            assert (await handle.result()).answer == "Done."

            def told() -> list[str]:
                gc.collect()  # an error that nobody has asked for is told when its task is gone
                names = ("journeyman.worker", "asyncio")
                return [record.getMessage() for record in caplog.records if record.name in names]

            await until(lambda: bool(told()))
            [line] = told()
            stop.set()
            await working
    assert "could not be noted" in line
    assert "Job was not found" in line
    assert "\n" not in line


async def test_a_queue_that_is_away_says_why(postgres_url: str) -> None:
    queue = JobQueue(postgres_url)
    await queue.open()
    try:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("ALTER TABLE procrastinate_jobs RENAME TO procrastinate_jobs_elsewhere")
        with pytest.raises(StoreError) as raised:
            await queue.put("run_1")
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("ALTER TABLE procrastinate_jobs_elsewhere RENAME TO procrastinate_jobs")
        await queue.close()
    assert 'the job queue cannot be reached: relation "procrastinate_jobs" does not exist' in str(raised.value)
    assert "\n" not in str(raised.value)


async def test_a_run_that_is_kept_is_begun_though_the_queue_fails(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told of a fault, a client would send its message again, and it would be carried out twice."""

    @tool(read_only=True)
    def look() -> str:
        """Look."""
        return "seen"

    async def away(*_: object, **__: object) -> None:
        raise StoreError("the job queue cannot be reached")

    agent, library = Agent(name="hand", instruction="Work.", tools=[look]), ToolLibrary([look])
    model, stop = ScriptedModel([call("look"), say("Done.")]), asyncio.Event()
    async with (
        asyncio.timeout(WAIT_SECONDS),
        Journeyman(library=library, store=postgres_url, model=model, poll_seconds=0.1) as app,
        Journeyman(library=library, store=postgres_url, model=model, workers=True) as client,
    ):
        with monkeypatch.context() as patched:
            patched.setattr(JobQueue, "put", away)
            handle = await client.start(agent, "Do it")
        working = asyncio.create_task(work(app, postgres_url, stop=stop))
        assert (await handle.result()).answer == "Done."
        stop.set()
        await working


async def test_who_shows_a_run_is_told_when_it_goes_on_elsewhere(postgres_url: str) -> None:
    queue, heard = JobQueue(postgres_url), asyncio.Queue[str]()
    async with Journeyman(store=postgres_url) as app:
        listening = asyncio.create_task(queue.listen(heard.put_nowait))
        await until(lambda: queue.listening)
        await app.store.signals.put([], changed=["run_1"])
        assert await asyncio.wait_for(heard.get(), WAIT_SECONDS) == "run_1"
        listening.cancel()
        await asyncio.wait((listening,))
    assert not queue.listening

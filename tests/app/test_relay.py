"""A run that one process works on, as another shows it: its text as it grows, its progress, its place in the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from journeyman import Agent, Principal, RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.app.worker import work
from journeyman.core.errors import StoreError
from journeyman.core.events import CallProgress, Event, MessageReceived, RunFinished, RunQueued, TextDelta
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.testing import ScriptedModel, call, say
from tests.app.conftest import Opens
from tests.waiting import WAIT_SECONDS, until


class Writing:
    """A model that writes two words and then waits to be told to go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.name = "writing"

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        for piece in ("Hello ", "there"):
            if deltas is not None:
                deltas.text(piece)
        await self.go_on.wait()
        return say("Hello there, Ada.")


class Watched(ScriptedModel):
    """Notes whether it was asked to stream."""

    deltas: list[Deltas | None]

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        self.deltas = [*getattr(self, "deltas", ()), deltas]
        return await super().respond(request, deltas)


class Seen:
    """The events of a run, as they are seen."""

    def __init__(self, handle: Handle) -> None:
        self.events: list[Event] = []
        self._task = asyncio.create_task(self._look(handle))

    async def _look(self, handle: Handle) -> None:
        async for event in handle.events():
            self.events.append(event)

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    async def end(self) -> list[Event]:
        async with asyncio.timeout(WAIT_SECONDS):
            await self._task
        return self.events


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, url: str) -> str:
    return url if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


async def test_another_process_sees_the_text_as_it_is_written(place: str, opens: Opens, agent: Agent) -> None:
    model = Writing()
    async with opens(ScriptedModel([]), store=place) as shows, opens(model, store=place) as works:
        works.runner.streams_text = True
        handle = await works.start(agent, "Greet me")
        seen = Seen(await shows.handle(handle.run_id))
        await until(lambda: seen.text == "Hello there")
        assert not any(isinstance(event, MessageReceived) for event in seen.events)
        late = Seen(await shows.handle(handle.run_id))
        await until(lambda: late.text == "Hello there")
        model.go_on.set()
        for one in (seen, late):
            events = await one.end()
            assert isinstance(events[-1], RunFinished)
            assert one.text == "Hello there"
            # In its place: after the facts before it, and before the message that carries it.
            kinds = [event.type for event in events if event.type in ("run_started", "text_delta", "message")]
            assert kinds == ["run_started", "text_delta", "message"]
        numbers = [event.seq for event in seen.events if event.seq is not None]
        assert numbers == list(range(1, len(numbers) + 1))


async def test_a_model_streams_once_somebody_elsewhere_reads(opens: Opens) -> None:
    """Also where it did not when the run began: from the next step on."""
    entered, go_on = asyncio.Event(), asyncio.Event()

    @tool(risk=RiskLevel.REVERSIBLE)
    async def ponder(context: ToolContext) -> str:
        """Think about it. Use when it is hard."""
        context.progress("half way", 0.5)
        entered.set()
        await go_on.wait()
        return "thought"

    library = ToolLibrary([ponder])
    agent = Agent(name="thinker", instruction="Think.", tools=library.specifications())
    model = Watched([call("ponder"), say("Forty-two.")])
    async with opens(model, library=library) as works, opens(ScriptedModel([]), library=library) as shows:
        handle = await works.start(agent, "Think")
        await entered.wait()
        seen = Seen(await shows.handle(handle.run_id))
        await until(lambda: any(isinstance(event, CallProgress) for event in seen.events))
        go_on.set()
        await seen.end()
    [_, second] = model.deltas
    assert second is not None


async def test_what_nobody_elsewhere_reads_is_not_sent(opens: Opens, agent: Agent) -> None:
    model = Writing()
    async with opens(model) as app:
        seen = Seen(await app.start(agent, "Greet me"))
        await until(lambda: seen.text == "Hello there")
        assert await app.store.signals.readers() == set()
        model.go_on.set()
        await seen.end()


@pytest.mark.slow
async def test_the_text_of_a_worker_reaches_whoever_asked(
    postgres_url: str, agent: Agent, library: ToolLibrary
) -> None:
    model = Writing()
    async with (
        Journeyman(library=library, store=postgres_url, model=ScriptedModel([]), workers=True) as asks,
        worker(postgres_url, library=library, model=model),
    ):
        seen = Seen(await asks.start(agent, "Greet me"))
        await until(lambda: seen.text == "Hello there")
        model.go_on.set()
        await seen.end()


@asynccontextmanager
async def worker(url: str, **parts: Any) -> AsyncIterator[None]:
    stop, ready = asyncio.Event(), asyncio.Event()
    async with Journeyman(store=url, poll_seconds=0.05, **parts) as app:
        working = asyncio.create_task(work(app, url, concurrency=2, stop=stop, ready=ready.set))
        await ready.wait()
        try:
            yield
        finally:
            stop.set()
            await working


# --- the place in the queue


async def test_a_run_that_waits_says_its_place(opens: Opens, agent: Agent) -> None:
    model = Writing()
    async with opens(model, concurrency=1) as app:
        first = await app.start(agent, "One")
        await until(lambda: app.runner.at_work(first.run_id))
        waiting = [await app.start(agent, f"{number}", principal=Principal("ada")) for number in range(2)]
        other = await app.start(agent, "Bob's", principal=Principal("bob"))
        last = Seen(waiting[1])
        await until(lambda: [event.position for event in last.events if isinstance(event, RunQueued)] == [3])
        assert [await handle.position() for handle in (first, waiting[0], other)] == [None, 1, 2]
        model.go_on.set()
        events = await last.end()
        places = [event.position for event in events if isinstance(event, RunQueued)]
        assert places == sorted(places, reverse=True)
        assert all(event.seq is None for event in events if isinstance(event, RunQueued))


# --- a database that is away for a while


async def test_a_database_that_is_away_ends_no_stream(
    opens: Opens, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Writing()
    async with opens(model) as works, opens(ScriptedModel([])) as shows:
        handle = await works.start(agent, "Greet me")
        seen = Seen(await shows.handle(handle.run_id))
        await until(lambda: bool(seen.events))
        away, tried = True, 0
        read = shows.store.runs.get

        async def get(run_id: str) -> Any:
            nonlocal tried
            tried += 1
            if away:
                raise StoreError("the database is away")
            return await read(run_id)

        monkeypatch.setattr(shows.store.runs, "get", get)
        await until(lambda: tried >= 2)
        away = False
        model.go_on.set()
        events = await seen.end()
        assert isinstance(events[-1], RunFinished)
        numbers = [event.seq for event in events if event.seq is not None]
        assert numbers == list(range(1, len(numbers) + 1))

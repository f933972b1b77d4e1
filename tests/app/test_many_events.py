"""A run of a hundred thousand events: read, shown, streamed and taken up without holding up anybody else."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from journeyman import Agent
from journeyman.agent.ending import MANY_STEPS, response_of
from journeyman.agent.state import MANY_FACTS, RunState
from journeyman.app.journeyman import Journeyman
from journeyman.core.events import CallsPlanned, CallStarted, Event, Fact, MessageReceived, RunStarted, StepFinished
from journeyman.core.runs import RunStatus, TaskInput, ToolCall
from journeyman.core.storing import RunOrder
from journeyman.stores.runs import FACTS_AT_ONCE
from journeyman.testing import ScriptedModel, say
from tests.app.conftest import Opens
from tests.stores.samples import numbered, record
from tests.waiting import until

STEPS = 20_000
"""Of five facts each."""
RUN = "long"


async def fill(app: Journeyman, agent: Agent, *, steps: int = STEPS) -> int:
    """A run whose process died after so many steps; returns how many facts it has."""
    task = TaskInput(description="Go on and on", max_iterations=steps + 10)
    await app.store.runs.create(RunOrder(run_id=RUN, agent=agent.snapshot, task=task, created_at=1.0))
    epoch = await app.store.runs.claim(RUN, owner="gone", lease_seconds=-1)
    assert epoch == 1
    journal = app.store.runs.journal(RUN, epoch=epoch)
    await journal.append(RUN, numbered(RUN, RunStarted(agent=agent.snapshot, task=task)))
    seq = 1
    for start in range(1, steps + 1, 200):
        facts: list[Fact] = []
        for step in range(start, start + 200):
            call = ToolCall(id=f"call-{RUN}.{step}", tool_name="look", arguments={"order_id": f"W-{step}"})
            facts += [
                MessageReceived(iteration=step, calls=(call,)),
                CallsPlanned(iteration=step, calls=(call,)),
                CallStarted(
                    call_id=call.id,
                    execution_id=f"{RUN}.{step}",
                    tool_name="look",
                    attempt=1,
                    arguments=call.arguments,
                ),
                record(f"{RUN}.{step}", tool="look", result="open"),
                StepFinished(iteration=step, thought="Looks.", duration_ms=1.0),
            ]
        await journal.append(RUN, numbered(RUN, *facts, first=seq + 1), sync=True)
        seq += len(facts)
    return seq


@asynccontextmanager
async def watched(what: str, pauses: dict[str, float]) -> AsyncIterator[None]:
    """Notes for how long the event loop was held up at worst: in time of its thread, which no other process takes."""
    stop, worst = asyncio.Event(), 0.0

    async def tick() -> None:
        nonlocal worst
        last = time.thread_time()
        while not stop.is_set():
            await asyncio.sleep(0.001)
            now = time.thread_time()
            worst, last = max(worst, now - last), now

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    yield
    stop.set()
    await ticking
    pauses[what] = worst


class Turns:
    """Counts what a run takes in during one turn of the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self._now = 0
        self._running = True
        apply = RunState.apply

        def counted(state: RunState, event: Event) -> None:
            self._now += 1
            self.most = max(self.most, self._now)
            apply(state, event)

        monkeypatch.setattr(RunState, "apply", counted)
        self._turn()

    def _turn(self) -> None:
        self._now = 0
        if self._running:
            asyncio.get_running_loop().call_soon(self._turn)

    def stop(self) -> None:
        self._running = False


async def test_a_long_run_is_taken_in_by_pages_and_kept_out_of_garbage_collections(
    opens: Opens, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What holds up everybody is counted, not timed: facts in a turn of the loop, what a collection goes through."""
    few = 2 * MANY_FACTS // 5
    async with opens(ScriptedModel([])) as app:
        count = await fill(app, agent, steps=few)
        gc.unfreeze()  # Python 3.12 begins with some hundreds
        gc.collect()
        before, turns = len(gc.get_objects()), Turns(monkeypatch)
        state, seq = await app.runner.shared.fold(RUN)
        turns.stop()
        assert (seq, len(state.steps)) == (count, few)
        assert turns.most <= FACTS_AT_ONCE
        assert gc.get_freeze_count() > 0
        assert len(gc.get_objects()) < before
        made = await response_of(RUN, state, status=RunStatus.RUNNING)
        assert made.total_iterations == few > MANY_STEPS
        del state
        await until(lambda: gc.get_freeze_count() == 0)  # others' garbage is looked for again


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_hundred_thousand_events_hold_up_nobody(
    opens: Opens, agent: Agent, capsys: pytest.CaptureFixture[str]
) -> None:
    pauses: dict[str, float] = {}
    async with opens(ScriptedModel([lambda request: say("Done.")] * (STEPS + 2))) as app:
        count = await fill(app, agent)
        handle = await app.handle(RUN)
        async with watched("so far", pauses):
            response = await handle.so_far()
        assert response is not None
        assert response.total_iterations == STEPS
        async with watched("streamed", pauses):
            seen = 0
            async for batch in handle.batches():
                assert len(batch) <= 1_000
                seen += len(batch)
                if seen == count:
                    break
        async with watched("taken up", pauses):
            await app.resume(RUN)
            assert (await handle.result()).answer == "Done."
        await until(lambda: gc.get_freeze_count() == 0)
    with capsys.disabled():
        shown = ", ".join(f"{what} {seconds * 1000:.0f} ms" for what, seconds in pauses.items())
        print(f"\nlongest pauses of the event loop with {count:,} events: {shown}")
    assert pauses["streamed"] < 0.25
    assert max(pauses.values()) < 3  # a hundredth of that where nothing else is going on

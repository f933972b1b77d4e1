"""A run of a hundred thousand events: read, shown, streamed and taken up without holding up anybody else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from journeyman import Agent
from journeyman.app.journeyman import Journeyman
from journeyman.core.events import CallsPlanned, CallStarted, Fact, MessageReceived, RunStarted, StepFinished
from journeyman.core.messages import ToolCall
from journeyman.core.runs import TaskInput
from journeyman.core.storing import RunOrder
from journeyman.testing import ScriptedModel, say
from tests.app.conftest import Opens
from tests.stores.samples import numbered, record

STEPS = 20_000
"""Of five facts each."""
RUN = "long"


async def fill(app: Journeyman, agent: Agent) -> int:
    """A run whose process died after so many steps; returns how many facts it has."""
    task = TaskInput(description="Go on and on", max_iterations=STEPS + 10)
    await app.store.runs.create(RunOrder(run_id=RUN, agent=agent.snapshot, task=task, created_at=1.0))
    epoch = await app.store.runs.claim(RUN, owner="gone", lease_seconds=-1)
    assert epoch == 1
    journal = app.store.runs.journal(RUN, epoch=epoch)
    await journal.append(RUN, numbered(RUN, RunStarted(agent=agent.snapshot, task=task)))
    seq = 1
    for start in range(1, STEPS + 1, 200):
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
    with capsys.disabled():
        shown = ", ".join(f"{what} {seconds * 1000:.0f} ms" for what, seconds in pauses.items())
        print(f"\nlongest pauses of the event loop with {count:,} events: {shown}")
    assert pauses["streamed"] < 0.25
    # The rest is the garbage collector's, which goes through what such a run keeps in memory.
    assert max(pauses.values()) < 3

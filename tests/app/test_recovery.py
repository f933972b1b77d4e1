"""Runs on which processes die, and runs that no process can go on with: neither takes others down with it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman import Agent, BindingError, JourneymanError, ToolLibrary, tool
from journeyman.app.owners import is_stopped
from journeyman.core.events import RunSuspended
from journeyman.core.runs import RunStatus, TaskInput
from journeyman.core.storing import RunOrder
from journeyman.testing import FakeClock, ScriptedModel, say
from tests.app.conftest import Opens
from tests.app.deadly_program import DEADLY
from tests.app.shop import Ledger, deletes
from tests.waiting import WAIT_SECONDS, until

NEIGHBOURS = 6


def restarted_until_it_lives(url: str, neighbours: int) -> tuple[int, dict[str, str]]:
    """How many processes died, and where the runs stand in the end."""
    for deaths in range(20):
        program = subprocess.run(
            [sys.executable, "-m", "tests.app.deadly_program", url, str(neighbours)],
            capture_output=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        if program.returncode == 0:
            return deaths, json.loads(program.stdout)
        assert program.returncode == -9, program.stderr.decode()
    raise AssertionError("processes go on dying")


@pytest.mark.slow
def test_a_run_that_kills_its_process_is_given_up_and_its_neighbours_end_well(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    deaths, ends = restarted_until_it_lives(url, NEIGHBOURS)
    assert deaths == 5
    assert ends.pop(DEADLY) == "stuck"
    assert set(ends.values()) == {"completed"}
    assert len(ends) == NEIGHBOURS


async def stuck_run(opens: Opens, agent: Agent) -> str:
    """A run on which five processes have died, in a store as the sixth leaves it."""
    async with opens(ScriptedModel([say("Hello.")]), max_recoveries=5) as app:
        await app.store.runs.create(
            RunOrder(run_id="deadly", agent=agent.snapshot, task=TaskInput(description="x"), created_at=1.0)
        )
        for number in range(6):
            assert await app.store.runs.claim("deadly", owner=f"gone-{number}", lease_seconds=-1)
        [handle] = await app.resume()
        assert await handle.wait() is RunStatus.STUCK
    return "deadly"


async def test_a_stuck_run_says_why_and_what_to_do_and_is_left_alone(opens: Opens, agent: Agent) -> None:
    run_id = await stuck_run(opens, agent)
    async with opens(ScriptedModel([say("Hello.")])) as app:
        [handle] = await app.resume()  # whoever starts again takes everything up, but not this
        response = await handle.result()
        assert response.status is RunStatus.STUCK
        assert response.error is not None
        assert response.error.code == "RUN_STUCK"
        assert "processes in a row died" in response.error.message
        assert f"journeyman runs resume {run_id}" in (response.error.user_guidance or "")
        row = await app.store.runs.get(run_id)
        assert row is not None
        assert row.trouble is not None
        assert "processes in a row died" in row.trouble
        facts = await app.store.runs.facts(run_id)
        assert isinstance(facts[-1], RunSuspended)


async def test_a_stuck_run_is_tried_again_when_a_person_says_so(opens: Opens, agent: Agent) -> None:
    run_id = await stuck_run(opens, agent)
    async with opens(ScriptedModel([say("Hello.")])) as app:
        [handle] = await app.resume(run_id)
        assert (await handle.result()).answer == "Hello."
        row = await app.store.runs.get(run_id)
        assert row is not None
        assert (row.deaths, row.trouble) == (0, None)  # as it was revived


async def test_a_run_that_was_given_up_for_a_slow_process_goes_on_when_that_is_back(opens: Opens, agent: Agent) -> None:
    run_id = await stuck_run(opens, agent)
    async with opens(ScriptedModel([say("Hello.")])) as app:
        for slow in ("gone-3", "gone-4"):
            await app.store.programs.announce(slow, silent_seconds=60)
        row = await app.store.runs.get(run_id)
        assert row is not None
        assert (row.status, row.trouble) == (RunStatus.RUNNING, None)
        [handle] = await app.resume()
        assert (await handle.result()).answer == "Hello."


async def test_a_stopped_process_is_no_death(opens: Opens, agent: Agent) -> None:
    sleeper = (
        "import time; from journeyman.app.owners import new_owner; print(new_owner(), flush=True); time.sleep(999)"
    )
    with subprocess.Popen([sys.executable, "-c", sleeper], stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        try:
            assert process.stdout is not None
            owner = (await asyncio.to_thread(process.stdout.readline)).strip()
            process.send_signal(signal.SIGSTOP)
            await until(lambda: is_stopped(owner))
            async with opens(ScriptedModel([say("Hello.")]), max_recoveries=1) as app:
                await app.store.runs.create(
                    RunOrder(run_id="r1", agent=agent.snapshot, task=TaskInput(description="x"), created_at=1.0)
                )
                assert await app.store.runs.claim("r1", owner=owner, lease_seconds=-1)
                [handle] = await app.resume()
                assert (await handle.result()).answer == "Hello."
        finally:
            process.kill()


async def test_a_stuck_run_can_be_cancelled(opens: Opens, agent: Agent) -> None:
    run_id = await stuck_run(opens, agent)
    async with opens(ScriptedModel([])) as app:
        handle = await app.handle(run_id)
        await handle.cancel()
        assert await handle.wait() is RunStatus.CANCELLED


async def typed(*words: str) -> str:
    """What the command line prints, in one line."""
    line = [sys.executable, "-c", "from journeyman.doors.cli import main; main()", *words]
    done = await asyncio.to_thread(subprocess.run, line, capture_output=True, timeout=WAIT_SECONDS, check=True)
    return " ".join(done.stdout.decode().split())


async def test_the_command_line_shows_a_stuck_run_with_the_way_out(opens: Opens, agent: Agent, url: str) -> None:
    run_id = await stuck_run(opens, agent)
    shown = await typed("runs", "show", run_id, "--store", url)
    assert "status stuck" in shown
    assert "processes in a row died" in shown
    assert f"runs resume {run_id}" in shown
    listed = await typed("runs", "list", "--store", url)
    assert "stuck" in listed


# --- runs that nobody can bind


@pytest.mark.slow
async def test_whoever_waits_elsewhere_is_told_that_no_process_can_go_on(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    async with opens(deletes("W-1"), library=ToolLibrary()) as worker, opens(deletes("W-1")) as client:
        await client.store.runs.create(
            RunOrder(run_id="r", agent=agent.snapshot, task=TaskInput(description="x"), created_at=1.0)
        )
        [mine] = await worker.resume()
        with pytest.raises(BindingError):
            await mine.wait()
        waiting = await client.handle("r")
        with pytest.raises(JourneymanError, match=r"(?s)no process that has tried can go on.*delete_order"):
            await waiting.wait()
        with pytest.raises(JourneymanError, match="no process that has tried can go on"):
            async for _ in waiting.events():
                pass
        # One that has the tools takes it up at once, whatever others could not.
        await client.resume()
        assert await waiting.wait() is RunStatus.COMPLETED

        async def forgotten() -> bool:
            row = await client.store.runs.get("r")
            return row is not None and row.trouble is None

        await until(forgotten)


async def test_what_nobody_can_bind_is_looked_at_ever_more_rarely(opens: Opens, agent: Agent) -> None:
    clock, tries = FakeClock(), 0
    async with opens(deletes("W-1"), clock=clock) as app:
        runs = app.store.runs
        await runs.create(RunOrder(run_id="r", agent=agent.snapshot, task=TaskInput(description="x"), created_at=1.0))
        for _ in range(1_000):
            if await runs.due():
                tries += 1
                await runs.note_trouble("r", "no tools")
            clock.advance(1)
        assert 5 < tries < 15
        assert [found.id for found in await runs.due(rested=False)] == ["r"]


async def test_runs_that_nobody_can_bind_do_not_keep_others_from_their_turn(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    @tool(read_only=True)
    def gone() -> str:
        """Go. Use when nothing is left."""
        return "gone"

    other = Agent(name="other", instruction="x", tools=ToolLibrary([gone]).specifications())
    async with opens(ScriptedModel([say("Hello.")] * 3), concurrency=2) as app:
        for number in range(20):
            order = RunOrder(
                run_id=f"x-{number}", agent=other.snapshot, task=TaskInput(description="x"), created_at=1.0
            )
            await app.store.runs.create(order)
        await app.resume()

        async def all_tried() -> bool:
            return all(row.trouble for row in await app.store.runs.list(limit=50))

        await until(all_tried)
        epochs = [row.epoch for row in await app.store.runs.list(limit=50)]
        for number in range(3):
            handle = await app.start(agent, f"Number {number}")
            assert (await handle.result()).answer == "Hello."
        assert [row.epoch for row in await app.store.runs.list(limit=50) if row.id.startswith("x-")] == epochs

"""Many workers on one PostgreSQL: killed, stopped and woken, told to leave; and what they share."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from journeyman import (
    Agent,
    BreakerRule,
    Policy,
    Principal,
    RateLimit,
    RiskLevel,
    RunStatus,
    ToolLibrary,
    tool,
)
from journeyman.app.journeyman import Journeyman
from journeyman.core.events import RunResumed
from journeyman.testing import ScriptedModel, call, say
from tests.app.shop import Ledger
from tests.app.worker_program import BUSY, PAYING, SLOWLY, Crew, workshop
from tests.waiting import WAIT_SECONDS, until

pytestmark = pytest.mark.slow


@pytest.fixture
def crew(postgres_url: str, ledger: Ledger) -> Iterator[Crew]:
    hired = Crew(postgres_url, ledger)
    yield hired
    hired.dismiss()


@pytest.fixture
def client(postgres_url: str, ledger: Ledger) -> Journeyman:
    """Puts runs into the queue and works on none."""
    return Journeyman(library=workshop(ledger), store=postgres_url, model=ScriptedModel([]), workers=True)


def hand(library: ToolLibrary) -> Agent:
    return Agent(name="hand", instruction="Work.", tools=library.specifications())


async def begun(ledger: Ledger, name: str, times: int = 1) -> list[str]:
    """When a tool has begun so often: the processes that ran it."""

    def who() -> list[str]:
        return [pid for found, _, pid in ledger.lines() if found == name]

    await until(lambda: len(who()) >= times)
    return who()


async def test_two_workers_share_the_runs_and_each_is_done_once(client: Journeyman, crew: Crew) -> None:
    async with client as app:
        handles = [await app.start(hand(app.library), f"Number {number}") for number in range(20)]
        for _ in range(2):
            crew.hire(BUSY, concurrency=2)
        assert [(await handle.result()).status for handle in handles] == ["completed"] * 20
    keys = [key for name, key, _ in crew.ledger.lines() if name == "in"]
    assert len(keys) == len(set(keys)) == 20
    assert len({pid for _, _, pid in crew.ledger.lines()}) == 2


async def test_a_worker_killed_in_the_middle_is_replaced_and_the_run_ends(client: Journeyman, crew: Crew) -> None:
    async with client as app:
        handle = await app.start(hand(app.library), "Pay slowly")
        first = crew.hire(SLOWLY)
        await begun(crew.ledger, "slow")
        second = crew.hire(SLOWLY)
        first.kill()
        assert (await begun(crew.ledger, "slow", 2))[1] == str(second.pid)
        crew.open_gate("W-1")
        assert (await handle.result()).status == "completed"
    slow = [key for name, key, _ in crew.ledger.lines() if name == "slow"]
    assert slow == [f"{handle.run_id}.call_1_1"] * 2
    assert [name for name, _, _ in crew.ledger.lines()].count("pay") == 1


async def awakened(client: Journeyman, crew: Crew, *, unfenced: bool) -> list[str]:
    """Who paid, when a worker is stopped past its lease, replaced, and woken up again."""
    async with client as app:
        handle = await app.start(hand(app.library), "Pay slowly")
        zombie = crew.hire(SLOWLY, unfenced=unfenced)
        await begun(crew.ledger, "slow")
        assert zombie.pid is not None
        os.kill(zombie.pid, signal.SIGSTOP)
        crew.hire(SLOWLY)
        await begun(crew.ledger, "slow", 2)
        crew.open_gate("W-1")
        assert (await handle.result()).status == "completed"
        before = [event async for event in handle.events()]
        os.kill(zombie.pid, signal.SIGCONT)
        # It has woken up for good when it works again.
        other = await app.start(hand(app.library), "Pay slowly, too")
        assert (await other.result()).status == "completed"
        if unfenced:
            await begun(crew.ledger, "pay", 3)
        os.kill(zombie.pid, signal.SIGTERM)
        zombie.join(WAIT_SECONDS)
        assert [event async for event in handle.events()] == before
    return [pid for name, key, pid in crew.ledger.lines() if name == "pay" and key.startswith(handle.run_id)]


async def test_a_stopped_worker_that_wakes_up_writes_nothing_and_starts_nothing(client: Journeyman, crew: Crew) -> None:
    assert len(await awakened(client, crew, unfenced=False)) == 1


async def test_without_the_fence_the_woken_worker_would_pay_twice(client: Journeyman, crew: Crew) -> None:
    assert len(set(await awakened(client, crew, unfenced=True))) == 2


async def test_told_to_leave_a_worker_finishes_its_step_and_hands_over(client: Journeyman, crew: Crew) -> None:
    async with client as app:
        handle = await app.start(hand(app.library), "Pay slowly")
        first = crew.hire(SLOWLY)
        await begun(crew.ledger, "slow")
        first.terminate()
        asyncio.get_running_loop().call_later(0.3, crew.open_gate, "W-1")
        await asyncio.to_thread(first.join, WAIT_SECONDS)
        assert first.exitcode == 0
        row = await app.store.runs.get(handle.run_id)
        assert row is not None
        assert (row.status, row.owner) == (RunStatus.RUNNING, None)
        assert [name for name, _, _ in crew.ledger.lines()] == ["slow"]
        crew.hire(SLOWLY)
        assert (await handle.result()).status == "completed"
        resumed = [event async for event in handle.events() if isinstance(event, RunResumed)]
    assert len(resumed) == 1
    assert [name for name, _, _ in crew.ledger.lines()] == ["slow", "pay"]


async def test_the_more_urgent_run_goes_first(client: Journeyman, crew: Crew) -> None:
    async with client as app:
        later = [await app.start(hand(app.library), f"Later {number}") for number in range(3)]
        urgent = await app.start(hand(app.library), "Now!", priority=10)
        crew.hire(PAYING, concurrency=1)
        for handle in (*later, urgent):
            await handle.result()
    assert crew.ledger.lines()[0][1].startswith(urgent.run_id)


async def test_one_principal_has_no_more_runs_at_once_than_allowed(client: Journeyman, crew: Crew) -> None:
    async with client as app:
        ada = [await app.start(hand(app.library), f"{n}", principal=Principal("ada")) for n in range(6)]
        bob = [await app.start(hand(app.library), f"{n}", principal=Principal("bob")) for n in range(2)]
        for _ in range(2):
            crew.hire(BUSY, principal_concurrency=1)
        for handle in (*ada, *bob):
            assert (await handle.result()).status == "completed"
    of_ada = {handle.run_id for handle in ada}
    at_once = most = 0
    for name, key, _ in crew.ledger.lines():
        if key.partition(".")[0] in of_ada:
            at_once += 1 if name == "in" else -1
            most = max(most, at_once)
    assert most == 1


async def test_many_slow_runs_of_one_principal_keep_no_other_from_a_worker(client: Journeyman, crew: Crew) -> None:
    async with client as app:
        slow = [await app.start(hand(app.library), f"{n}", principal=Principal("ada")) for n in range(12)]
        crew.hire(SLOWLY, concurrency=4)
        await begun(crew.ledger, "slow", 3)
        quick = await app.start(hand(app.library), "Pay slowly", principal=Principal("bob"))
        await begun(crew.ledger, "slow", 4)
        assert [key for name, key, _ in crew.ledger.lines() if key.startswith(quick.run_id)]
        crew.open_gate("W-1")
        assert [(await handle.result()).status for handle in (*slow, quick)] == ["completed"] * 13


# --- what processes share: two apps on one database count together


def on(url: str, library: ToolLibrary, policy: Policy) -> Journeyman:
    model = ScriptedModel([call("ring", number=1), say("Rung.")])
    return Journeyman(library=library, store=url, model=model, policy=policy)


async def codes(app: Journeyman, times: int) -> list[str]:
    """How so many calls, one after another, ended."""
    found = []
    for _ in range(times):
        handle = await app.start(hand(app.library), "Ring")
        [record] = (await handle.result()).tool_calls
        found.append(record.error.code if record.error else "success")
    return found


async def test_a_rate_limit_counts_the_calls_of_all_processes(postgres_url: str) -> None:
    @tool(risk=RiskLevel.REVERSIBLE)
    def ring(number: int) -> str:
        """Ring a bell. Use when asked to."""
        return "ding"

    policy = Policy(rate_limits={"ring": RateLimit(calls=3, seconds=100_000)}, wait_seconds=0)
    async with (
        on(postgres_url, ToolLibrary([ring]), policy) as one,
        on(postgres_url, ToolLibrary([ring]), policy) as two,
    ):
        assert await codes(one, 2) == ["success"] * 2
        assert await codes(two, 2) == ["success", "RATE_LIMITED"]
        assert await codes(one, 1) == ["RATE_LIMITED"]


async def test_a_tool_that_fails_in_one_process_rests_in_all(postgres_url: str) -> None:
    @tool(risk=RiskLevel.REVERSIBLE)
    def ring(number: int) -> str:
        """Ring a bell. Use when asked to."""
        raise RuntimeError("the bell is broken")

    policy = Policy(breaker=BreakerRule(failures=3, rest_seconds=100_000))
    async with (
        on(postgres_url, ToolLibrary([ring]), policy) as one,
        on(postgres_url, ToolLibrary([ring]), policy) as two,
    ):
        assert len(set(await codes(one, 3))) == 1
        [after_one] = await codes(one, 1)
        await asyncio.sleep(1.1)  # so long a process may go by what it last read
        assert await codes(two, 1) == [after_one]
        assert after_one != "success"

"""Runs that are taken from a process which lives all the same: its calls end once, and nobody calls them unknown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from journeyman import Agent, RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.app import owners, runner
from journeyman.app.journeyman import Journeyman
from journeyman.app.owners import liveness, new_owner
from journeyman.core.events import CallFinished, CallResolved, CallStarted, Event, RunResumed
from journeyman.core.protocols import SystemClock
from journeyman.stores.journal import RetryingJournal
from journeyman.testing import ScriptedModel, call, say, together
from tests.app.conftest import Opens
from tests.app.shop import Ledger
from tests.waiting import until

LEASE = 0.3
PAYS = ScriptedModel([call("pay", order_id="W-1"), call("pay", order_id="W-2"), say("Paid.")])


class SkewedClock(SystemClock):
    """The clock of a machine that is wrong about the time."""

    def __init__(self, offset: float) -> None:
        self._offset = offset

    def time(self) -> float:
        return super().time() + self._offset


class Till:
    """A tool that must not run twice, and waits until the test lets it go."""

    def __init__(self, ledger: Ledger) -> None:
        self.open = asyncio.Event()
        self.entered = asyncio.Event()

        @tool(risk=RiskLevel.REVERSIBLE)
        async def pay(order_id: str, context: ToolContext) -> str:
            """Pay an order. Use when it is due."""
            ledger.write("pay", context.idempotency_key, order_id)
            self.entered.set()
            await self.open.wait()
            return f"{order_id} is paid"

        self.library = ToolLibrary([pay])
        self.agent = Agent(name="payer", instruction="Pay.", tools=self.library.specifications())


@pytest.fixture
def till(ledger: Ledger) -> Till:
    return Till(ledger)


@pytest_asyncio.fixture
async def first(opens: Opens, till: Till) -> AsyncIterator[Journeyman]:
    async with opens(PAYS, library=till.library, lease_seconds=LEASE) as app:
        yield app


@pytest_asyncio.fixture
async def second(opens: Opens, till: Till) -> AsyncIterator[Journeyman]:
    async with opens(PAYS, library=till.library, lease_seconds=LEASE) as app:
        yield app


async def silenced(app: Journeyman) -> None:
    """From now on it renews no lease, as in an outage or behind a blocked event loop."""
    assert app.runner._housekeeping is not None
    app.runner._housekeeping.cancel()


async def facts(app: Journeyman, run_id: str) -> list[Event]:
    return list(await app.store.runs.facts(run_id))


def statuses(events: list[Event]) -> list[str]:
    return [event.record.status.value for event in events if isinstance(event, CallFinished)]


async def taken_over(app: Journeyman, run_id: str) -> None:
    async def resumed() -> bool:
        return any(isinstance(fact, RunResumed) for fact in await facts(app, run_id))

    await until(resumed)


async def test_the_outcome_of_a_call_reaches_whoever_has_the_run_by_then(
    first: Journeyman, second: Journeyman, till: Till, ledger: Ledger
) -> None:
    handle = await first.start(till.agent, "Pay")
    await till.entered.wait()
    await silenced(first)
    [other] = await second.resume()
    await taken_over(second, handle.run_id)
    till.open.set()
    response = await other.result()
    assert [(record.status, record.result) for record in response.tool_calls] == [
        ("success", "W-1 is paid"),
        ("success", "W-2 is paid"),
    ]
    assert ledger.effects() == {("pay", "W-1"): 1, ("pay", "W-2"): 1}
    assert statuses(await facts(second, handle.run_id)) == ["success", "success"]


async def test_of_calls_side_by_side_each_outcome_is_reported(opens: Opens, till: Till, ledger: Ledger) -> None:
    both = ScriptedModel([together(call("pay", order_id="W-1"), call("pay", order_id="W-2")), say("Paid.")])
    async with (
        opens(both, library=till.library, lease_seconds=LEASE) as first,
        opens(both, library=till.library, lease_seconds=LEASE) as second,
    ):
        handle = await first.start(till.agent, "Pay")
        await until(lambda: len(ledger.lines()) == 2)
        await silenced(first)
        [other] = await second.resume()
        await taken_over(second, handle.run_id)
        till.open.set()
        assert [record.status for record in (await other.result()).tool_calls] == ["success", "success"]
        assert statuses(await facts(second, handle.run_id)) == ["success", "success"]
    assert ledger.effects() == {("pay", "W-1"): 1, ("pay", "W-2"): 1}


async def test_a_report_that_comes_after_unknown_was_said_settles_it(
    first: Journeyman, second: Journeyman, till: Till, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SILENT_LEASES_ALIVE", 0)  # nobody is waited for
    handle = await first.start(till.agent, "Pay")
    await till.entered.wait()
    await silenced(first)
    [other] = await second.resume()

    async def unknown() -> bool:
        return await other.status() == "awaiting_resolution"

    await until(unknown)
    till.open.set()

    async def ended() -> bool:
        return (await other.status()).ended

    await until(ended)
    assert [record.status for record in (await other.result()).tool_calls] == ["success", "success"]
    assert ledger.effects() == {("pay", "W-1"): 1, ("pay", "W-2"): 1}
    assert statuses(await facts(second, handle.run_id)) == ["unknown", "success", "success"]


async def test_what_a_person_has_settled_no_report_changes(
    first: Journeyman, second: Journeyman, till: Till, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "SILENT_LEASES_ALIVE", 0)
    handle = await first.start(till.agent, "Pay")
    await till.entered.wait()
    await silenced(first)
    [other] = await second.resume()

    async def unknown() -> bool:
        return await other.status() == "awaiting_resolution"

    await until(unknown)
    await other.resolve("call_1_1", "done", result="seen in the bank")
    till.open.set()
    response = await other.result()
    assert [record.result for record in response.tool_calls] == ["seen in the bank", "W-2 is paid"]
    assert ledger.effects() == {("pay", "W-1"): 1, ("pay", "W-2"): 1}
    await until(lambda: not first.runner.at_work(handle.run_id))


async def test_a_call_that_never_began_begins_with_whoever_has_the_run(
    first: Journeyman, second: Journeyman, till: Till, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit of its start was cut off, and the run taken over before its process could look."""
    taken = asyncio.Event()
    append = RetryingJournal.append

    async def cut_off(journal: Any, run_id: str, given: Any, *, sync: bool = False) -> None:
        if journal._epoch == 1 and any(isinstance(fact, CallStarted) for fact in given):
            await first.store.flush()
            await first.store.runs.journal(run_id, epoch=1).append(run_id, given, sync=sync)
            await taken.wait()
        await append(journal, run_id, given, sync=sync)

    monkeypatch.setattr(RetryingJournal, "append", cut_off)
    handle = await first.start(till.agent, "Pay")

    async def begun() -> bool:
        return any(isinstance(fact, CallStarted) for fact in await facts(first, handle.run_id))

    await until(begun)
    await silenced(first)
    [other] = await second.resume()
    await taken_over(second, handle.run_id)
    till.open.set()
    taken.set()
    assert [record.status for record in (await other.result()).tool_calls] == ["success", "success"]
    events = await facts(second, handle.run_id)
    assert [event.action for event in events if isinstance(event, CallResolved)] == ["rerun"]
    assert "unknown" not in statuses(events)
    assert ledger.effects() == {("pay", "W-1"): 1, ("pay", "W-2"): 1}


async def test_a_process_that_closes_its_app_is_not_waited_for(
    opens: Opens, first: Journeyman, till: Till, ledger: Ledger
) -> None:
    """It lives on, but nobody in it will report anything."""
    leaving = opens(PAYS, library=till.library, lease_seconds=LEASE, grace_seconds=0.0)
    async with leaving as app:
        handle = await app.start(till.agent, "Pay")
        await till.entered.wait()
        await silenced(app)
        [other] = await first.resume()
        await taken_over(first, handle.run_id)

    async def unknown() -> bool:
        return await other.status() == "awaiting_resolution"

    await until(unknown)


# --- clocks


@pytest.mark.parametrize("offset", [45.0, 3600.0, -3600.0])
async def test_a_wrong_clock_takes_no_run_from_the_living(
    opens: Opens, till: Till, ledger: Ledger, offset: float
) -> None:
    async with (
        opens(PAYS, library=till.library) as first,
        opens(PAYS, library=till.library, clock=SkewedClock(offset)) as wrong,
    ):
        handle = await first.start(till.agent, "Pay")
        await till.entered.wait()
        [other] = await wrong.resume()
        await wrong.runner.tick()
        till.open.set()
        assert (await other.result()).status == "completed"
        assert not any(isinstance(fact, RunResumed) for fact in await facts(first, handle.run_id))


@pytest.mark.parametrize("offset", [3600.0, -3600.0])
async def test_what_a_wrong_clock_has_claimed_is_free_when_its_lease_is_over(
    opens: Opens, till: Till, monkeypatch: pytest.MonkeyPatch, offset: float
) -> None:
    monkeypatch.setattr("journeyman.app.owners.new_owner", lambda: "elsewhere/7/1/1")
    wrong = opens(PAYS, library=till.library, clock=SkewedClock(offset), lease_seconds=LEASE)
    monkeypatch.undo()
    async with wrong, opens(PAYS, library=till.library, lease_seconds=LEASE) as app:
        await wrong.store.runs.create(await ordered(wrong, till))
        assert await wrong.runner.claims.take("left") == 1
        # It died: nobody renews.
        [handle] = await app.resume()
        till.open.set()
        assert (await handle.result()).status == "completed"


async def ordered(app: Journeyman, till: Till) -> Any:
    from journeyman.core.runs import TaskInput
    from journeyman.core.storing import RunOrder

    return RunOrder(
        run_id="left", agent=till.agent.snapshot, task=TaskInput(description="Pay"), created_at=app.clock.time()
    )


# --- who is alive


async def test_nobody_waits_for_a_process_that_did_not_begin_the_call(
    opens: Opens, first: Journeyman, second: Journeyman, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine dies in a call; the one that waits for its report stalls past its lease, and is back again."""
    for module in (owners, runner):  # as if each were on a machine of its own
        monkeypatch.setattr(module, "liveness", lambda *_, **__: "unknown")
    monkeypatch.setattr(runner, "SILENT_LEASES", 1_000_000)
    handle = await first.start(till.agent, "Pay")
    await till.entered.wait()
    await silenced(first)
    await second.resume()
    await taken_over(second, handle.run_id)
    await silenced(second)
    async with opens(PAYS, library=till.library, lease_seconds=LEASE) as third:
        [other] = await third.resume()

        async def taken_twice() -> bool:
            row = await third.store.runs.get(handle.run_id)
            return row is not None and row.owner == third.runner.shared.owner

        await until(taken_twice)
        told: list[str] = []
        waiting = asyncio.create_task(other.wait(told=lambda waits: told.extend(wait.whom for wait in waits)))
        await until(lambda: bool(told))
        [wait] = await other.waits()
        assert (wait.reason, told) == ("call", [owners.in_words(first.runner.shared.owner)])
        assert wait.until is not None
        assert "'pay'" in wait.text
        report = await third.store.runs.reported(await began(third, handle.run_id))
        assert [former.owner for former in report.at_work] == [first.runner.shared.owner]
        await second.runner._announce()  # it lives, and will say nothing of a call that it did not begin
        monkeypatch.setattr(runner, "SILENT_LEASES", 0)
        assert await waiting == "awaiting_resolution"
        [wait] = await other.waits()
        assert (wait.reason, wait.whom) == ("resolution", "a person")
        await second.runner.at_rest(handle.run_id)  # it does not wait for itself either
    till.open.set()


async def test_a_process_that_has_a_run_again_does_not_wait_for_itself(first: Journeyman, till: Till) -> None:
    handle = await first.start(till.agent, "Pay")
    await till.entered.wait()
    started = await began(first, handle.run_id)
    own = first.runner.shared.owner
    epoch = await first.store.runs.claim(handle.run_id, owner="thief", lease_seconds=60, dead=[own])
    assert epoch == 2
    await first.store.runs.release(handle.run_id, owner="thief", epoch=epoch)

    def itself(connection: Any) -> None:
        sql = "INSERT INTO former_owners (run_id, owner, since, counted) VALUES (?, ?, ?, 0)"
        connection.execute(sql, handle.run_id, own, 1e12)  # as an earlier version noted it: of any call

    store: Any = first.store
    await store._database.write(itself)
    report = await first.store.runs.reported(started)
    assert [former.owner for former in report.at_work] == [own]
    assert await first.runner.claims.awaited(started) == []
    till.open.set()


async def began(app: Journeyman, run_id: str) -> CallStarted:
    return next(fact for fact in await facts(app, run_id) if isinstance(fact, CallStarted))


def test_a_process_is_known_by_more_than_host_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = new_owner()
    host, pid, started, number, boot, namespace = ours.split("/")
    assert liveness(ours) == "alive"
    assert liveness("/".join((host, pid, "1", number, boot, namespace))) == "dead"
    assert liveness("/".join((host, "4194304", started, number, boot, namespace))) == "dead"
    # Another container, with the same name and the same process number.
    assert liveness("/".join((host, pid, "1", number, boot, "1"))) == "unknown"
    # Another machine of that name; on a store that one machine alone can use, the same before it was started anew.
    other_boot = "/".join((host, pid, "1", number, "b", namespace))
    assert (liveness(other_boot), liveness(other_boot, one_machine=True)) == ("unknown", "dead")
    assert liveness(f"{host}/{pid}/1/{number}") == "unknown"  # of an earlier version
    # In a namespace whose /proc shows other processes.
    monkeypatch.setattr(owners, "_namespace", lambda: "")
    assert liveness(new_owner()) == "unknown"

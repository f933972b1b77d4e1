"""Calls that were under way when their process was killed: what a person can do about them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from journeyman import Agent, ConfigurationError, RiskLevel, RunStatus, ToolContext, ToolLibrary, tool
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.testing import ScriptedModel, call, say, together
from tests.app.conftest import Opens
from tests.app.shop import Ledger
from tests.waiting import WAIT_SECONDS

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.app.durable_program"])

BOTH = ScriptedModel([together(call("pay", order_id="W-1"), call("pay", order_id="W-2")), say("Paid.")])


def till(ledger: Ledger, *, deadly: bool = False) -> ToolLibrary:
    """A tool that must not run twice; the deadly one kills its process when two calls are under way."""
    both = threading.Barrier(2)

    @tool(risk=RiskLevel.REVERSIBLE)
    def pay(order_id: str, context: ToolContext) -> str:
        """Pay an order. Use when it is due."""
        ledger.write("pay", context.idempotency_key, order_id)
        if deadly:
            both.wait(WAIT_SECONDS)
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{order_id} is paid"

    return ToolLibrary([pay])


def payer(library: ToolLibrary) -> Agent:
    return Agent(name="payer", instruction="Pay.", tools=library.specifications())


def die_paying(url: str, ledger: Path) -> None:
    async def main() -> None:
        library = till(Ledger(ledger), deadly=True)
        async with Journeyman(library=library, store=url, model=BOTH) as app:
            await (await app.start(payer(library), "Pay both", run_id="paying")).wait()

    asyncio.run(main())


@pytest_asyncio.fixture
async def app(opens: Opens, url: str, ledger: Ledger) -> AsyncIterator[Journeyman]:
    """An app that went on where another process was killed with two calls under way."""
    child = FORKS.Process(target=die_paying, args=(url, ledger.path))
    child.start()
    await asyncio.to_thread(child.join, WAIT_SECONDS)
    assert child.exitcode == -signal.SIGKILL
    assert len(ledger.lines()) == 2
    async with opens(BOTH, library=till(ledger)) as opened:
        await opened.resume()
        yield opened


async def waiting(app: Journeyman) -> Handle:
    handle = await app.handle("paying")
    assert await handle.wait() == "awaiting_resolution"
    return handle


async def test_each_of_several_unknown_calls_is_settled_in_its_own_way(app: Journeyman, ledger: Ledger) -> None:
    handle = await waiting(app)
    first, second = await handle.unknown()
    assert (first.arguments, first.status, first.attempts) == ({"order_id": "W-1"}, "unknown", 1)
    await handle.resolve(first.call_id, "done", result={"receipt": 7}, by="grace")
    await handle.resolve(second.call_id, "rerun", by="grace")
    response = await handle.result()
    assert [(record.status, record.result) for record in response.tool_calls] == [
        ("success", {"receipt": 7}),
        ("success", "W-2 is paid"),
    ]
    assert ledger.effects() == {("pay", "W-1"): 1, ("pay", "W-2"): 2}  # the person wanted it
    assert await handle.unknown() == ()
    rows = [row for row in await app.store.audit.list() if row.kind == "resolved"]
    assert [(row.actor, row.details) for row in rows] == [("grace", {"action": "done"}), ("grace", {"action": "rerun"})]


async def test_a_skipped_call_is_an_error_that_the_model_can_read(app: Journeyman) -> None:
    handle = await waiting(app)
    for record in await handle.unknown():
        await handle.resolve(record.call_id, "skip")
    response = await handle.result()
    assert [record.error and record.error.code for record in response.tool_calls] == ["SKIPPED", "SKIPPED"]
    assert "do not repeat it" in response.messages[-2].content


async def test_settled_in_part_the_run_waits_for_the_rest(app: Journeyman) -> None:
    handle = await waiting(app)
    first, second = await handle.unknown()
    await handle.resolve(first.call_id, "skip")
    assert await handle.wait() == "awaiting_resolution"
    assert await handle.unknown() == (second,)


async def test_nothing_is_settled_by_mistake(app: Journeyman) -> None:
    handle = await waiting(app)
    first, second = await handle.unknown()
    with pytest.raises(ConfigurationError, match=rf"no unknown outcome.*{first.call_id}.*{second.call_id}"):
        await handle.resolve("call_9", "done")
    with pytest.raises(ConfigurationError, match="'rerun', 'done' or 'skip', not by 'again'"):
        await handle.resolve(first.call_id, "again")  # type: ignore[arg-type]  # that is the point
    await handle.resolve(first.call_id, "skip")
    with pytest.raises(ConfigurationError, match="no unknown outcome"):
        await handle.resolve(first.call_id, "rerun")
    assert await handle.wait() == "awaiting_resolution"
    assert await handle.unknown() == (second,)


async def test_a_run_with_unknown_calls_can_be_cancelled(app: Journeyman) -> None:
    handle = await waiting(app)
    await handle.cancel()
    assert await handle.status() is RunStatus.CANCELLED
    with pytest.raises(ConfigurationError, match="has ended"):
        await handle.resolve("call_1_1", "skip")


async def test_a_person_settles_without_the_tools_at_hand(app: Journeyman, opens: Opens, ledger: Ledger) -> None:
    handle = await waiting(app)
    async with opens(None, library=ToolLibrary()) as desk:
        for record in await handle.unknown():
            await (await desk.handle("paying")).resolve(record.call_id, "done", result="seen in the bank")
            await handle.wait()
        response = await handle.result()
    assert [record.result for record in response.tool_calls] == ["seen in the bank"] * 2
    assert ledger.effects() == {("pay", "W-1"): 1, ("pay", "W-2"): 1}


async def test_cancelling_a_run_with_unknown_calls_does_not_say_that_they_never_ran(app: Journeyman) -> None:
    handle = await waiting(app)
    await handle.cancel()
    response = await handle.result()
    assert response.status == "cancelled"
    for record in response.tool_calls:
        assert record.error is not None
        assert (record.status, record.error.code, record.attempts) == ("error", "OUTCOME_UNKNOWN", 1)
        assert "check before repeating" in (record.error.recover_action or "")
    assert [row.status for row in await app.store.calls.list(run_id="paying")] == ["error", "error"]


async def test_two_people_who_settle_one_call_at_once_do_not_trip_over_each_other(app: Journeyman) -> None:
    handle = await waiting(app)
    [first, _] = await handle.unknown()
    answers = await asyncio.gather(
        handle.resolve(first.call_id, "skip", by="grace"),
        handle.resolve(first.call_id, "skip", by="ada"),
        return_exceptions=True,
    )
    [refused] = [answer for answer in answers if answer is not None]
    assert isinstance(refused, ConfigurationError)
    assert "settled by somebody else" in str(refused)


async def test_a_result_without_a_json_form_leaves_the_run_as_it_is(app: Journeyman) -> None:
    handle = await waiting(app)
    [first, _] = await handle.unknown()
    with pytest.raises(ConfigurationError, match="object has no JSON form"):
        await handle.resolve(first.call_id, "done", result=object())
    assert await handle.status() == "awaiting_resolution"


ONE_OF_EACH = ScriptedModel([together(call("refund", order_id="W-1"), call("pay", order_id="W-2")), say("Done.")])


def counter(*, deadly: bool = False) -> ToolLibrary:
    """A tool that asks first, and one that kills its process."""

    @tool(risk=RiskLevel.IRREVERSIBLE)
    def refund(order_id: str) -> str:
        """Refund an order. Use when it came back."""
        return f"{order_id} is refunded"

    @tool(risk=RiskLevel.REVERSIBLE)
    def pay(order_id: str) -> str:
        """Pay an order. Use when it is due."""
        if deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{order_id} is paid"

    return ToolLibrary([refund, pay])


def die_between(url: str) -> None:
    async def main() -> None:
        library = counter(deadly=True)
        async with Journeyman(library=library, store=url, model=ONE_OF_EACH) as app:
            await (await app.start(payer(library), "Refund W-1, pay W-2", run_id="paying")).wait()

    asyncio.run(main())


async def test_an_unknown_outcome_is_settled_before_an_approval_of_the_same_turn(opens: Opens, url: str) -> None:
    child = FORKS.Process(target=die_between, args=(url,))
    child.start()
    await asyncio.to_thread(child.join, WAIT_SECONDS)
    assert child.exitcode == -signal.SIGKILL
    async with opens(ONE_OF_EACH, library=counter()) as app:
        await app.resume()
        handle = await waiting(app)
        [asked], [unknown] = await app.approvals.pending(), await handle.unknown()
        assert (asked.tool_name, unknown.tool_name) == ("refund", "pay")
        await handle.resolve(unknown.call_id, "rerun", by="grace")
        assert await handle.wait() == "awaiting_approval"
        await app.approvals.approve(asked.id, by="grace")
        assert [record.result for record in (await handle.result()).tool_calls] == ["W-1 is refunded", "W-2 is paid"]

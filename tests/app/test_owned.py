"""What the library promises of sessions and names of runs: each principal has their own."""

from __future__ import annotations

import asyncio

import pytest

from journeyman import Agent, Principal
from journeyman.core import SessionTakenError
from journeyman.core.gaps import ToolGapReport
from journeyman.testing import ScriptedModel, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, deletes

BOB = Principal("bob")
HELPER = Principal("helper", permissions={"runs:write"})
HELLO = ScriptedModel([say("Hello.")])
ROUNDS = 40


async def test_of_two_who_begin_one_session_at_once_one_reads_and_writes_in_it(opens: Opens, agent: Agent) -> None:
    async with opens(HELLO) as app, opens(HELLO) as other:
        for number in range(ROUNDS):
            name = f"s-{number}"
            sent = await asyncio.gather(
                app.session(name).send(agent, "I am Ada", principal=ADA),
                other.session(name).send(agent, "I am Bob", principal=BOB),
                return_exceptions=True,
            )
            assert [isinstance(found, SessionTakenError) for found in sent].count(True) == 1
            [handle] = [found for found in sent if not isinstance(found, BaseException)]
            await handle.result()
            said = [message.content for message in await app.session(name).messages()]
            assert ("I am Ada" in said) is not ("I am Bob" in said)
            owner, stranger = (ADA, BOB) if "I am Ada" in said else (BOB, ADA)
            assert len(await app.session(name).messages(principal_id=owner.id)) == len(said)
            assert await app.session(name).messages(principal_id=stranger.id) == ()
            with pytest.raises(SessionTakenError):
                await app.session(name).must_be_open_to(stranger)


async def test_nobody_speaks_in_a_session_of_another_without_the_permission(opens: Opens, agent: Agent) -> None:
    async with opens(HELLO) as app:
        await (await app.session("s").send(agent, "Hi", principal=ADA)).result()
        for stranger in (BOB, None):
            with pytest.raises(SessionTakenError, match="'runs:write'"):
                await app.session("s").send(agent, "Hi", principal=stranger)
        assert (await (await app.session("s").send(agent, "Hi", principal=HELPER)).result()).answer == "Hello."
        await app.session("s").must_be_open_to(HELPER)
        row = await app.store.conversations.get("s")
        assert row is not None
        assert row.principal_id == "ada"


async def test_a_name_of_a_run_stands_for_one_run_of_one_principal(opens: Opens, agent: Agent) -> None:
    async with opens(HELLO) as app:
        handles = await asyncio.gather(
            *(app.start(agent, "Hi", principal=who, run_id="k") for who in (ADA, BOB, None, ADA, BOB, None))
        )
        owners = {}
        for handle in handles:
            row = await app.store.runs.get(handle.run_id)
            assert row is not None
            owners[handle.run_id] = row.principal_id
        assert sorted(owners.values(), key=str) == [None, "ada", "bob"]
        assert [handle.run_id for handle in handles[:3]] == [handle.run_id for handle in handles[3:]]


async def test_a_cancellation_names_who_wanted_it_wherever_it_happens(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-1")) as app:
        waiting = [await app.start(agent, "Delete W-1", principal=ADA) for _ in range(2)]
        for handle in waiting:
            await handle.wait()
        await app.cancel(waiting[0].run_id, by="grace")
    async with opens(deletes("W-1")) as elsewhere:
        await elsewhere.store.runs.request_cancel(waiting[1].run_id, by="bob")
        await elsewhere.store.runs.request_cancel(waiting[1].run_id, by="too late")
        await (await elsewhere.handle(waiting[1].run_id)).cancel()
        rows = await elsewhere.store.audit.list(kind="run_cancelled")
        assert [(row.actor, row.run_id) for row in rows] == [("grace", waiting[0].run_id), ("bob", waiting[1].run_id)]


async def test_gaps_are_listed_by_principal(opens: Opens) -> None:
    async with opens(HELLO) as app:
        for number in range(60):
            report = ToolGapReport(missing_tools=("fly",), attempted_task=f"Fly {number}")
            await app.store.gaps.add(report, now=float(number), principal_id="ada" if number == 0 else "bob")
        [row] = await app.store.gaps.list(principal_id="ada", limit=5)
        assert (row.principal_id, row.report.attempted_task) == ("ada", "Fly 0")
        assert len(await app.store.gaps.list(limit=5)) == 5

"""Forks: the past is the parent's and is not repeated, what follows is governed afresh."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from journeyman import ConfigurationError, Journeyman, Policy, RunStatus
from journeyman.core.events import Fact
from journeyman.learning.episodes import from_facts
from journeyman.replay.recording import Recording
from journeyman.testing import ScriptedModel, call, crash_and_recover, crash_points, say, together
from tests.marking import daily
from tests.replay.shop import AGENT, EFFECTS, LIBRARY
from tests.waiting import WAIT_SECONDS

TURNS: list[Any] = [
    together(call("find_order", customer="Ada"), call("find_order", customer="Grace")),
    call("refund_order", order_id="ORD-00003"),
    call("find_order", customer="Grace"),
    say("Refunded."),
]


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Journeyman]:
    EFFECTS.clear()
    store = f"sqlite:///{tmp_path}/runs.db"
    async with Journeyman(library=LIBRARY, store=store, model=ScriptedModel(TURNS)) as opened:
        yield opened


async def refunded(app: Journeyman, **options: Any) -> str:
    handle = await app.start(AGENT, "Refund the order of Ada", **options)
    await settled(app, handle.run_id)
    return handle.run_id


async def settled(app: Journeyman, run_id: str) -> RunStatus:
    """The run at its end, where a person agrees to everything."""
    handle = await app.handle(run_id)
    while (response := await handle.result()).status is RunStatus.AWAITING_APPROVAL:
        for asked in await app.approvals.pending(run_id=run_id):
            await app.approvals.approve(asked.id, by="grace")
    return response.status


def contents(facts: Any) -> list[dict[str, Any]]:
    return [fact.model_dump(mode="json") for fact in facts]


async def facts_of(app: Journeyman, run_id: str, **part: Any) -> tuple[Fact, ...]:
    return tuple(await app.store.runs.facts(run_id, **part))


@pytest.mark.parametrize("session", [None, "talk"])
async def test_a_fork_at_every_step_shares_the_past_and_repeats_nothing(app: Journeyman, session: str | None) -> None:
    parent = await refunded(app, session_id=session)
    whole = await facts_of(app, parent)
    once = dict(EFFECTS)
    assert once == {"find_order": 3, "refund_order": 1}
    done = {1: {}, 2: {"find_order": 2}, 3: {"find_order": 2, "refund_order": 1}, 4: once}
    for at in range(1, 5):
        EFFECTS.clear()
        fork = await app.fork(parent, at=at)
        asked = await fork.result()
        if at <= 2:  # what was approved for the parent is asked again
            assert asked.status is RunStatus.AWAITING_APPROVAL
            assert "refund_order" not in EFFECTS
        assert await settled(app, fork.run_id) is RunStatus.COMPLETED
        assert {name: once[name] - done[at].get(name, 0) for name in once} == {name: EFFECTS[name] for name in once}
        row = await app.store.runs.get(fork.run_id)
        assert row is not None
        assert (row.parent_id, row.session_id) == (parent, None)
        own = await facts_of(app, fork.run_id)
        shared = row.parent_seq or 0
        assert contents(own[:shared]) == contents(whole[:shared])
        assert own[shared].type == "run_forked"
        assert [fact.seq for fact in own] == list(range(1, len(own) + 1))
        paged = [fact for after in range(len(own)) for fact in await facts_of(app, fork.run_id, after=after, limit=1)]
        assert contents(paged) == contents(own)
    assert contents(await facts_of(app, parent)) == contents(whole)
    assert len(await app.store.runs.forks(parent)) == 4
    if session is not None:
        said = await app.store.conversations.history(session, last=100)
        assert sum(message.content == "Refunded." for message in said[1]) == 1


async def test_other_arguments_run_alone_and_are_governed(app: Journeyman) -> None:
    parent = await refunded(app)
    EFFECTS.clear()
    fork = await app.fork(parent, at=1, call_id="call_1_2", arguments={"customer": "Adelaide"})
    await fork.result()
    assert dict(EFFECTS) == {"find_order": 1}  # the other call of the step has its result
    response = await fork.result()
    first = response.structured_trace[0].calls
    assert [item.arguments["customer"] for item in first] == ["Ada", "Adelaide"]
    refused = await app.fork(parent, at=2, arguments={"order_id": 5})
    await settled(app, refused.run_id)
    [record] = (await refused.result()).structured_trace[1].calls
    assert (record.success, EFFECTS["refund_order"]) == (False, 0)


async def test_another_result_and_something_said_reach_the_model(app: Journeyman) -> None:
    parent = await refunded(app)
    EFFECTS.clear()
    told = await app.fork(parent, at=2, result={"refunded": 0})
    await told.result()
    assert EFFECTS["refund_order"] == 0
    model = app._shared.model
    assert isinstance(model, ScriptedModel)
    assert any('{"refunded":0}' in message.content for message in model.requests[-1].messages)
    said = await app.fork(parent, at=3, say="Leave Grace out.")
    await said.result()
    assert model.requests[-2].messages[-1].content == "Leave Grace out."
    with pytest.raises(ConfigurationError, match="one of them"):
        await app.fork(parent, at=2, say="x", result=1)


async def test_a_fork_after_the_answer_goes_on_with_the_conversation(app: Journeyman) -> None:
    parent = await refunded(app)
    model = app._shared.model = ScriptedModel([*TURNS, say("You are welcome.")])
    fork = await app.fork(parent, at=5, say="Thank you")
    assert (await fork.result()).answer == "You are welcome."
    assert [message.content for message in model.requests[-1].messages[-2:]] == ["Refunded.", "Thank you"]
    with pytest.raises(ConfigurationError, match="has no step 9"):
        await app.fork(parent, at=9)
    again = await app.fork(fork.run_id, at=4)  # a fork of a fork
    assert (await again.result()).answer == "Refunded."


async def test_nothing_is_learned_from_a_fork(app: Journeyman) -> None:
    parent = await refunded(app)
    fork = await app.fork(parent, at=2, result={"refunded": 1_000_000})
    assert await settled(app, fork.run_id) is RunStatus.COMPLETED
    assert from_facts(await facts_of(app, parent)) is not None
    assert from_facts(await facts_of(app, fork.run_id)) is None


async def test_a_fork_of_a_waiting_run_and_of_a_chain(app: Journeyman) -> None:
    waiting = await app.start(AGENT, "Refund the order of Ada")
    await waiting.result()
    EFFECTS.clear()
    denied = await app.fork(waiting.run_id, at=2, result={"refunded": 10})
    assert (await denied.result()).status is RunStatus.COMPLETED
    assert EFFECTS["refund_order"] == 0
    steps = [
        {"tool": "find_order", "args": {"customer": "Ada"}},
        {"tool": "find_order", "args": {"customer": "$customer"}},
    ]
    await app.chain(steps, run_id="chained")
    assert Recording("chained", await facts_of(app, "chained")).is_chain
    EFFECTS.clear()
    chained = await app.fork("chained", at=2)
    assert (await chained.result()).status is RunStatus.COMPLETED
    assert dict(EFFECTS) == {"find_order": 1}


async def test_a_parent_is_kept_as_long_as_it_is_shared(app: Journeyman) -> None:
    parent = await refunded(app)
    fork = await app.fork(parent, at=4)
    await fork.result()
    now = await app.store.now()
    await app.store.runs.purge(ended_before=now + 1000)
    assert await app.store.runs.get(fork.run_id) is None
    assert await app.store.runs.get(parent) is None


async def test_a_fork_goes_on_in_another_process(tmp_path: Path) -> None:
    EFFECTS.clear()
    store = f"sqlite:///{tmp_path}/runs.db"
    async with Journeyman(library=LIBRARY, store=store, model=ScriptedModel(TURNS)) as app:
        parent = await refunded(app)
        EFFECTS.clear()
        fork = await app.fork(parent, at=2)
        await fork.result()
    async with Journeyman(library=LIBRARY, store=store, model=ScriptedModel(TURNS), policy=Policy()) as app:
        await app.resume()
        assert await settled(app, fork.run_id) is RunStatus.COMPLETED
    assert dict(EFFECTS) == {"refund_order": 1, "find_order": 1}


@pytest.mark.slow
@pytest.mark.parametrize("points", daily(6, nightly=28))
def test_a_fork_that_is_killed_anywhere_goes_on_and_doubles_nothing(tmp_path: Path, points: int) -> None:
    for point in random.Random(34).sample(list(crash_points(14)), points):
        folder = tmp_path / str(point)
        folder.mkdir()
        ledger = folder / "ledger"
        command = [sys.executable, "-m", "tests.replay.fork_program", f"sqlite:///{folder}/runs.db", str(ledger)]
        subprocess.run(command, check=True, timeout=WAIT_SECONDS)
        assert ledger.read_text().split() == ["a", "b"]
        ledger.write_text("")  # what the fork does stands by itself
        found = crash_and_recover(command, point, timeout=WAIT_SECONDS)
        assert (found.output, ledger.read_text().split()) == ("1 Warm.\n", ["b"]), str(point)

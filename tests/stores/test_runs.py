"""Runs in a database: who may claim which, what is due, what is forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from journeyman.core.approvals import ApprovalStatus, Label, LabelSource
from journeyman.core.runs import RunStatus
from journeyman.stores.store import SqlStore
from journeyman.testing import FakeClock
from tests.stores.samples import (
    LATER,
    NOW,
    call_started,
    claimed,
    due,
    finished,
    message,
    numbered,
    order,
    question,
    record,
    started,
    suspended,
    version_before,
)


async def end(store: SqlStore, run_id: str, *, epoch: int, first: int = 1) -> None:
    await store.runs.journal(run_id, epoch=epoch).append(run_id, numbered(run_id, finished(), first=first))


async def test_the_same_order_twice_is_kept_once(store: SqlStore) -> None:
    await store.runs.create(order("r1", session="s"))
    await store.runs.create(order("r1", session="s", priority=9))
    assert await store.runs.order("r1") == order("r1", session="s")
    [row] = await store.runs.list()
    assert (row.status, row.epoch, row.owner, row.last_seq, row.priority) == (RunStatus.QUEUED, 0, None, 0, 0)
    assert (row.task_id, row.agent_name, row.session_id, row.principal_id) == ("task-r1", "support", "s", "ada")


async def test_a_run_that_is_not_there_is_none(store: SqlStore) -> None:
    assert await store.runs.get("ghost") is None
    assert await store.runs.order("ghost") is None
    assert await store.runs.facts("ghost") == ()
    assert await store.runs.claim("ghost", owner="w1", lease_seconds=60) is None


async def test_runs_are_listed_newest_first(store: SqlStore) -> None:
    for number in range(4):
        await store.runs.create(order(f"r{number}", at=NOW + number, session="s" if number % 2 else None))
    await store.runs.claim("r0", owner="w1", lease_seconds=60)
    await end(store, "r0", epoch=1)
    assert [row.id for row in await store.runs.list()] == ["r3", "r2", "r1", "r0"]
    assert [row.id for row in await store.runs.list(limit=2, offset=1)] == ["r2", "r1"]
    assert [row.id for row in await store.runs.list(session_id="s")] == ["r3", "r1"]
    assert [row.id for row in await store.runs.list(statuses=[RunStatus.COMPLETED])] == ["r0"]
    assert await store.runs.list(statuses=[]) == ()


async def test_runs_of_a_session_are_listed_by_turn_whatever_the_clock_said(store: SqlStore) -> None:
    for run_id, at in (("first", NOW + 9), ("second", NOW), ("third", NOW + 5)):
        await store.runs.create(order(run_id, session="s", at=at))
    rows = await store.runs.list(session_id="s")
    assert [(row.id, row.turn) for row in rows] == [("third", 3), ("second", 2), ("first", 1)]
    assert [row.id for row in await store.runs.list(session_id="s", limit=1, offset=1)] == ["second"]


async def test_of_any_number_of_runs_the_unfinished_ones_are_told(store: SqlStore) -> None:
    for run_id in ("a", "b", "c", "d", "ended"):
        await store.runs.create(order(run_id))
    await store.runs.claim("ended", owner="w1", lease_seconds=60)
    await end(store, "ended", epoch=1)
    assert set(await store.runs.unfinished(["a", "ended", *(f"ghost {n}" for n in range(40_000)), "b", "d"])) == {
        "a",
        "b",
        "d",
    }
    assert set(await store.runs.unfinished([])) == set()


async def test_the_run_ahead_is_the_first_unfinished_one_of_the_session(store: SqlStore) -> None:
    for run_id, at in (("z", NOW + 9), ("y", NOW), ("x", NOW + 5)):
        await store.runs.create(order(run_id, session="s", at=at))
    await store.runs.create(order("alone"))

    async def ahead_of(run_id: str) -> str | None:
        row = await store.runs.ahead_of(run_id)
        return None if row is None else row.id

    assert [await ahead_of(run_id) for run_id in ("z", "y", "x", "alone", "ghost")] == [None, "z", "z", None, None]
    await store.runs.claim("z", owner="w1", lease_seconds=60)
    await end(store, "z", epoch=1)
    assert [await ahead_of(run_id) for run_id in ("z", "y", "x")] == [None, None, "y"]


# --- claims


async def test_a_lease_keeps_others_away_until_it_ends(store: SqlStore) -> None:
    await store.runs.create(order("r1"))
    assert await store.runs.claim("r1", owner="w1", lease_seconds=60) == 1
    assert await store.runs.claim("r1", owner="w2", lease_seconds=60) is None
    await store.runs.renew("w1", lease_seconds=0)
    assert await store.runs.claim("r1", owner="w2", lease_seconds=60) == 2


async def test_the_dead_and_oneself_can_be_taken_over_from(store: SqlStore) -> None:
    await store.runs.create(order("r1"))
    assert await store.runs.claim("r1", owner="w1", lease_seconds=60) == 1
    assert await store.runs.claim("r1", owner="w1", lease_seconds=60) == 2
    assert await store.runs.claim("r1", owner="w2", lease_seconds=60, dead=["w9"]) is None
    assert await store.runs.claim("r1", owner="w2", lease_seconds=60, dead=["w9", "w1"]) == 3


async def test_of_many_claimers_one_gets_the_run(store: SqlStore, other: SqlStore) -> None:
    await store.runs.create(order("r1"))
    epochs = await asyncio.gather(
        *(
            (store if number % 2 else other).runs.claim("r1", owner=f"w{number}", lease_seconds=60)
            for number in range(10)
        )
    )
    assert sorted(epochs, key=str) == [1] + [None] * 9


async def test_renewing_prolongs_all_of_an_owner_s_leases_and_no_other(store: SqlStore, clock: FakeClock) -> None:
    for run_id, owner in (("r1", "w1"), ("r2", "w1"), ("r3", "w2")):
        await claimed(store, run_id, owner=owner)
    await store.runs.renew("w1", lease_seconds=1000)
    clock.advance(900)
    assert {row.id: row.owner for row in await store.runs.list()} == {"r1": "w1", "r2": "w1", "r3": None}


async def test_a_released_run_can_be_had_but_only_its_holder_releases_it(store: SqlStore) -> None:
    await claimed(store, "r1")
    await store.runs.release("r1", owner="w1", epoch=99)
    assert await store.runs.claim("r1", owner="w2", lease_seconds=60) is None
    await store.runs.release("r1", owner="w1", epoch=1)
    assert await store.runs.claim("r1", owner="w2", lease_seconds=60) == 2


async def test_accepted_facts_are_written_before_the_run_is_released(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", started(), message()))
    await journal.append("r1", numbered("r1", message(), first=3))
    await store.runs.release("r1", owner="w1", epoch=1)
    row = await store.runs.get("r1")
    assert row is not None
    assert (row.owner, row.last_seq, row.status) == (None, 3, RunStatus.RUNNING)


async def test_an_ended_run_cannot_be_claimed(store: SqlStore) -> None:
    await claimed(store, "r1")
    await end(store, "r1", epoch=1)
    assert await store.runs.claim("r1", owner="w1", lease_seconds=60) is None


async def test_runs_of_one_session_go_one_after_another(store: SqlStore) -> None:
    for run_id in ("z-first", "a-second"):
        await store.runs.create(order(run_id, session="s"))
    await store.runs.create(order("elsewhere", session="t"))
    assert set(await due(store)) == {"z-first", "elsewhere"}
    assert await store.runs.claim("a-second", owner="w1", lease_seconds=60) is None
    assert await store.runs.claim("z-first", owner="w1", lease_seconds=60) == 1
    await end(store, "z-first", epoch=1)
    assert set(await due(store)) == {"a-second", "elsewhere"}
    assert await store.runs.claim("a-second", owner="w1", lease_seconds=60) == 1


# --- what is due


async def test_queued_runs_are_due_by_priority_then_age(store: SqlStore) -> None:
    await store.runs.create(order("young", at=NOW + 2))
    await store.runs.create(order("old", at=NOW + 1))
    await store.runs.create(order("urgent", at=NOW + 3, priority=5))
    assert await due(store) == ("urgent", "old", "young")
    assert await due(store, limit=1) == ("urgent",)


async def test_a_held_run_is_due_when_its_holder_is_gone(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", started()))
    assert await due(store) == ()
    assert await due(store, dead=["w1"]) == ("r1",)
    await store.runs.renew("w1", lease_seconds=0)
    assert await due(store) == ("r1",)


async def test_a_waiting_run_is_due_when_its_approval_is_decided_or_expired(store: SqlStore, clock: FakeClock) -> None:
    journal = await claimed(store, "r1")
    await store.approvals.ask(question("a-1", expires_at=LATER))
    await store.approvals.ask(question("a-2", expires_at=LATER + 60))
    await journal.append("r1", numbered("r1", suspended()))
    assert await due(store) == ()
    clock.advance(60)
    assert await due(store) == ("r1",)
    await store.approvals.expire()
    assert await due(store) == ("r1",)


async def test_a_superseded_question_makes_no_run_due(store: SqlStore, clock: FakeClock) -> None:
    journal = await claimed(store, "r1")
    await store.approvals.ask(question("a-1"))
    await journal.append("r1", numbered("r1", suspended()))
    await store.approvals.decide("a-1", ApprovalStatus.SUPERSEDED, by="grace")
    clock.advance(60)
    assert await due(store) == ()


async def test_a_run_with_an_unknown_call_waits_for_a_person_however_long(store: SqlStore, clock: FakeClock) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", suspended(RunStatus.AWAITING_RESOLUTION)))
    clock.advance(1e9)
    assert await due(store) == ()


# --- retention


async def test_purging_forgets_old_ended_runs_and_what_belongs_to_them(store: SqlStore, clock: FakeClock) -> None:
    for run_id in ("old", "new", "open"):
        await claimed(store, run_id, session=f"s-{run_id}")
        await store.approvals.ask(question(f"a-{run_id}", run_id=run_id))
    clock.advance(1)
    await store.runs.journal("open", epoch=1).append("open", numbered("open", call_started("e-open")))
    await end(store, "new", epoch=1)
    clock.advance(1)
    await store.runs.journal("old", epoch=1).append("old", numbered("old", record("e-old"), finished()))
    assert await store.runs.purge(ended_before=NOW) == 0
    assert await store.runs.purge(ended_before=NOW + 2) == 1
    assert {row.id for row in await store.runs.list()} == {"old", "open"}
    assert await store.runs.facts("new") == ()
    assert await store.approvals.get("a-new") is None
    assert await store.runs.purge(ended_before=LATER) == 1
    assert [row.id for row in await store.runs.list()] == ["open"]
    assert len(await store.runs.facts("open")) == 1
    assert [call.run_id for call in await store.calls.list()] == ["old"]
    assert len(await store.conversations.list()) == 3
    assert await store.audit.verify() == 2


async def test_purging_takes_more_than_one_bite(store: SqlStore) -> None:
    async def whole(run_id: str) -> None:
        await claimed(store, run_id)
        await end(store, run_id, epoch=1)

    await asyncio.gather(*(whole(f"r{number}") for number in range(230)))
    assert await store.runs.purge(ended_before=LATER) == 230
    assert await store.runs.list() == ()


async def test_principals_take_turns(store: SqlStore) -> None:
    for number in range(3):
        await store.runs.create(order(f"ada-{number}", at=NOW + number, principal="ada"))
    await store.runs.create(order("bob-0", at=NOW + 10, principal="bob"))
    await store.runs.create(order("none-0", at=NOW + 11, principal=None))
    await store.runs.create(order("ada-urgent", at=NOW + 12, principal="ada", priority=1))
    turns = ("ada-urgent", "ada-0", "bob-0", "none-0", "ada-1", "ada-2")
    assert await due(store) == turns
    assert await store.runs.waiting() == turns
    assert [await store.runs.place(run_id) for run_id in ("ada-1", "bob-0", "none-0")] == [2, 1, 1]
    await store.runs.claim("bob-0", owner="w1", lease_seconds=60)
    assert "bob-0" not in await store.runs.waiting()


async def test_who_comes_later_is_level_with_those_that_are_next(store: SqlStore) -> None:
    for number in range(4):
        await store.runs.create(order(f"ada-{number}", at=NOW + number, principal="ada"))
    for number in range(2):
        await store.runs.claim(f"ada-{number}", owner="w1", lease_seconds=60)
        await end(store, f"ada-{number}", epoch=1)
    for number in range(2):
        await store.runs.create(order(f"bob-{number}", at=NOW + 10 + number, principal="bob"))
    assert await due(store) == ("ada-2", "bob-0", "ada-3", "bob-1")


async def test_only_those_are_looked_at_that_are_asked_for(store: SqlStore) -> None:
    for number in range(3):
        await store.runs.create(order(f"r{number}", at=NOW + number))
    assert await due(store, among=["r2", "r0", "gone"]) == ("r0", "r2")
    assert await due(store, among=[]) == ()


async def test_of_a_run_that_was_left_behind_it_is_told_by_whom(store: SqlStore) -> None:
    await claimed(store, "r1")
    assert [found.left_by for found in await store.runs.due(dead=["w1"])] == ["w1"]


# --- processes that die


async def lost(store: SqlStore, run_id: str, owner: str) -> int | None:
    """A claim by somebody who is never heard of again."""
    return await store.runs.claim(run_id, owner=owner, lease_seconds=-1)


async def test_taking_over_from_the_dead_is_counted_until_a_run_gets_further(store: SqlStore) -> None:
    await store.runs.create(order("r1"))

    async def deaths() -> int:
        row = await store.runs.get("r1")
        assert row is not None
        return row.deaths

    for number in range(3):
        assert await lost(store, "r1", f"w{number}")
    assert await deaths() == 2
    epoch = await lost(store, "r1", "w3")
    assert epoch is not None
    journal = store.runs.journal("r1", epoch=epoch)
    await journal.append("r1", numbered("r1", started(), call_started("e1")))
    assert await lost(store, "r1", "w4") == 5
    assert await deaths() == 4  # it began, and that is all it did
    await store.runs.journal("r1", epoch=5).append("r1", numbered("r1", message(), first=3))
    assert await lost(store, "r1", "w5") == 6
    assert await deaths() == 1
    await store.runs.proved("r1", epoch=6)
    assert await deaths() == 0


async def announces(store: SqlStore, owner: str) -> None:
    await store.programs.announce(owner, silent_seconds=60)


async def leaves(store: SqlStore, owner: str) -> None:
    await store.programs.leave(owner)


async def gives_back(store: SqlStore, owner: str) -> None:
    await store.runs.release("r1", owner=owner, epoch=1)


async def deaths_of(store: SqlStore, run_id: str) -> int:
    row = await store.runs.get(run_id)
    assert row is not None
    return row.deaths


@pytest.mark.parametrize("is_heard_of", [announces, leaves, gives_back])
async def test_who_is_heard_of_again_was_not_dead(store: SqlStore, is_heard_of: Any) -> None:
    await store.runs.create(order("r1"))
    for owner in ("slow", "gone", "me"):
        assert await lost(store, "r1", owner)
    assert await deaths_of(store, "r1") == 2
    for _ in range(2):  # it is not taken off twice
        await is_heard_of(store, "slow")
        assert await deaths_of(store, "r1") == 1


async def test_who_was_heard_of_after_its_lease_is_not_counted_at_all(store: SqlStore) -> None:
    await store.runs.create(order("r1"))
    assert await lost(store, "r1", "slow")
    await announces(store, "slow")
    assert await lost(store, "r1", "me")
    assert await deaths_of(store, "r1") == 0


async def test_only_a_death_that_still_counts_is_taken_off(store: SqlStore) -> None:
    await store.runs.create(order("r1"))
    assert await lost(store, "r1", "slow")
    epoch = await lost(store, "r1", "gone")
    assert epoch is not None
    await store.runs.proved("r1", epoch=epoch)  # what was counted is forgotten
    assert await lost(store, "r1", "me")
    await announces(store, "slow")
    assert await deaths_of(store, "r1") == 1


async def test_what_is_handed_over_in_order_counts_as_no_death(store: SqlStore) -> None:
    await store.runs.create(order("r1"))
    for number in range(5):
        epoch = await lost(store, "r1", f"w{number}")
        assert epoch is not None
        await store.runs.release("r1", owner=f"w{number}", epoch=epoch)
    row = await store.runs.get("r1")
    assert row is not None
    assert row.deaths == 0


async def test_a_process_works_on_one_suspect_at_a_time_and_on_others_first(store: SqlStore) -> None:
    for run_id in ("r1", "r2", "fresh"):
        await store.runs.create(order(run_id))
    for number in range(2):
        for run_id in ("r1", "r2"):
            assert await lost(store, run_id, f"w{number}")
    assert await due(store) == ("fresh",)
    assert await due(store, suspects=True) == ("r1", "r2")
    assert await store.runs.claim("r1", owner="me", lease_seconds=9)
    assert await store.runs.claim("r2", owner="me", lease_seconds=9) is None
    assert await store.runs.claim("fresh", owner="me", lease_seconds=9)
    assert await store.runs.claim("r2", owner="another", lease_seconds=9)


async def test_a_run_s_row_tells_what_was_asked_and_what_became_of_it(store: SqlStore) -> None:
    await store.runs.create(order("r1", description="Refund  the\norder " + 400 * "x"))
    row = await store.runs.get("r1")
    assert row is not None
    assert row.request.startswith("Refund the order xxx")
    assert (len(row.request), row.outcome, row.model, row.waits_until) == (300, None, None, None)
    assert await store.runs.claim("r1", owner="w1", lease_seconds=60) == 1
    await end(store, "r1", epoch=1)
    ended = await store.runs.get("r1")
    assert ended is not None
    assert (ended.outcome, ended.input_tokens, ended.output_tokens) == ("unknown", 0, 0)
    await store.labels.put("r1", Label(source=LabelSource.RATING, value="bad", by="ada"))
    await store.labels.put("r1", Label(source=LabelSource.VERIFIER, value="good", by="check"))
    rated = await store.runs.get("r1")
    assert rated is not None
    assert rated.outcome == "not", "a person's word counts more than the verifier's"


async def test_runs_are_found_by_words_names_agents_tools_outcomes_and_times(store: SqlStore) -> None:
    await store.runs.create(order("r1", description="Refund the ÄPFEL, 100 %", at=NOW, principal="ada"))
    await store.runs.create(order("r2", description="Refund the pears", at=NOW + 10, principal="grace"))
    assert await store.runs.claim("r1", owner="w1", lease_seconds=60) == 1
    await store.runs.journal("r1", epoch=1).append(
        "r1", numbered("r1", started(), record("e1", tool="pay"), finished())
    )

    async def found(**only: Any) -> list[str]:
        rows = [row.id for row in await store.runs.list(**only)]
        assert await store.runs.count(**only) == len(rows)
        return rows

    assert await found(text="refund") == ["r2", "r1"]
    assert await found(text="äpfel refund") == ["r1"]
    assert await found(text="100 %") == ["r1"]
    assert await found(text="grace") == ["r2"]
    assert await found(text="R2") == ["r2"]
    assert await found(tool="pay") == ["r1"]
    assert await found(tool="pa") == []
    assert await found(outcome="unknown") == ["r1"]
    assert await found(since=NOW + 10) == ["r2"]
    assert await found(until=NOW + 10) == ["r1"]
    [agent] = {row.agent_name for row in await store.runs.list()}
    assert await found(agent=agent) == ["r2", "r1"]
    assert await found(agent="nobody") == []
    assert {name: row.request for name, row in (await store.runs.named(["r2", "r2", "r9"])).items()} == {
        "r2": "Refund the pears"
    }
    assert await store.runs.named([]) == {}


async def test_requests_of_runs_begun_before_their_rows_had_them_are_filled_in(store: SqlStore) -> None:
    await store.runs.create(order("r1", description="Refund the pears", principal="ada"))
    await store.downgrade(version_before("what a list of runs tells: the request, what became of it, what it took"))
    await store.upgrade()
    [row] = await store.runs.list(text="pears ada")
    assert row.request == "Refund the pears"

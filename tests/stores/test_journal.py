"""The journal in a database: the fence, the order of facts, and what follows from them."""

from __future__ import annotations

import asyncio

import pytest

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.calls import CallStatus
from journeyman.core.errors import JournalConflictError
from journeyman.core.events import ApprovalDecided, CallResolved, Fact
from journeyman.core.runs import Message, RunStatus
from journeyman.stores.store import SqlStore
from tests.stores.samples import (
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
    step,
    suspended,
)
from tests.waiting import WAIT_SECONDS


async def test_facts_come_back_as_they_were_written(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    facts = (*numbered("r1", started()), *step("r1", "e1", first=2))
    for fact in facts:
        await journal.append("r1", (fact,))
    assert tuple(await store.runs.facts("r1")) == facts
    assert tuple(await journal.read("r1", after=4)) == facts[4:]
    assert tuple(await store.runs.facts("r1", after=1, limit=2)) == facts[1:3]


async def test_a_fact_nobody_waits_for_is_accepted_before_it_is_committed(
    store: SqlStore, other: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journeyman.stores.database.LINGER_SECONDS", 600.0)
    journal = await claimed(store, "r1")
    [first, second, third] = numbered("r1", started(), message(), call_started("e1"))
    await journal.append("r1", (first,))
    await journal.append("r1", (second,))
    assert await other.runs.facts("r1") == ()
    await journal.append("r1", (third,))
    assert len(await other.runs.facts("r1")) == 3


async def test_accepted_facts_are_committed_in_a_moment_by_themselves(store: SqlStore, other: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", message()))
    async with asyncio.timeout(WAIT_SECONDS):
        # The test is about nobody waiting, so there is nothing to wait for but time.
        while not await other.runs.facts("r1"):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("sync", [True, False])
async def test_a_start_is_committed_before_append_returns(store: SqlStore, other: SqlStore, sync: bool) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", call_started("e1")), sync=sync)
    assert len(await other.runs.facts("r1")) == 1


async def test_the_end_of_a_call_with_effects_is_committed_before_append_returns(
    store: SqlStore, other: SqlStore
) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", call_started("e1")), sync=True)
    await journal.append("r1", numbered("r1", record("e1"), first=2))
    assert len(await other.runs.facts("r1")) == 2


async def test_siblings_that_append_at_once_keep_their_order(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    facts = numbered("r1", *(call_started(f"e{number}") for number in range(20)))
    await asyncio.gather(*(journal.append("r1", (fact,), sync=index % 2 == 0) for index, fact in enumerate(facts)))
    assert tuple(await store.runs.facts("r1")) == facts


async def test_many_runs_write_at_once(store: SqlStore, other: SqlStore) -> None:
    async def whole(place: SqlStore, run_id: str) -> None:
        journal = await claimed(place, run_id)
        for fact in (*numbered(run_id, started()), *step(run_id, f"{run_id}-e", first=2)):
            await journal.append(run_id, (fact,), sync=fact.type == "call_started")
        await journal.append(run_id, numbered(run_id, finished(), first=7))

    names = [f"r{number}" for number in range(20)]
    await asyncio.gather(*(whole(store if int(name[1:]) % 2 else other, name) for name in names))
    for name in names:
        assert [fact.seq for fact in await store.runs.facts(name)] == list(range(1, 8))
    assert len(await store.calls.list()) == 20


# --- the fence


async def test_a_wrong_epoch_cannot_write(store: SqlStore) -> None:
    await claimed(store, "r1")
    with pytest.raises(JournalConflictError, match="epoch 7 is over"):
        await store.runs.journal("r1", epoch=7).append("r1", numbered("r1", call_started("e1")))
    assert await store.runs.facts("r1") == ()


async def test_after_a_takeover_the_former_holder_cannot_write(store: SqlStore, other: SqlStore) -> None:
    former = await claimed(store, "r1")
    await former.append("r1", numbered("r1", started()), sync=True)
    await store.runs.renew("w1", lease_seconds=0)
    epoch = await other.runs.claim("r1", owner="w2", lease_seconds=60)
    assert epoch == 2
    with pytest.raises(JournalConflictError, match="another process has taken the run over"):
        await former.append("r1", numbered("r1", call_started("e1"), first=2), sync=True)
    await other.runs.journal("r1", epoch=epoch).append("r1", numbered("r1", call_started("e2"), first=2), sync=True)
    [_, kept] = await store.runs.facts("r1")
    assert kept == numbered("r1", call_started("e2"), first=2)[0]


async def test_a_refused_fact_nobody_waited_for_is_raised_by_the_next_append(store: SqlStore, other: SqlStore) -> None:
    former = await claimed(store, "r1")
    await store.runs.renew("w1", lease_seconds=0)
    await other.runs.claim("r1", owner="w2", lease_seconds=60)
    await former.append("r1", numbered("r1", message()))
    with pytest.raises(JournalConflictError):
        await store.flush()
    with pytest.raises(JournalConflictError, match="another process"):
        await former.append("r1", numbered("r1", message(), first=2))


async def test_a_number_that_is_taken_is_a_conflict(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", call_started("e1")))
    with pytest.raises(JournalConflictError, match="fact 1 is there already"):
        await journal.append("r1", numbered("r1", call_started("e2")))


async def test_a_number_too_high_is_a_conflict(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    with pytest.raises(JournalConflictError, match="the next is 1"):
        await journal.append("r1", numbered("r1", call_started("e1"), first=3))


async def test_the_same_facts_again_do_no_harm(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    first = numbered("r1", call_started("e1"))
    await journal.append("r1", first, sync=True)
    await journal.append("r1", (*first, *numbered("r1", record("e1"), first=2)), sync=True)
    assert [fact.seq for fact in await store.runs.facts("r1")] == [1, 2]


async def test_one_writer_s_conflict_harms_no_other_in_the_same_batch(store: SqlStore) -> None:
    good = [await claimed(store, f"r{number}") for number in range(5)]
    bad = store.runs.journal("r0", epoch=99)
    outcomes = await asyncio.gather(
        *(
            journal.append(f"r{number}", numbered(f"r{number}", call_started("e")))
            for number, journal in enumerate(good)
        ),
        bad.append("r0", numbered("r0", call_started("x"))),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 5 + [JournalConflictError]
    for number in range(5):
        assert len(await store.runs.facts(f"r{number}")) == 1


async def test_a_run_that_was_never_created_has_no_journal(store: SqlStore) -> None:
    with pytest.raises(JournalConflictError, match="create it"):
        await store.runs.journal("ghost", epoch=1).append("ghost", numbered("ghost", started()), sync=True)


# --- what follows from facts


async def status(store: SqlStore, run_id: str = "r1") -> tuple[RunStatus, str | None, int]:
    row = await store.runs.get(run_id)
    assert row is not None
    return row.status, row.owner, row.last_seq


async def test_the_run_s_row_follows_its_facts(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    assert await status(store) == (RunStatus.QUEUED, "w1", 0)
    await journal.append("r1", numbered("r1", started()))
    assert await status(store) == (RunStatus.RUNNING, "w1", 1)
    await store.approvals.ask(question("a-1"))
    await journal.append("r1", numbered("r1", suspended(), first=2))
    assert await status(store) == (RunStatus.AWAITING_APPROVAL, None, 2)
    epoch = await store.runs.claim("r1", owner="w2", lease_seconds=60)
    assert epoch == 2
    again = store.runs.journal("r1", epoch=epoch)
    await again.append("r1", numbered("r1", message(), first=3))
    assert await status(store) == (RunStatus.RUNNING, "w2", 3)
    await again.append("r1", numbered("r1", finished(RunStatus.LIMIT_REACHED), first=4))
    assert await status(store) == (RunStatus.LIMIT_REACHED, None, 4)


async def test_a_finished_call_is_in_the_call_log_without_its_content(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", record("e1", status=CallStatus.UNKNOWN), record("e2", tool="look")))
    [row] = await store.calls.list(tool_name="pay")
    assert (row.status, row.error_code, row.duration_ms, row.risk) == ("unknown", "NO_WAY", 250.0, "irreversible")
    await journal.append("r1", numbered("r1", record("e1"), first=3))
    assert {call.execution_id: call.status for call in await store.calls.list(run_id="r1")} == {
        "e1": "success",
        "e2": "success",
    }
    assert await store.calls.list(since=NOW + 1) == ()


async def test_a_refused_call_and_a_person_s_resolution_leave_audit_rows(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    facts: list[Fact] = [
        record("e1", status=CallStatus.DENIED),
        record("e2", status=CallStatus.ERROR),
        CallResolved(call_id="call-9", action="skip", by="grace", result="a secret"),
    ]
    await journal.append("r1", numbered("r1", *facts))
    refused, resolved = await store.audit.list()
    assert (refused.kind, refused.actor, refused.subject) == ("call_refused", "ada", "call-e1")
    assert refused.details == {"tool": "pay", "execution_id": "e1", "code": "NO_WAY"}
    assert (resolved.kind, resolved.actor, resolved.details) == ("resolved", "grace", {"action": "skip"})
    assert "secret" not in refused.model_dump_json() + resolved.model_dump_json()


async def test_a_decision_that_is_in_the_journal_is_consumed(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await store.approvals.ask(question("a-1"))
    await journal.append("r1", numbered("r1", suspended()))
    assert await due(store) == ()
    await store.approvals.decide("a-1", ApprovalStatus.APPROVED, by="grace")
    assert await due(store) == ("r1",)
    epoch = await store.runs.claim("r1", owner="w1", lease_seconds=60)
    assert epoch is not None
    decided = ApprovalDecided(approval_id="a-1", call_id="call-a-1", status=ApprovalStatus.APPROVED)
    again = store.runs.journal("r1", epoch=epoch)
    await again.append("r1", numbered("r1", decided, suspended(), first=2))
    assert await due(store) == ()


async def test_the_questions_of_an_ended_run_are_withdrawn(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await store.approvals.ask(question("a-1"))
    await journal.append("r1", numbered("r1", finished(RunStatus.CANCELLED)))
    approval = await store.approvals.get("a-1")
    assert approval is not None
    assert approval.status is ApprovalStatus.SUPERSEDED
    assert [row.kind for row in await store.audit.list()] == ["run_cancelled", "approval_superseded"]


async def test_an_ended_session_run_leaves_what_was_said_after_its_history(store: SqlStore) -> None:
    first = await claimed(store, "r1", session="s")
    said = (Message.user("Do it"), Message(role="assistant", content="done"))
    await first.append("r1", numbered("r1", started(), finished(messages=said)))
    assert tuple(await store.conversations.messages("s")) == said
    second = await claimed(store, "r2", session="s")
    more = (Message.user("And that"), Message(role="assistant", content="done, too"))
    await second.append("r2", numbered("r2", started(history=said), finished(messages=said + more)))
    assert tuple(await store.conversations.messages("s")) == said + more
    assert tuple(await store.conversations.messages("s", last=1)) == more[1:]


async def test_a_run_outside_a_session_leaves_no_conversation(store: SqlStore) -> None:
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", started(), finished(messages=(Message.user("Do it"),))))
    assert await store.conversations.list() == ()


async def test_text_that_no_database_takes_is_kept_as_well_as_can_be(store: SqlStore) -> None:
    journal = await claimed(store, "r1", session="s")
    odd = "half \ud800 and nul \x00."
    said = (Message.user(odd),)
    facts = numbered("r1", message(odd), record("e1", tool=odd, status=CallStatus.DENIED), finished(messages=said))
    await journal.append("r1", facts)
    [kept, *_] = await store.runs.facts("r1")
    assert kept.type == "message"
    assert kept.text == "half ? and nul \x00."
    assert [message.content for message in await store.conversations.messages("s")] == ["half ? and nul \x00."]
    assert len(await store.calls.list()) == 1
    assert await store.audit.verify() == 1


async def test_a_journal_serves_one_run_only(store: SqlStore) -> None:
    await store.runs.create(order("r2"))
    journal = await claimed(store, "r1")
    with pytest.raises(ValueError, match="'r1', not of 'r2'"):
        await journal.append("r2", numbered("r2", started()))

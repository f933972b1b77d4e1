"""Approvals and conversations in a database."""

from __future__ import annotations

import asyncio

import pytest

from journeyman.core.approvals import ApprovalStatus, Grant
from journeyman.core.data import digest, moment
from journeyman.core.policy import Principal
from journeyman.core.runs import Message
from journeyman.stores.store import SqlStore
from journeyman.testing import FakeClock
from tests.stores.samples import NOW, claimed, finished, numbered, question, started


async def test_a_question_is_kept_once_and_returned_as_it_stands(store: SqlStore) -> None:
    assert await store.approvals.ask(question("a-1")) == question("a-1")
    await store.approvals.decide("a-1", ApprovalStatus.DENIED, by="grace", reason="too much")
    again = await store.approvals.ask(question("a-1"))
    assert again == question("a-1").model_copy(
        update={
            "status": ApprovalStatus.DENIED,
            "decided_at": moment(NOW),
            "decided_by": "grace",
            "reason": "too much",
        }
    )
    assert await store.approvals.get("a-1") == again
    assert await store.approvals.get("ghost") is None


async def test_edited_arguments_are_kept_beside_the_asked_ones(store: SqlStore) -> None:
    await store.approvals.ask(question("a-1"))
    assert await store.approvals.edited_arguments("a-1") is None
    decided = await store.approvals.decide(
        "a-1", ApprovalStatus.APPROVED, by="grace", arguments={"amount": 7, "note": "ä"}
    )
    assert decided is not None
    assert decided.arguments == {"amount": 42}
    assert await store.approvals.edited_arguments("a-1") == {"amount": 7, "note": "ä"}
    assert await store.approvals.edited_arguments("ghost") is None


async def test_a_decision_is_final(store: SqlStore) -> None:
    await store.approvals.ask(question("a-1"))
    assert await store.approvals.decide("a-1", ApprovalStatus.APPROVED, by="grace") is not None
    assert await store.approvals.decide("a-1", ApprovalStatus.DENIED, by="ada") is None
    assert await store.approvals.decide("ghost", ApprovalStatus.DENIED, by="ada") is None
    with pytest.raises(ValueError, match="final status"):
        await store.approvals.decide("a-1", ApprovalStatus.PENDING, by="ada")


async def test_of_people_deciding_at_once_exactly_one_wins(store: SqlStore, other: SqlStore) -> None:
    await store.approvals.ask(question("a-1"))
    outcomes = await asyncio.gather(
        *(
            (store if number % 2 else other).approvals.decide(
                "a-1",
                ApprovalStatus.APPROVED if number % 3 else ApprovalStatus.DENIED,
                by=f"person-{number}",
            )
            for number in range(12)
        )
    )
    [winner] = [outcome for outcome in outcomes if outcome is not None]
    assert await store.approvals.get("a-1") == winner
    [row] = await store.audit.list()
    assert (row.kind, row.actor) == (f"approval_{winner.status.value}", winner.decided_by)


async def test_every_decision_leaves_an_audit_row_without_content(store: SqlStore) -> None:
    await store.approvals.ask(question("a-1"))
    await store.approvals.decide(
        "a-1", ApprovalStatus.APPROVED, by="grace", reason="top secret", arguments={"amount": 7}
    )
    [row] = await store.audit.list()
    assert (row.kind, row.actor, row.run_id, row.subject, row.time) == (
        "approval_approved",
        "grace",
        "r1",
        "a-1",
        NOW,
    )
    assert row.details == {
        "tool": "pay",
        "call_id": "call-a-1",
        "digest": "d" * 32,
        "risk": "irreversible",
        "edited": True,
        "edited_digest": digest('{"amount":7}'),
    }


async def test_past_its_time_a_question_cannot_be_decided_but_expires(store: SqlStore, clock: FakeClock) -> None:
    await store.approvals.ask(question("a-1", expires_at=NOW + 10))
    await store.approvals.ask(question("a-2", expires_at=NOW + 20))
    clock.advance(9)
    assert await store.approvals.expire() == ()
    clock.advance(1)
    assert await store.approvals.decide("a-1", ApprovalStatus.APPROVED, by="grace") is None
    [expired] = await store.approvals.expire()
    assert (expired.id, expired.status, expired.decided_by) == ("a-1", ApprovalStatus.EXPIRED, None)
    assert await store.approvals.expire() == ()
    assert [row.kind for row in await store.audit.list()] == ["approval_expired"]
    clock.advance(50)
    assert [expired.id for expired in await store.approvals.expire()] == ["a-2"]


async def test_many_questions_of_one_principal_hide_nobody_elses(store: SqlStore) -> None:
    for number in range(60):
        who = Principal("eve" if number < 57 else f"p{number}")
        asked = question(f"a-{number:02}").model_copy(update={"requested_at": moment(NOW + number), "principal": who})
        await store.approvals.ask(asked)
    first = await store.approvals.list(status=ApprovalStatus.PENDING, limit=5)
    assert [approval.id for approval in first] == ["a-00", "a-57", "a-58", "a-59", "a-01"]
    pages = [await store.approvals.list(status=ApprovalStatus.PENDING, limit=20, offset=at) for at in (0, 20, 40)]
    assert len({approval.id for page in pages for approval in page}) == 60


async def test_approvals_are_listed_oldest_first(store: SqlStore) -> None:
    for number in (3, 1, 2):
        asked = question(f"a-{number}", run_id=f"r{number % 2}")
        await store.approvals.ask(asked.model_copy(update={"requested_at": moment(NOW + number)}))
    await store.approvals.decide("a-1", ApprovalStatus.DENIED, by="grace")
    assert [approval.id for approval in await store.approvals.list()] == ["a-1", "a-2", "a-3"]
    assert [approval.id for approval in await store.approvals.list(limit=1, offset=1)] == ["a-2"]
    assert [approval.id for approval in await store.approvals.list(status=ApprovalStatus.PENDING)] == ["a-2", "a-3"]
    pending_of_one = await store.approvals.list(status=ApprovalStatus.PENDING, run_id="r1")
    assert [approval.id for approval in pending_of_one] == ["a-3"]


# --- conversations


async def said(store: SqlStore, run_id: str, session: str, text: str, *, at: float) -> None:
    journal = await claimed(store, run_id, session=session)
    facts = numbered(run_id, started(), finished(messages=(Message.user(text),)))
    facts[-1].stamp(run_id, 2, at)
    await journal.append(run_id, facts)


async def test_sessions_are_listed_most_recently_used_first(store: SqlStore) -> None:
    await said(store, "r1", "s", "one", at=NOW + 10)
    await said(store, "r2", "t", "two", at=NOW + 20)
    await said(store, "r3", "s", "three", at=NOW + 30)
    first, second = await store.conversations.list()
    assert (first.id, first.principal_id, first.message_count) == ("s", "ada", 2)
    assert (first.created_at, first.updated_at) == (NOW, NOW + 30)
    assert (second.id, second.message_count) == ("t", 1)
    assert [row.id for row in await store.conversations.list(limit=1, offset=1)] == ["t"]
    assert [message.content for message in await store.conversations.messages("s")] == ["one", "three"]


async def test_a_deleted_session_is_forgotten_with_what_was_allowed_in_it(store: SqlStore, clock: FakeClock) -> None:
    await said(store, "r1", "s", "one", at=NOW)
    await store.grants.grant(Grant(id="g-1", session_id="s", tool_name="pay", granted_by="grace", granted_at=NOW))
    clock.advance(5)
    assert await store.conversations.delete("s")
    assert not await store.conversations.delete("s")
    assert await store.conversations.messages("s") == ()
    assert await store.conversations.list() == ()
    assert await store.runs.get("r1") is None
    assert await store.grants.list() == ()
    assert [row.kind for row in await store.audit.list()] == ["grant_given", "grant_revoked", "session_deleted"]

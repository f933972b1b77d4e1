"""A session belongs to whoever began it: one write decides, however many begin it at once."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from journeyman.core.errors import SessionTakenError
from journeyman.core.runs import Message
from journeyman.stores.conversations import add_messages, touch_session
from journeyman.stores.store import SqlStore
from tests.stores.samples import LATER, NOW, claimed, finished, numbered, order, started

ROUNDS = 40


async def begun(store: SqlStore, run_id: str, session: str, principal: str | None) -> bool:
    try:
        return await store.runs.create(order(run_id, session=session, principal=principal))
    except SessionTakenError:
        return False


async def test_of_two_who_begin_one_session_at_once_one_has_it(store: SqlStore, other: SqlStore) -> None:
    for number in range(ROUNDS):
        session = f"s-{number}"
        both = await asyncio.gather(
            begun(store, f"ada-{number}", session, "ada"), begun(other, f"bob-{number}", session, "bob")
        )
        assert sorted(both) == [False, True]
        row = await store.conversations.get(session)
        runs = await store.runs.list(session_id=session)
        assert row is not None
        assert [run.principal_id for run in runs] == [row.principal_id] == [("ada", "bob")[both.index(True)]]


@pytest.mark.parametrize("owner", ["ada", None])
@pytest.mark.parametrize("stranger", ["bob", "Ada", None])
async def test_nobody_else_gets_into_a_session(store: SqlStore, owner: str | None, stranger: str | None) -> None:
    if owner == stranger:
        return
    await store.runs.create(order("r1", session="s", principal=owner))
    before = await store.conversations.get("s")
    with pytest.raises(SessionTakenError, match="'s' was begun by another principal"):
        await store.runs.create(order("r2", session="s", principal=stranger, at=LATER))
    assert await store.conversations.get("s") == before, "and leaves no trace in it"
    assert await store.runs.get("r2") is None
    assert await store.runs.create(order("r3", session="s", principal=stranger, at=LATER), any_session=True)
    assert await store.runs.create(order("r4", session="s", principal=owner, at=LATER))
    after = await store.conversations.get("s")
    assert after is not None
    assert after.principal_id == owner


async def test_a_run_that_is_ordered_again_makes_no_session(store: SqlStore, other: SqlStore) -> None:
    made = await asyncio.gather(
        *(begun(store if number % 2 else other, "r1", f"s-{number}", "ada") for number in range(8))
    )
    assert made.count(True) == 1
    assert len(await store.conversations.list()) == 1


async def test_only_the_owner_reads_and_deletes_in_one_write(store: SqlStore) -> None:
    journal = await claimed(store, "r1", session="s")
    await store._database.write(lambda connection: add_messages(connection, "s", "r1", [Message.user("Mine")]))
    for whose in ("bob", None):
        assert await store.conversations.messages("s", principal_id=whose) == ()
        assert not await store.conversations.delete("s", principal_id=whose)
    assert [message.content for message in await store.conversations.messages("s", principal_id="ada")] == ["Mine"]
    assert not await store.conversations.delete("s", by="ada", principal_id="ada"), "its run has not ended"
    await journal.append("r1", numbered("r1", started(), finished()), sync=True)
    assert await store.conversations.delete("s", by="ada", principal_id="ada")
    [row] = await store.audit.list(kind="session_deleted")
    assert (row.actor, row.subject, row.details) == ("ada", "s", {"principal_id": "ada", "runs": 1})
    assert row.time == pytest.approx(NOW)


async def test_a_session_is_not_deleted_under_a_run_that_begins_meanwhile(store: SqlStore, other: SqlStore) -> None:
    for number in range(ROUNDS):
        session = f"s-{number}"
        await store._database.write(partial(touch_session, session_id=session, principal_id="ada", now=1.0))
        deleted, _ = await asyncio.gather(
            store.conversations.delete(session), begun(other, f"r-{number}", session, "ada")
        )
        row = await store.conversations.get(session)
        assert row is not None, "it is there: as before, or begun anew"
        assert (row.created_at != 1) is deleted

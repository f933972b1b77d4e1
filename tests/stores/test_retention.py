"""Retention: everything that is old goes, in small steps, and its room with it; what is in use stays."""

from __future__ import annotations

from typing import Any

from journeyman.core.events import Fact
from journeyman.core.runs import Message, RunStatus
from journeyman.stores import retention
from journeyman.stores.store import SqlStore
from tests.stores.samples import NOW, claimed, finished, message, numbered, order, record, started

OLD = NOW - 40 * 24 * 3600
SOON = NOW + 1_000_000


async def rows(store: SqlStore, table: str) -> int:
    return int(await store._database.read(lambda connection: connection.query(f"SELECT COUNT(*) FROM {table}")[0][0]))


async def ended(store: SqlStore, run_id: str, *, events: int = 5, session: str | None = None) -> None:
    await store.runs.create(order(run_id, session=session))
    journal = await claimed(store, run_id)
    said = (Message.user("hello"), Message(role="assistant", content="x" * 1_000))
    facts: list[Fact] = [
        started(),
        *(message("y" * 500) for _ in range(events)),
        record(f"{run_id}.c1"),
        finished(messages=said),
    ]
    await journal.append(run_id, numbered(run_id, *facts), sync=True)
    await store.artifacts.put(run_id, "z" * 100_000)


async def test_everything_old_is_forgotten_and_its_room_given_back(store: SqlStore) -> None:
    for number in range(30):
        await ended(store, f"r{number}", events=50, session="talk")
    await store.runs.create(order("goes-on", session="other"))
    done = await store.purge(before=SOON)
    assert done.counts["runs"] == 30
    assert done.counts["events"] == 30 * 53
    assert done.counts["artifacts"] == 60
    assert done.counts["sessions"] == 1
    assert done.counts["messages"] == 60
    assert done.counts["calls"] == 30
    assert await rows(store, "facts") == 0
    assert await rows(store, "artifacts") == 0
    assert [row.id for row in await store.runs.list()] == ["goes-on"]
    assert await rows(store, "sessions") == 1  # the one whose run goes on
    if not store.shared_limits:
        assert done.bytes_after < done.bytes_before / 3
    again = await store.purge(before=SOON)
    assert again.counts == {"audit rows": 1}  # what told of it, and is as old by then


async def test_what_is_not_so_old_stays(store: SqlStore) -> None:
    await ended(store, "r1", session="s")
    done = await store.purge(before=OLD)
    assert done.counts == {}
    row = await store.runs.get("r1")
    assert row is not None
    assert row.status is RunStatus.COMPLETED


async def test_no_transaction_deletes_more_than_a_little(store: SqlStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(retention, "ROWS_AT_ONCE", 20)
    await ended(store, "r1", events=200)
    largest = 0
    write = store._database.write

    async def watched(work: Any, **options: Any) -> Any:
        nonlocal largest
        changed = await write(work, **options)
        largest = max(largest, changed if isinstance(changed, int) else 0)
        return changed

    monkeypatch.setattr(store._database, "write", watched)
    done = await store.purge(before=SOON)
    assert done.counts["events"] == 203
    assert largest <= 20


async def test_the_audit_still_verifies_when_its_old_rows_are_gone(store: SqlStore) -> None:
    for number in range(5):
        await store.audit.append("note", actor="ada", run_id=None, subject=str(number), details={}, now=NOW + number)
    done = await store.purge(before=NOW + 3, by="grace")
    assert done.counts["audit rows"] == 3
    await store.audit.verify()


async def test_calls_of_a_run_that_goes_on_stay(store: SqlStore) -> None:
    await store.runs.create(order("waits"))
    journal = await claimed(store, "waits")
    await journal.append("waits", numbered("waits", started(), record("waits.c1")), sync=True)
    assert await rows(store, "calls") == 1
    done = await store.purge(before=SOON)
    assert (await rows(store, "calls"), done.counts.get("calls")) == (1, None)

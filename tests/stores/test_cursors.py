"""Cursors over ended runs: every run once, in order, across processes and crashes."""

from __future__ import annotations

import asyncio

import pytest

from journeyman.core.errors import JournalConflictError, PlaybookConflictError
from journeyman.core.playbook import PlaybookChange
from journeyman.stores.store import SqlStore, open_store
from tests.stores.samples import claimed, finished, numbered, order, started


async def end(store: SqlStore, run_id: str) -> None:
    journal = await claimed(store, run_id)
    await journal.append(run_id, numbered(run_id, started(), finished()), sync=True)


async def take(store: SqlStore, owner: str, *, limit: int = 100) -> list[str] | None:
    batch = await store.cursors.take("learner", owner=owner, lease_seconds=30, limit=limit)
    if batch is None:
        return None
    await store.cursors.advance(batch)
    return [row.id for row in batch.runs]


async def test_every_ended_run_is_read_once_in_the_order_of_the_ends(store: SqlStore) -> None:
    for run_id in ("b", "a", "c"):
        await end(store, run_id)
    await store.runs.create(order("unfinished"))
    assert await take(store, "one", limit=2) == ["b", "a"]
    assert await take(store, "one") == ["c"]
    assert await take(store, "one") is None
    await end(store, "d")
    assert await take(store, "two") == ["d"]


async def test_a_reader_that_dies_before_it_commits_loses_nothing_and_the_next_begins_where_it_began(
    store: SqlStore,
) -> None:
    await end(store, "a")
    dead = await store.cursors.take("learner", owner="dead", lease_seconds=30)
    assert dead is not None
    assert await take(store, "alive") is None  # another holds the cursor
    dead = await store.cursors.take("learner", owner="dead", lease_seconds=0)
    assert dead is not None
    assert await take(store, "alive") == ["a"]
    with pytest.raises(JournalConflictError, match="taken over"):
        await store.cursors.advance(dead)
    assert await take(store, "alive") is None


async def test_what_a_reader_writes_is_committed_with_its_progress_or_not_at_all(store: SqlStore) -> None:
    await end(store, "a")
    batch = await store.cursors.take("learner", owner="one", lease_seconds=30)
    assert batch is not None
    late = PlaybookChange(domain="shop", expected=7)
    with pytest.raises(PlaybookConflictError):
        await store.playbooks.commit([late], now=1.0, batch=batch)
    assert await store.playbooks.domains() == []
    assert await take(store, "one") == ["a"]


async def test_readers_in_many_processes_read_every_run_once_between_them(store: SqlStore, store_url: str) -> None:
    readers = [open_store(store_url) for _ in range(3)]
    for reader in readers:
        await reader.open()
    ends = [f"run-{number}" for number in range(20)]
    seen: list[str] = []

    async def write(part: list[str]) -> None:
        for run_id in part:
            await end(store, run_id)

    async def read(reader: SqlStore, owner: str) -> None:
        while len(seen) < len(ends):
            seen.extend(await take(reader, owner, limit=3) or [])

    reading = [read(reader, f"reader-{number}") for number, reader in enumerate(readers)]
    await asyncio.gather(write(ends[:10]), write(ends[10:]), *reading)
    for reader in readers:
        await reader.close()
    assert sorted(seen) == sorted(ends)

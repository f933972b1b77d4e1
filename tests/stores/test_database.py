"""The thread all writes go through: order, group commit, one job's failure, commits of uncertain fate."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from journeyman.core.errors import StoreError
from journeyman.stores.connection import Connection, SqliteConnection, SqliteDriver
from journeyman.stores.store import SqlStore
from tests.stores.samples import call_started, claimed, message, numbered, record


class Watched(SqliteConnection):
    """A connection that counts its commits, and can lose the news of one."""

    def __init__(self, path: str, *, writes: bool) -> None:
        super().__init__(path, writes=writes)
        self.transactions: list[bool] = []
        self.lose_the_news = False

    def begin(self, *, sync: bool) -> None:
        super().begin(sync=sync)
        self.transactions.append(sync)

    def commit(self) -> None:
        super().commit()
        if self.lose_the_news:
            self.lose_the_news = False
            lost = sqlite3.OperationalError("the news was lost")
            lost.sqlite_errorcode = sqlite3.SQLITE_IOERR
            raise lost


class WatchedDriver(SqliteDriver):
    writing: Watched

    def connect(self, *, writes: bool) -> Watched:
        connection = Watched(self._path, writes=writes)
        if writes:
            self.writing = connection
        return connection


@asynccontextmanager
async def watched(path: Path) -> AsyncIterator[tuple[SqlStore, WatchedDriver]]:
    driver = WatchedDriver(str(path / "watched.db"))
    store = SqlStore(driver, retry_seconds=0.5)
    await store.open()
    try:
        yield store, driver
    finally:
        await store.close()


class Busy:
    """Keeps the writer busy until it is let go, so that what is queued meanwhile forms one batch."""

    def __init__(self, store: SqlStore) -> None:
        self._go = threading.Event()
        self._started = threading.Event()
        self._store = store

    async def __aenter__(self) -> None:
        self._waiting = asyncio.ensure_future(self._store._database.write(self._wait, sync=False))
        await asyncio.to_thread(self._started.wait)

    async def __aexit__(self, *details: object) -> None:
        self._go.set()
        await self._waiting

    def _wait(self, connection: Connection) -> None:
        self._started.set()
        self._go.wait()


async def test_what_is_queued_together_is_committed_together_and_synced_if_one_asks(tmp_path: Path) -> None:
    async with watched(tmp_path) as (store, driver):
        journals = [await claimed(store, f"r{number}") for number in range(10)]
        driver.writing.transactions.clear()
        async with Busy(store):
            appends = [
                asyncio.ensure_future(
                    journal.append(f"r{number}", numbered(f"r{number}", call_started("e")), sync=number == 3)
                )
                for number, journal in enumerate(journals)
            ]
            await asyncio.sleep(0)
        await asyncio.gather(*appends)
        assert driver.writing.transactions == [False, True]


async def test_facts_that_gather_ride_on_the_next_awaited_write(tmp_path: Path) -> None:
    async with watched(tmp_path) as (store, driver):
        journal = await claimed(store, "r1")
        driver.writing.transactions.clear()
        async with Busy(store):
            for fact in numbered("r1", message("one"), message("two")):
                await journal.append("r1", (fact,))
            start = asyncio.ensure_future(journal.append("r1", numbered("r1", call_started("e"), first=3), sync=True))
            await asyncio.sleep(0)
        await start
        assert driver.writing.transactions == [False, True]
        assert len(await store.runs.facts("r1")) == 3


async def test_a_job_that_fails_in_a_batch_leaves_nothing_and_harms_no_other(tmp_path: Path) -> None:
    def insert(name: str, connection: Connection) -> None:
        connection.execute("INSERT INTO buckets (bucket, tokens, since) VALUES (?, 1, 1)", name)

    def fails(connection: Connection) -> None:
        insert("bad", connection)
        raise LookupError("my own fault")

    async with watched(tmp_path) as (store, _):
        database = store._database
        async with Busy(store):
            writes = [
                asyncio.ensure_future(database.write(work))
                for work in (
                    lambda connection: insert("a", connection),
                    fails,
                    lambda connection: insert("b", connection),
                )
            ]
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None), LookupError, type(None)]
        rows = await database.read(lambda connection: connection.query("SELECT bucket FROM buckets ORDER BY bucket"))
        assert rows == [("a",), ("b",)]


async def test_a_commit_of_uncertain_fate_can_be_repeated(tmp_path: Path) -> None:
    async with watched(tmp_path) as (store, driver):
        journal = await claimed(store, "r1")
        driver.writing.lose_the_news = True
        start = numbered("r1", call_started("e"))
        with pytest.raises(StoreError, match="the news was lost"):
            await journal.append("r1", start, sync=True)
        await journal.append("r1", start, sync=True)
        await journal.append("r1", numbered("r1", record("e"), first=2))
        assert [fact.seq for fact in await store.runs.facts("r1")] == [1, 2]
        assert len(await store.calls.list()) == 1


async def test_who_stops_waiting_does_not_undo_the_write(tmp_path: Path) -> None:
    async with watched(tmp_path) as (store, _):
        journal = await claimed(store, "r1")
        async with Busy(store):
            append = asyncio.ensure_future(journal.append("r1", numbered("r1", call_started("e"))))
            await asyncio.sleep(0)
            append.cancel()
            with pytest.raises(asyncio.CancelledError):
                await append
        await journal.append("r1", numbered("r1", record("e"), first=2))
        assert len(await store.runs.facts("r1")) == 2


async def test_a_read_does_not_wait_for_a_slow_write(tmp_path: Path) -> None:
    async with watched(tmp_path) as (store, _):
        await claimed(store, "r1")
        async with Busy(store):
            assert await store.runs.get("r1") is not None

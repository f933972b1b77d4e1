"""A store is closed in bounded time, and one whose file has gone notices before it writes."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from journeyman.core.errors import StoreClosedError, StoreError
from journeyman.stores.journal import retry_store_faults
from journeyman.stores.store import SqlStore, open_store
from journeyman.testing import FakeClock
from tests.stores.samples import claimed, numbered, order, started
from tests.stores.test_store_faults import locked

BOUND = 30.0
"""Only what hangs takes so long."""


@pytest_asyncio.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqlStore]:
    folder = tmp_path / "folder"
    folder.mkdir()
    opened = open_store(f"sqlite:///{folder / 'x.db'}", retry_seconds=0.1)
    await opened.open()
    yield opened
    await opened.close()


# --- closing


async def test_what_comes_after_the_end_is_refused_and_not_left_waiting(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    await store.open()
    await store.close()
    async with asyncio.timeout(BOUND):
        with pytest.raises(StoreClosedError):
            await store.runs.create(order("r1"))
        with pytest.raises(StoreClosedError):
            await store.runs.get("r1")
        with pytest.raises(StoreClosedError):
            await retry_store_faults(lambda: store.runs.get("r1"), clock=FakeClock())
        await store.close()


async def test_closing_needs_no_thread_of_the_event_loop(tmp_path: Path) -> None:
    """They may all be taken by something that hangs."""
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}")
    await store.open()
    release, loop = threading.Event(), asyncio.get_running_loop()
    taken = [loop.run_in_executor(None, release.wait) for _ in range(100)]
    try:
        async with asyncio.timeout(BOUND):
            await store.close()
    finally:
        release.set()
        await asyncio.gather(*taken)


async def test_a_lock_does_not_hold_up_the_end(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", retry_seconds=3600)
    await store.open()
    with locked(tmp_path / "x.db"):
        waiting = asyncio.ensure_future(store.runs.create(order("r1")))
        await asyncio.sleep(0)
        async with asyncio.timeout(BOUND):
            await store.close()
        with pytest.raises(StoreError):
            await waiting


@contextmanager
def stopped(server: Any) -> Iterator[None]:
    """It takes what is sent and never answers."""
    pid = int((Path(server.pgdata) / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    family = [pid, *map(int, children)]
    for process in family:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in family:
            os.kill(process, signal.SIGCONT)


@pytest.mark.slow
async def test_a_server_that_does_not_answer_does_not_hold_up_the_end(own_server: Any) -> None:
    store = open_store(own_server.get_uri(), retry_seconds=3600)
    await store.open()
    assert await store.runs.get("r1") is None
    with stopped(own_server):
        reading = asyncio.ensure_future(store.runs.get("r1"))
        writing = asyncio.ensure_future(store.runs.create(order("r1")))
        await asyncio.sleep(0.2)  # let them be on their way
        async with asyncio.timeout(2 * BOUND):
            await store.close()
            await asyncio.gather(reading, writing, return_exceptions=True)


# --- a file that has gone


def content(folder: Path) -> list[str] | None:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else None


async def refused(store: SqlStore, folder: Path) -> None:
    before = content(folder)
    with pytest.raises(StoreError, match="deleted, moved or replaced"):
        await store.runs.create(order("r2"))
    assert content(folder) == before, "nothing is made in its place"


async def test_a_file_that_was_deleted_is_noticed(store: SqlStore, tmp_path: Path) -> None:
    await store.runs.create(order("r1"))
    (tmp_path / "folder" / "x.db").unlink()
    await refused(store, tmp_path / "folder")
    await refused(store, tmp_path / "folder")
    with pytest.raises(StoreError, match="deleted, moved or replaced"):
        await store.runs.get("r1")


async def test_a_file_that_was_replaced_is_noticed(store: SqlStore, tmp_path: Path) -> None:
    await store.runs.create(order("r1"))
    path = tmp_path / "folder" / "x.db"
    path.with_suffix(".copy").write_bytes(path.read_bytes())
    path.with_suffix(".copy").rename(path)
    await refused(store, tmp_path / "folder")


async def test_a_log_that_was_deleted_is_noticed(store: SqlStore, tmp_path: Path) -> None:
    await store.runs.create(order("r1"))
    (tmp_path / "folder" / "x.db-wal").unlink()
    await refused(store, tmp_path / "folder")


async def test_a_folder_that_was_moved_is_noticed_and_one_that_is_moved_back_goes_on(
    store: SqlStore, tmp_path: Path
) -> None:
    journal = await claimed(store, "r1")
    (tmp_path / "folder").rename(tmp_path / "elsewhere")
    await refused(store, tmp_path / "folder")
    (tmp_path / "elsewhere").rename(tmp_path / "folder")
    await journal.append("r1", numbered("r1", started()), sync=True)
    assert await store.runs.create(order("r2"))
    assert len(await store.runs.facts("r1")) == 1


async def test_a_program_may_change_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///relative.db")
    await store.open()
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert await store.runs.create(order("r1"))
    assert await store.runs.get("r1") is not None
    await store.close()


async def test_a_store_that_was_not_opened_says_so_at_once(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'never.db'}")
    with pytest.raises(StoreClosedError, match=r"await store\.open\(\)"):
        await store.schema_version()

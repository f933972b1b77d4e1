"""Backups: one file of a whole store, restored on either kind of database, while runs are under way."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from journeyman import ConfigurationError
from journeyman.app.journeyman import Journeyman
from journeyman.core.data import moment
from journeyman.core.runs import RunStatus
from journeyman.core.tasks import Task
from journeyman.stores import migrations
from journeyman.stores.store import SqlStore, open_store
from tests.app.shop import ADA, Ledger, clerk, deletes, shop
from tests.stores.samples import NOW, call_started, claimed, numbered, order, started


@pytest.fixture(params=["sqlite", "postgresql"])
def other_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'other.db'}"
    base, schema = request.getfixturevalue("postgres_server").get_uri(), f"restored_{os.urandom(4).hex()}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    return f"{base}&options=-csearch_path%3D{schema}"


async def contents(store: SqlStore) -> dict[str, int]:
    def count(connection: Any) -> dict[str, int]:
        tables = ("runs", "facts", "sessions", "messages", "approvals", "grants", "calls", "audit", "tasks")
        return {table: connection.query(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables}

    return await store._database.read(count)


async def test_runs_that_wait_and_runs_under_way_go_on_from_a_backup(
    store_url: str, other_url: str, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    library, file = shop(ledger), tmp_path / "backup.db"
    model = deletes("W-1")
    async with Journeyman(library=library, store=store_url, model=model) as app:
        handle = await app.session("s").send(clerk(library), "Delete W-1", principal=ADA, run_id="waits")
        assert await handle.wait() == "awaiting_approval"
        assert isinstance(app.store, SqlStore)
        # One that a process holds at this moment, in the middle of a call that may be repeated.
        await app.store.runs.create(order("held", at=NOW))
        epoch = await app.store.runs.claim("held", owner="elsewhere", lease_seconds=3000)
        assert epoch == 1
        await app.store.tasks.add(
            Task(id="t1", title="Water the plants", created_at=moment(NOW), updated_at=moment(NOW))
        )
        await app.store.backup(file)
        before = await contents(app.store)
        with pytest.raises(ConfigurationError, match="exists already"):
            await app.store.backup(file)
    assert file.stat().st_mode & 0o077 == 0

    restored = open_store(other_url)
    await restored.open()
    assert await restored.restore(file) > 0
    assert await contents(restored) == before
    assert await restored.audit.verify() == before["audit"]
    row = await restored.runs.get("held")
    assert row is not None
    assert (row.owner, row.epoch) == (None, 2)  # whoever held it cannot write here
    assert "held" in [found.id for found in await restored.runs.due()]
    with pytest.raises(ConfigurationError, match="holds something already"):
        await restored.restore(file)
    assert await restored.restore(file, replace=True) > 0
    await restored.close()

    async with Journeyman(library=library, store=other_url, model=model) as app:
        [handle] = await app.resume("waits")
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace")
        assert (await handle.result()).status is RunStatus.COMPLETED
        assert len(await app.session("s").messages()) > 0
    assert ledger.effects() == {("delete_order", "W-1"): 1}


async def test_a_backup_is_itself_a_store(store: SqlStore, tmp_path: Path) -> None:
    await store.runs.create(order("r1"))
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", started(), call_started("e1")), sync=True)
    await store.backup(tmp_path / "backup.db")
    copy = open_store(f"sqlite:///{tmp_path / 'backup.db'}")
    await copy.open()
    assert await copy.runs.facts("r1") == await store.runs.facts("r1")
    await copy.close()


async def test_a_backup_of_an_older_version_is_brought_up_to_date(store: SqlStore, tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    older = open_store(f"sqlite:///{file}")
    await older.open()
    await older.runs.create(order("r1"))
    await older.downgrade(len(migrations.MIGRATIONS) - 2)
    await older.close()
    await store.restore(file)
    assert await store.runs.get("r1") is not None


async def test_a_store_is_told_from_others_and_a_restored_one_is_the_one_it_was(
    store: SqlStore, tmp_path: Path
) -> None:
    another = open_store(f"sqlite:///{tmp_path / 'another.db'}")
    await another.open()
    given = await another.identity()
    assert (store.created, another.created, len(given)) == (True, True, 32)
    assert given != await store.identity()
    await another.close()
    again = open_store(f"sqlite:///{tmp_path / 'another.db'}")
    await again.open()
    assert (again.created, await again.identity()) == (False, given)
    await again.close()
    # A person confirms the rows: those of a stranger's backup are not confirmed by where they are put.
    await store.restore(tmp_path / "another.db")
    assert await store.identity() == given


async def test_what_is_no_backup_is_refused_and_changes_nothing(store: SqlStore, tmp_path: Path) -> None:
    await store.runs.create(order("r1"))
    (tmp_path / "text").write_text("not a database, but long enough to look like something" * 100)
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as foreign:
        foreign.execute("CREATE TABLE other (x)")
    for name in ("text", "foreign.db", "nothing"):
        with pytest.raises(ConfigurationError, match="backup"):
            await store.restore(tmp_path / name, replace=True)
    assert await store.runs.get("r1") is not None


async def test_writing_goes_on_while_a_backup_is_made(store: SqlStore, tmp_path: Path) -> None:
    async def write() -> None:
        for number in range(200):
            await store.runs.create(order(f"r{number}"))

    writing = asyncio.create_task(write())
    await asyncio.sleep(0)
    await store.backup(tmp_path / "backup.db")
    await writing
    copy = open_store(f"sqlite:///{tmp_path / 'backup.db'}")
    await copy.open()
    assert len(await copy.runs.list(limit=1_000)) <= 200
    await copy.close()

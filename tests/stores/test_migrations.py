"""The schema up and down, and which store a URL names."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest

from journeyman.core.errors import ConfigurationError, StoreError
from journeyman.stores.migrations import MIGRATIONS
from journeyman.stores.store import SqlStore, open_store
from tests.stores.samples import claimed, finished, message, numbered, order, question, version_before

LATEST = len(MIGRATIONS)
LEASES = "one table of leases; requests that are sent again are called what they are"


async def test_the_schema_goes_down_and_up_again_step_by_step(store: SqlStore) -> None:
    await store.runs.create(order("r1"))
    for version in reversed(range(LATEST)):
        assert await store.downgrade(version) == version
        assert await store.schema_version() == version
    assert await store.upgrade() == LATEST
    assert await store.runs.list() == ()
    await store.runs.create(order("r1"))
    assert await store.audit.verify() == 0


async def test_an_upgrade_of_what_is_up_to_date_keeps_everything(store: SqlStore, other: SqlStore) -> None:
    await store.runs.create(order("r1"))
    assert await other.upgrade() == LATEST
    assert await other.runs.get("r1") is not None


async def test_questions_kept_before_they_had_a_principal_get_the_one_of_their_run(store: SqlStore) -> None:
    for run_id, principal in (("r1", "ada"), ("r2", None)):
        await store.runs.create(order(run_id, principal=principal))
        await store.approvals.ask(question(f"a-{run_id}", run_id=run_id, principal=principal))
    await store.downgrade(version_before("lists by principal"))
    await store.upgrade()
    assert [item.id for item in await store.approvals.list(principal_id="ada")] == ["a-r1"]
    assert [item.id for item in await store.approvals.list(principal_id=None)] == ["a-r2"]


async def test_leases_that_were_kept_with_runs_and_cursors_go_on(store: SqlStore) -> None:
    journal = await claimed(store, "ended")
    await journal.append("ended", numbered("ended", finished()))
    await claimed(store, "held", owner="w1")
    await claimed(store, "left", owner="w1")
    await store.runs.release("left", owner="w1", epoch=1)
    batch = await store.cursors.take("learner", owner="w1", lease_seconds=60)
    assert batch is not None
    before = await store.runs.list()
    assert await store.downgrade(version_before(LEASES)) < LATEST
    assert await store.upgrade() == LATEST
    # What a run's row says of its end was not kept then; what was asked is in its order.
    unknown = {"outcome": None, "model": None, "input_tokens": None, "output_tokens": None}
    assert await store.runs.list() == tuple(row.model_copy(update=unknown) for row in before)
    assert await store.runs.claim("held", owner="w2", lease_seconds=60) is None
    assert await store.runs.claim("left", owner="w2", lease_seconds=60) == 2
    assert await store.cursors.take("learner", owner="w2", lease_seconds=60) is None
    await store.cursors.advance(batch)


async def test_a_program_that_looks_for_leases_where_they_were_is_refused(store: SqlStore) -> None:
    [(oldest,)] = await store._database.read(
        lambda connection: connection.query("SELECT oldest FROM schema_version WHERE id = 1")
    )
    assert oldest == version_before(LEASES) + 1


async def test_one_cannot_downgrade_upwards(store: SqlStore) -> None:
    with pytest.raises(ConfigurationError, match=f"from schema version {LATEST} to {LATEST + 1}"):
        await store.downgrade(LATEST + 1)


async def test_a_newer_schema_is_refused_only_where_it_breaks_with_this_one(store: SqlStore, store_url: str) -> None:
    def write(sql: str) -> Awaitable[int]:
        return store._database.write(lambda connection: connection.execute(sql))

    await write("UPDATE schema_version SET version = 99")
    compatible = open_store(store_url)
    await compatible.open()
    assert await compatible.schema_version() == 99
    await compatible.close()
    await write("UPDATE schema_version SET oldest = 98")
    with pytest.raises(ConfigurationError, match="schema version 99"):
        await open_store(store_url).open()


async def test_processes_that_start_at_once_do_not_collide(store_url: str) -> None:
    stores = [open_store(store_url) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    assert [await store.schema_version() for store in stores] == [LATEST] * 6
    for store in stores:
        await store.close()


async def test_what_was_accepted_is_there_after_closing(store_url: str) -> None:
    first = open_store(store_url)
    await first.open()
    journal = await claimed(first, "r1")
    await journal.append("r1", numbered("r1", message()))
    await first.close()
    second = open_store(store_url)
    await second.open()
    assert len(await second.runs.facts("r1")) == 1
    await second.close()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite://", "is no SQLite URL"),
        ("sqlite://host/x.db", "is no SQLite URL"),
        ("sqlite:/x.db", "is no SQLite URL"),
        ("mysql://x", "no store for 'mysql:'"),
        ("journeyman.db", "no store for 'journeyman.db'"),
    ],
)
def test_a_url_that_names_no_store_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        open_store(url)


def test_postgresql_without_its_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "journeyman.stores.postgres", None)
    with pytest.raises(ConfigurationError, match=r"\[postgres\]"):
        open_store("postgresql://localhost/x")


async def test_a_relative_url_is_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("sqlite:///with%20space.db")
    await store.open()
    await store.close()
    assert (tmp_path / "with space.db").exists()


async def test_a_directory_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/nowhere/x.db")
    with pytest.raises(StoreError, match="make its directory"):
        await store.open()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("not a database, but long enough to look at" * 50)
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    with pytest.raises(StoreError, match="no database"):
        await store.open()

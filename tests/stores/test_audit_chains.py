"""What calls leave in the audit where many processes write: chains of their own, which are added to the log."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from journeyman.core import AuditError
from journeyman.stores.audit import AuditKeys
from journeyman.stores.connection import Connection
from journeyman.stores.store import SqlStore, open_store
from tests.stores.samples import call_started, claimed, numbered

KEY = "a key that is long enough"


@pytest.fixture
async def stores(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[SqlStore]]:
    """Two processes, as far as the database can tell."""
    monkeypatch.setenv("JOURNEYMAN_AUDIT_KEY", KEY)
    opened = [open_store(postgres_url) for _ in range(2)]
    for store in opened:
        await store.open()
    yield opened
    for store in opened:
        await store.close()


async def effects(store: SqlStore, name: str, count: int) -> None:
    for number in range(count):
        journal = await claimed(store, f"{name}{number}")
        started = numbered(f"{name}{number}", call_started(f"e-{name}{number}"))
        await journal.append(f"{name}{number}", started, sync=True)


async def tamper(store: SqlStore, *statements: str) -> None:
    def work(connection: Connection) -> None:
        for sql in statements:
            connection.execute(sql)

    await store._database.write(work)


async def waiting(store: SqlStore) -> int:
    [(count,)] = await store._database.read(lambda c: c.query("SELECT COUNT(*) FROM audit_waiting"))
    return int(count)


async def test_rows_of_several_processes_come_into_the_log_once_and_verify(stores: list[SqlStore]) -> None:
    await asyncio.gather(effects(stores[0], "a", 5), effects(stores[1], "b", 5))
    assert await waiting(stores[0]) == 10
    await asyncio.gather(*(store.audit.fold() for store in stores))
    assert await waiting(stores[0]) == 0
    rows = await stores[0].audit.list(kind="call_started")
    assert sorted(row.run_id or "" for row in rows) == [f"{name}{number}" for name in "ab" for number in range(5)]
    assert len({row.entry_id for row in rows}) == 10
    await effects(stores[1], "c", 1)
    assert await stores[0].audit.verify() == 11
    assert (await stores[0].audit.inspect()).keyed_from == 1


async def test_no_effect_is_without_its_row(stores: list[SqlStore]) -> None:
    await effects(stores[0], "a", 1)
    await stores[0].audit.fold()
    await effects(stores[0], "b", 2)
    anchor = await stores[1].audit.anchor(now=1.0)
    assert anchor.count == 3


@pytest.mark.parametrize(
    ("statements", "told"),
    [
        (("UPDATE audit_waiting SET subject = 'x' WHERE run_id = 'b1'",), "was changed"),
        (("DELETE FROM audit_waiting WHERE run_id = 'b0'",), "does not follow"),
        (("DELETE FROM audit_waiting WHERE run_id = 'b2'",), "does not end with its head"),
        (("DELETE FROM audit_shards",), "has lost its head"),
        (("UPDATE audit_shards SET mac = 'x'",), "does not end with its head"),
        (("UPDATE audit_folded SET hash = 'x'",), "does not follow"),
    ],
)
async def test_what_waits_is_verified(stores: list[SqlStore], statements: tuple[str, ...], told: str) -> None:
    await effects(stores[0], "a", 1)
    await stores[0].audit.fold()
    await effects(stores[0], "b", 3)
    await tamper(stores[0], *statements)
    with pytest.raises(AuditError, match=told):
        await stores[1].audit.verify()


async def test_a_chain_with_another_key_is_told_from_a_forged_one(stores: list[SqlStore], postgres_url: str) -> None:
    await effects(stores[0], "a", 2)
    assert AuditKeys([KEY]).by_id.keys() == set((await stores[1].audit.inspect()).key_ids)

"""Databases that are locked, full, restarted or held up: a clear StoreError, nothing lost, then on as before."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.errors import StoreError
from journeyman.stores.postgres import PostgresConnection, PostgresDriver
from journeyman.stores.store import SqlStore, open_store
from tests.stores.samples import NOW, call_started, claimed, message, numbered, order, question, record, started
from tests.waiting import WAIT_SECONDS

LOCKING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
"""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process holds the write lock."""
    with subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "locked\n"
        yield
        process.stdin.write("\n")


async def test_a_locked_database_is_an_error_after_a_while_and_works_again_later(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = open_store(f"sqlite:///{path}", retry_seconds=0.2)
    await store.open()
    journal = await claimed(store, "r1")
    await journal.append("r1", numbered("r1", started()), sync=True)
    await journal.append("r1", numbered("r1", message("accepted"), first=2))
    start = numbered("r1", call_started("e"), first=3)
    with locked(path):
        with pytest.raises(StoreError, match="another process holds its lock"):
            await journal.append("r1", start, sync=True)
        with pytest.raises(StoreError, match="another process holds its lock"):
            await journal.append("r1", start, sync=True)
        assert len(await store.runs.facts("r1")) == 1, "reading goes on"
    await journal.append("r1", start, sync=True)
    await journal.append("r1", numbered("r1", record("e"), first=4))
    assert [fact.seq for fact in await store.runs.facts("r1")] == [1, 2, 3, 4]
    await store.close()


async def test_siblings_that_fail_together_can_be_repeated_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = open_store(f"sqlite:///{path}", retry_seconds=0.2)
    await store.open()
    journal = await claimed(store, "r1")
    facts = numbered("r1", call_started("e1"), call_started("e2"), call_started("e3"))
    with locked(path):
        outcomes = await asyncio.gather(*(journal.append("r1", (fact,)) for fact in facts), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreError] * 3
    with pytest.raises(StoreError, match="facts before 3"):
        await journal.append("r1", facts[2:])
    for fact in facts:
        await journal.append("r1", (fact,))
    assert tuple(await store.runs.facts("r1")) == facts
    await store.close()


async def test_facts_of_an_append_that_was_cancelled_under_a_lock_are_written_later(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = open_store(f"sqlite:///{path}", retry_seconds=0.2)
    await store.open()
    journal = await claimed(store, "r1")
    with locked(path):
        append = asyncio.ensure_future(journal.append("r1", numbered("r1", call_started("e"))))
        await asyncio.sleep(0)
        append.cancel()
        with pytest.raises(StoreError):
            await store.flush()
    await journal.append("r1", numbered("r1", record("e"), first=2))
    assert [fact.seq for fact in await store.runs.facts("r1")] == [1, 2]
    await store.close()


async def test_a_short_lock_is_not_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = open_store(f"sqlite:///{path}", retry_seconds=WAIT_SECONDS)
    await store.open()
    with locked(path):
        creating = asyncio.ensure_future(store.runs.create(order("r1")))
        await asyncio.sleep(0.05)
        assert not creating.done()
    await creating
    await store.close()


FILLING = """
import asyncio, resource, sys
from journeyman.core.errors import StoreError
from journeyman.stores.store import open_store
from tests.stores.samples import call_started, claimed, message, numbered

async def main():
    store = open_store("sqlite:///" + sys.argv[1], retry_seconds=0.2)
    await store.open()
    journal = await claimed(store, "r1")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    seq, refused = 0, None
    while refused is None:
        fact = numbered("r1", call_started("e" * 5_000), first=seq + 1)
        try:
            await journal.append("r1", fact, sync=True)
            seq += 1
        except StoreError as error:
            refused = error
    print(refused)
    print(len(await store.runs.facts("r1")) == seq)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    await journal.append("r1", fact, sync=True)
    print([found.seq for found in await store.runs.facts("r1")] == list(range(1, seq + 2)))
    await store.close()

asyncio.run(main())
"""


async def test_a_full_disk_is_an_error_and_what_was_committed_is_safe(tmp_path: Path) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", FILLING, str(tmp_path / "x.db")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    problem, kept, went_on = done.stdout.splitlines()
    assert "look at the disk" in problem or "make room" in problem
    assert (kept, went_on) == ("True", "True")


# --- PostgreSQL


class Counted(PostgresDriver):
    connects = 0

    def connect(self, *, writes: bool) -> PostgresConnection:
        self.connects += 1
        return super().connect(writes=writes)


@pytest.mark.slow
async def test_who_waited_while_the_database_was_found_away_is_told_with_the_first(own_server: Any) -> None:
    driver = Counted(own_server.get_uri())
    store = SqlStore(driver, connections=2)
    await store.open()
    await store.runs.get("r1")
    await asyncio.to_thread(own_server.stop)
    store.retry_for(0.5)
    driver.connects = 0
    found = await asyncio.gather(*(store.runs.get(f"r{number}") for number in range(9)), return_exceptions=True)
    assert [type(error) for error in found] == [StoreError] * 9
    assert driver.connects <= 5  # what one of them tries in half a second
    await asyncio.to_thread(own_server.ensure_postgres_running)
    assert await store.runs.get("r1") is None
    await store.close()


@pytest.mark.slow
async def test_a_restart_of_postgresql_loses_nothing(own_server: Any) -> None:
    patient, hasty = (
        open_store(own_server.get_uri(), retry_seconds=WAIT_SECONDS),
        open_store(own_server.get_uri(), retry_seconds=0.1),
    )
    await patient.open()
    await hasty.open()
    journal = await claimed(patient, "r1")
    await journal.append("r1", numbered("r1", started()))
    await hasty.approvals.ask(question("a-1"))

    await asyncio.to_thread(own_server.stop)
    await journal.append("r1", numbered("r1", message("accepted meanwhile"), first=2))
    waiting = asyncio.ensure_future(journal.append("r1", numbered("r1", call_started("e"), first=3), sync=True))
    with pytest.raises(StoreError, match="check that the server runs"):
        await hasty.approvals.decide("a-1", ApprovalStatus.APPROVED, by="grace")
    with pytest.raises(StoreError, match="check that the server runs"):
        await hasty.runs.get("r1")
    assert not waiting.done()
    await asyncio.to_thread(own_server.ensure_postgres_running)

    await waiting
    await journal.append("r1", numbered("r1", record("e"), first=4))
    assert [fact.seq for fact in await patient.runs.facts("r1")] == [1, 2, 3, 4]
    assert await hasty.approvals.decide("a-1", ApprovalStatus.APPROVED, by="grace") is not None
    assert await hasty.runs.get("r1") is not None
    await patient.close()
    await hasty.close()


@pytest.mark.slow
@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
async def test_a_worker_stopped_in_the_middle_of_a_transaction_does_not_hold_up_the_others(
    store: SqlStore, store_url: str
) -> None:
    stopped = PostgresConnection(store_url)
    stopped.begin(sync=True)
    stopped.query("UPDATE audit_head SET seq = seq + 1 WHERE id = 1 RETURNING seq")
    row = await store.audit.append("resolved", actor=None, run_id=None, subject="c", details={}, now=NOW)
    assert row.seq == 1
    stopped.close()


def test_no_password_is_in_an_error_message() -> None:
    driver = PostgresDriver("postgresql://ada:geheim@127.0.0.1:1/nothing")
    try:
        driver.connect(writes=True)
    except Exception as error:
        fault = driver.fault(error)
    assert fault is not None
    assert "geheim" not in fault.message
    assert "127.0.0.1/nothing" in fault.message

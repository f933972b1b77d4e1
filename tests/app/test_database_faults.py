"""The database goes away, fills up or is locked in the middle of runs: they pause, say why, finish, lose nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import resource
import sqlite3
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.postgres import crash
from journeyman import Agent, RiskLevel, RunStatus, ToolContext, ToolLibrary, tool
from journeyman.app.journeyman import Journeyman
from journeyman.stores.store import open_store
from journeyman.testing import ScriptedModel, call, say
from tests.app.shop import Ledger
from tests.app.worker_program import LEASE_SECONDS, SLOWLY, Crew, workshop
from tests.waiting import WAIT_SECONDS, until

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.app.worker_program"])

pytestmark = pytest.mark.slow

STEPS = [call("pay", order_id=f"W-{number}") for number in range(6)]
PAYING = ScriptedModel([*STEPS, say("Paid.")])


class Trouble(logging.Handler):
    """Hears that runs pause, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("the run pauses"):
            self.told.append(record.getMessage())

    def __enter__(self) -> Trouble:
        logging.getLogger("journeyman.store").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("journeyman.store").removeHandler(self)

    async def heard(self, *, runs: int = 1) -> None:
        await until(lambda: len(self.told) >= runs)


class Till:
    """A tool that must not run twice, and that can be held up."""

    def __init__(self, ledger: Ledger) -> None:
        self.open = threading.Event()
        self.open.set()

        @tool(risk=RiskLevel.REVERSIBLE)
        def pay(order_id: str, context: ToolContext) -> str:
            """Pay an order. Use when it is due."""
            ledger.write("pay", context.idempotency_key, order_id)
            self.open.wait(WAIT_SECONDS)
            return f"{order_id} is paid"

        self.library = ToolLibrary([pay])
        self.agent = Agent(name="payer", instruction="Pay.", tools=self.library.specifications())


@contextlib.asynccontextmanager
async def paying(
    url: str, ledger: Ledger, *, runs: int, retry_seconds: float = 0.3
) -> AsyncIterator[tuple[Till, Trouble]]:
    """So many runs with a call under way each; in the end all must have completed, with every payment made once."""
    till = Till(ledger)
    till.open.clear()
    # With little retry_seconds of its own, the store hands the fault on to the runs.
    store = open_store(url, retry_seconds=retry_seconds)
    with Trouble() as trouble:
        async with Journeyman(library=till.library, store=store, model=PAYING, poll_seconds=0.1) as app:
            handles = [await app.start(till.agent, f"Pay all ({number})") for number in range(runs)]
            await until(lambda: len(ledger.lines()) == runs)
            yield till, trouble
            till.open.set()
            assert [(await handle.result()).status for handle in handles] == [RunStatus.COMPLETED] * runs
            for handle in handles:
                numbers = [event.seq async for event in handle.events()]
                assert numbers == list(range(1, len(numbers) + 1))
            assert await app.store.audit.verify() == runs * len(STEPS), "each payment is in the audit, once"
    keys = [key for _, key, _ in ledger.lines()]
    assert len(keys) == len(set(keys)) == runs * len(STEPS)


# --- SQLite


async def test_locked_by_another_process_for_longer_than_the_store_waits(url: str, ledger: Ledger) -> None:
    async with paying(url, ledger, runs=3) as (till, trouble):
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        till.open.set()
        await trouble.heard(runs=3)
        other.execute("ROLLBACK")
        other.close()
    assert "another process holds its lock" in trouble.told[0]


def pay_with_little_room(url: str, path: str) -> None:
    """In a process of its own: files may not grow for a while."""

    async def main() -> None:
        async with paying(url, Ledger(Path(path)), runs=3) as (till, trouble):
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            # No page can be written, wherever the log of the database has begun anew; the ledger is smaller.
            resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
            till.open.set()
            await trouble.heard()
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert "SQLite database" in trouble.told[0]

    asyncio.run(main())


def test_files_may_not_grow_for_a_while(url: str, ledger: Ledger) -> None:
    child = FORKS.Process(target=pay_with_little_room, args=(url, str(ledger.path)))
    child.start()
    child.join(WAIT_SECONDS)
    assert child.exitcode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


async def test_the_disk_is_full_for_a_while(small_disk: Path, ledger: Ledger) -> None:
    async with paying(f"sqlite:///{small_disk / 'store.db'}", ledger, runs=3) as (till, trouble):
        ballast = small_disk / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 512)
        till.open.set()
        await trouble.heard()
        ballast.unlink()
    assert "the disk is full: make room" in trouble.told[0]


# --- PostgreSQL


async def restarted(server: Any, meanwhile: Callable[[], Any]) -> None:
    await asyncio.to_thread(crash, server)
    await meanwhile()
    await asyncio.to_thread(server.start)


async def test_postgresql_is_restarted_in_the_middle_of_runs(own_server: Any, ledger: Ledger) -> None:
    async with paying(own_server.get_uri(), ledger, runs=3) as (till, trouble):

        async def meanwhile() -> None:
            till.open.set()
            await trouble.heard(runs=3)

        await restarted(own_server, meanwhile)
    assert "no connection: check that the server runs" in trouble.told[0]


@pytest.mark.parametrize("retry_seconds", [0.3, WAIT_SECONDS], ids=["the runs wait", "the store waits"])
async def test_postgresql_crashes_again_and_again(own_server: Any, ledger: Ledger, retry_seconds: float) -> None:
    async with paying(own_server.get_uri(), ledger, runs=8, retry_seconds=retry_seconds) as (till, _):
        till.open.set()
        for number in range(1, 5):
            await until(lambda number=number: len(ledger.lines()) > number * 8)  # type: ignore[misc]  # it is bound
            await asyncio.to_thread(crash, own_server)
            await asyncio.to_thread(own_server.start)


async def test_workers_outlive_a_restart_of_postgresql(own_server: Any, ledger: Ledger) -> None:
    url = own_server.get_uri()
    crew = Crew(url, ledger)
    try:
        async with Journeyman(library=workshop(ledger), store=url, model=ScriptedModel([]), workers=True) as app:
            agent = Agent(name="hand", instruction="Work.", tools=app.library.specifications())
            handles = [await app.start(agent, f"Pay slowly ({number})") for number in range(4)]
            workers = [crew.hire(SLOWLY, concurrency=2) for _ in range(2)]
            await until(lambda: len(ledger.lines()) == 4)

            async def meanwhile() -> None:
                crew.open_gate("W-1")
                await asyncio.sleep(1)

            await restarted(own_server, meanwhile)
            assert [(await handle.result()).status for handle in handles] == [RunStatus.COMPLETED] * 4
        assert all(worker.is_alive() for worker in workers)
    finally:
        crew.dismiss()
    paid = [key for name, key, _ in ledger.lines() if name == "pay"]
    assert len(paid) == len(set(paid)) == 4


# --- what a database says when it is not quite away


async def test_statements_that_take_too_long_make_runs_pause(own_server: Any, ledger: Ledger) -> None:
    url = own_server.get_uri()
    async with paying(url, ledger, runs=3) as (till, trouble):
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET statement_timeout = '100ms'")
            admin.execute("SELECT pg_reload_conf()")
            with psycopg.connect(url) as other:
                other.execute("LOCK TABLE facts IN EXCLUSIVE MODE")
                till.open.set()
                await trouble.heard(runs=3)
            admin.execute("ALTER SYSTEM RESET statement_timeout")
            admin.execute("SELECT pg_reload_conf()")
    assert any("took longer than the server allows" in text for text in trouble.told)


async def test_a_database_that_takes_no_writes_for_a_while_makes_runs_pause(own_server: Any, ledger: Ledger) -> None:
    """As after a failover, while the connections are to what has become a standby."""
    url = own_server.get_uri()
    async with paying(url, ledger, runs=3) as (till, trouble):
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            admin.execute("SELECT pg_reload_conf()")
            till.open.set()
            await trouble.heard(runs=3)
            admin.execute("ALTER SYSTEM RESET default_transaction_read_only")
            admin.execute("SELECT pg_reload_conf()")
    assert any("takes no writes at the moment" in text for text in trouble.told)


async def test_no_effect_happens_when_the_file_of_the_store_has_gone(url: str, ledger: Ledger) -> None:
    folder = Path(url.removeprefix("sqlite:///")).parent / "folder"
    folder.mkdir()
    async with paying(f"sqlite:///{folder / 'store.db'}", ledger, runs=3) as (till, trouble):
        folder.rename(folder.with_name("elsewhere"))
        till.open.set()
        await trouble.heard(runs=3)
        assert len(ledger.lines()) == 3, "what was begun before, and no more"
        folder.with_name("elsewhere").rename(folder)
    assert "deleted, moved or replaced" in trouble.told[0]


# --- workers


async def test_a_lone_worker_goes_on_after_an_outage_longer_than_its_lease(own_server: Any, ledger: Ledger) -> None:
    url = own_server.get_uri()
    crew = Crew(url, ledger)
    try:
        async with Journeyman(library=workshop(ledger), store=url, model=ScriptedModel([]), workers=True) as app:
            agent = Agent(name="hand", instruction="Work.", tools=app.library.specifications())
            first = await app.start(agent, "Pay slowly")
            worker = crew.hire(SLOWLY, concurrency=2)
            await until(lambda: len(ledger.lines()) == 1)

            async def meanwhile() -> None:
                crew.open_gate("W-1")
                await asyncio.sleep(4 * LEASE_SECONDS)

            await restarted(own_server, meanwhile)
            second = await app.start(agent, "Pay slowly, too")
            assert [(await handle.result()).status for handle in (first, second)] == [RunStatus.COMPLETED] * 2
        assert worker.is_alive()
    finally:
        crew.dismiss()
    paid = [key for name, key, _ in ledger.lines() if name == "pay"]
    assert len(paid) == len(set(paid)) == 2


async def test_told_to_leave_a_worker_does_not_wait_for_a_database_that_is_away(
    own_server: Any, ledger: Ledger
) -> None:
    url = own_server.get_uri()
    crew = Crew(url, ledger)
    try:
        async with Journeyman(library=workshop(ledger), store=url, model=ScriptedModel([]), workers=True) as app:
            agent = Agent(name="hand", instruction="Work.", tools=app.library.specifications())
            handle = await app.start(agent, "Pay slowly")
            worker = crew.hire(SLOWLY, grace_seconds=1.0)
            await until(lambda: len(ledger.lines()) == 1)
            await asyncio.to_thread(crash, own_server)
            crew.open_gate("W-1")
            worker.terminate()
            await asyncio.to_thread(worker.join, WAIT_SECONDS)
            assert worker.exitcode == 0
            await asyncio.to_thread(own_server.start)
            crew.hire(SLOWLY)
            assert (await handle.result()).status == RunStatus.COMPLETED
    finally:
        crew.dismiss()

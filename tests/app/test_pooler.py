"""PostgreSQL behind a pooler that gives each transaction to another session; and how many connections a process has."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from journeyman import ConfigurationError, RunStatus
from journeyman.app.journeyman import Journeyman
from journeyman.app.service import open_service
from journeyman.app.worker import JobQueue, work
from journeyman.stores import postgres
from journeyman.stores.postgres import split_pool_size
from journeyman.stores.store import open_store
from journeyman.testing import ScriptedModel
from tests.app.shop import ADA, Ledger, clerk, deletes, shop
from tests.waiting import wait_until

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
SETTINGS = """
[databases]
* = host={host} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
"""


@pytest.fixture
def direct_url(postgres_server: Any) -> str:
    """A database of its own: a pooler takes no search path."""
    name = f"pooled_{os.urandom(4).hex()}"
    base: str = postgres_server.get_uri()
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return base.replace("/postgres?", f"/{name}?")


@pytest.fixture
def pooler_url(direct_url: str) -> Iterator[str]:
    if PGBOUNCER is None:
        pytest.skip("there is no pgbouncer here; scripts/get-pgbouncer installs it")
    # Not in pytest's own folders: those are closed to the user it runs as.
    with tempfile.TemporaryDirectory(prefix="jm-pooler-") as folder:
        yield from _pooled(direct_url, Path(folder))


def _pooled(direct_url: str, folder: Path) -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    parts = urlsplit(direct_url)
    settings = folder / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(host=parse_qs(parts.query)["host"][0], port=port, folder=folder))
    for place in (settings, folder):
        place.chmod(0o777)
    # It refuses to be root; whoever the server runs as can reach its socket.
    host = parse_qs(parts.query)["host"][0]
    process = subprocess.Popen(
        [str(PGBOUNCER), str(settings)],
        user=Path(host, ".s.PGSQL.5432").stat().st_uid if os.getuid() == 0 else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text()
        yield f"postgresql://postgres@127.0.0.1:{port}{parts.path}"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
async def test_workers_do_their_work_behind_a_pooler(pooler_url: str, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    library, stop = shop(ledger), asyncio.Event()
    client = Journeyman(library=library, store=pooler_url, model=ScriptedModel([]), workers=True)
    worker = Journeyman(library=library, store=pooler_url, model=deletes("W-1"), poll_seconds=0.1)
    async with client as app, worker as hand:
        working = asyncio.create_task(work(hand, pooler_url, concurrency=4, stop=stop))
        handles = [await app.start(clerk(library), "Delete W-1", principal=ADA) for _ in range(10)]
        for handle in handles:
            assert await handle.wait() is RunStatus.AWAITING_APPROVAL
        for approval in await app.approvals.pending():
            await app.approvals.approve(approval.id, by="grace")
        assert [(await handle.result()).status for handle in handles] == ["completed"] * 10
        assert await app.store.audit.verify() > 0
        stop.set()
        await working
    assert len(ledger.lines()) == 10


async def test_a_pooler_is_noticed(pooler_url: str, direct_url: str) -> None:
    for url, pooled in ((pooler_url, True), (direct_url, False)):
        queue = JobQueue(url)
        await queue.open()
        assert queue.pooled is pooled
        await queue.close()


def test_nothing_outlives_its_transaction_behind_a_pooler(direct_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "is_pooled", lambda raw: True)
    connection = postgres.PostgresDriver(direct_url).connect(writes=True)
    with psycopg.connect(direct_url, autocommit=True) as plain:
        names = list(postgres.TIMEOUTS)
        usual = {name: plain.execute(f"SHOW {name}".encode()).fetchone() for name in names}
    connection.begin(sync=False)
    for name in names:
        assert connection.query(f"SHOW {name}") != [usual[name]]  # set while it lasts
    connection.lock("something")
    connection.execute("CREATE TABLE x (y INTEGER)")
    for number in range(20):
        connection.query("SELECT y FROM x WHERE y = ?", number)
    connection.commit()
    for name in names:
        assert connection.query(f"SHOW {name}") == [usual[name]]
    assert connection.query("SELECT COUNT(*) FROM pg_prepared_statements") == [(0,)]
    assert connection.query("SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]
    connection.close()


# --- how many connections


async def connections(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as watcher:
        row = watcher.execute(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    return 0 if row is None else int(row[0])


@pytest.mark.parametrize(("asked", "most"), [("", 4), ("&pool_size=2", 2), ("&pool_size=7", 7)])
async def test_a_process_has_no_more_connections_than_it_may(direct_url: str, asked: str, most: int) -> None:
    store = open_store(f"{direct_url}{asked}")
    await store.open()
    await asyncio.gather(*(store.runs.list() for _ in range(200)))
    assert 2 <= await connections(direct_url) <= most
    await store.close()


@pytest.mark.slow
@pytest.mark.parametrize("queued", [True, False])  # as the command opens it, and as a program of one's own does
async def test_a_worker_has_four_connections(direct_url: str, tmp_path: Path, queued: bool) -> None:
    library, stop = shop(Ledger(tmp_path / "ledger")), asyncio.Event()
    ready = asyncio.Event()
    store = open_store(direct_url, queued=queued)
    async with Journeyman(library=library, store=store, model=deletes("W-1"), poll_seconds=0.1) as app:
        await asyncio.gather(*(store.runs.list() for _ in range(200)))
        working = asyncio.create_task(work(app, direct_url, stop=stop, ready=ready.set))
        await ready.wait()
        await asyncio.gather(*(store.runs.list() for _ in range(200)))
        handle = await app.start(clerk(library), "Delete W-1", principal=ADA)
        await handle.wait()
        assert await connections(direct_url) <= 4
        stop.set()
        await working


@pytest.mark.slow
async def test_a_service_that_leaves_its_runs_to_workers_has_no_more(direct_url: str) -> None:
    async with open_service(store=direct_url, workers=True, model=ScriptedModel([])) as service:
        await asyncio.gather(*(service.store.runs.list() for _ in range(200)))
        assert await connections(direct_url) <= 4


@pytest.mark.parametrize("size", ["0", "1", "many", ""])
def test_a_number_of_connections_that_cannot_work_is_refused(size: str) -> None:
    with pytest.raises(ConfigurationError, match="pool_size"):
        split_pool_size(f"postgresql://host/name?pool_size={size}")


def test_our_own_option_is_taken_out_of_the_url() -> None:
    url, size = split_pool_size("postgresql://u:p%40@h/d?host=/tmp/x&pool_size=9&options=-csearch_path%3Da")
    assert (url, size) == ("postgresql://u:p%40@h/d?host=/tmp/x&options=-csearch_path%3Da", 9)

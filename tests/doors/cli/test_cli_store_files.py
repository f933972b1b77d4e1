"""Stores in files that something is the matter with: read-only, damaged, restored without the key of their audit."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman import Agent
from journeyman.app.journeyman import Journeyman
from journeyman.core.errors import StoreError
from journeyman.core.runs import RunStatus
from journeyman.stores.audit import AuditKeys
from journeyman.stores.store import open_store
from journeyman.testing import ScriptedModel, say
from tests.doors.cli.driving import Cli

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1
AGENT = Agent(name="clerk", instruction="Help.", tools=())


def filled(path: Path, *, count: int = 3) -> None:
    async def fill() -> None:
        async with Journeyman(store=f"sqlite:///{path}", model=ScriptedModel([say("Done.")] * count)) as app:
            for number in range(count):
                await (await app.start(AGENT, f"Say it {number}")).result()

    asyncio.run(fill())


@pytest.fixture
def medium() -> Iterator[Path]:
    """A folder with a store, of somebody else, who lets it be read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        filled(folder / "runs.db")
        yield folder
        folder.chmod(0o755)


def sealed(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)


def _bound_by_permissions() -> None:
    """Root may write everywhere, unless it is denied that."""
    assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0


def bound(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line where permissions hold."""
    return subprocess.run(
        [sys.executable, "-m", "journeyman", *arguments, "--store", f"sqlite:///{folder / 'runs.db'}"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
        check=False,
        preexec_fn=_bound_by_permissions if os.geteuid() == 0 else None,
    )


def test_a_store_on_a_read_only_medium_is_listed_and_shown(medium: Path) -> None:
    sealed(medium)
    listed = bound(medium, "runs", "list")
    assert (listed.returncode, listed.stdout.count("completed")) == (0, 3), listed.stderr
    assert "can only be read here" in listed.stderr
    run_id = listed.stdout.splitlines()[1].split()[0]
    shown = bound(medium, "runs", "show", run_id)
    assert (shown.returncode, "Done." in shown.stdout) == (0, True), shown.stderr
    assert sorted(file.name for file in medium.iterdir()) == ["runs.db"]


def test_what_was_committed_last_is_not_left_out_on_a_read_only_medium(medium: Path) -> None:
    """Its writer was killed: the last commits are in the write-ahead log beside the file."""
    with sqlite3.connect(medium / "runs.db") as writer:
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute("UPDATE runs SET status = 'failed'")
        writer.commit()
        for file in [*medium.iterdir()]:
            (medium / f"copy-{file.name}").write_bytes(file.read_bytes())
    writer.close()
    (medium / "runs.db").unlink()
    for end in ("", "-wal"):
        (medium / f"copy-runs.db{end}").rename(medium / f"runs.db{end}")
    (medium / "copy-runs.db-shm").unlink()
    sealed(medium)
    listed = bound(medium, "runs", "list")
    if listed.returncode == 0:
        assert listed.stdout.count("failed") == 3
    else:
        assert "copy both" in listed.stderr


def test_what_would_change_a_read_only_store_says_that_it_cannot(medium: Path) -> None:
    run_id = bound(medium, "runs", "list").stdout.splitlines()[1].split()[0]
    sealed(medium)
    rated = bound(medium, "runs", "rate", run_id, "good")
    assert rated.returncode != 0
    assert "it can only be read here" in rated.stderr
    assert "Traceback" not in rated.stderr


def test_a_read_only_store_of_an_older_version_says_what_to_do(medium: Path) -> None:
    async def older() -> None:
        store = open_store(f"sqlite:///{medium / 'runs.db'}")
        await store.open()
        await store.downgrade(store.latest_version - 1)
        await store.close()

    asyncio.run(older())
    sealed(medium)
    listed = bound(medium, "runs", "list")
    assert listed.returncode != 0
    assert "can only be read here: copy it" in " ".join(listed.stderr.split())


# --- damaged


def test_damaged_pages_are_said_with_the_file_and_what_to_do(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    filled(path, count=40)
    with sqlite3.connect(path) as raw:
        [(page_size,)] = raw.execute("PRAGMA page_size")
        [(root,)] = raw.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'")
    raw.close()
    url = f"sqlite:///{path}"
    assert cli("db", "check", "--store", url).code == 0
    with path.open("r+b") as file:
        file.seek((root - 1) * page_size)
        file.write(b"\xff" * page_size)
    listed = cli("runs", "list", "--store", url)
    told = " ".join(listed.err.split())
    assert listed.code != 0
    assert str(path) in told.replace(" ", "")
    assert "damaged" in told
    assert "db check" in told
    checked = cli("db", "check", "--store", url)
    assert checked.code == 1
    assert "db restore BACKUP" in " ".join(checked.err.split())


async def test_a_text_that_is_none_is_a_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await asyncio.to_thread(filled, path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE runs SET agent_name = CAST(X'ff00fe' AS TEXT)")
    raw.close()
    store = open_store(f"sqlite:///{path}")
    await store.open()
    try:
        with pytest.raises(StoreError, match="damaged"):
            await store.runs.list(statuses=[RunStatus.COMPLETED])
    finally:
        await store.close()


# --- restored elsewhere


def test_a_restore_says_which_key_the_audit_needs(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'b.db'}"
    secret = "the key of the first machine"
    monkeypatch.setenv("JOURNEYMAN_AUDIT_KEY", secret)

    async def audited() -> None:
        store = open_store(first)
        await store.open()
        await store.audit.append("test", actor="ada", run_id=None, subject="it", details={}, now=1.0)
        await store.backup(tmp_path / "backup.db")
        await store.close()

    asyncio.run(audited())
    needed = AuditKeys([secret]).writing
    assert needed is not None
    with_it = cli("db", "restore", str(tmp_path / "backup.db"), "--store", f"sqlite:///{tmp_path / 'c.db'}")
    assert (with_it.code, needed.id in with_it.err) == (0, False)
    monkeypatch.setenv("JOURNEYMAN_AUDIT_KEY", "another machine's own key")
    without = cli("db", "restore", str(tmp_path / "backup.db"), "--store", second)
    assert without.code == 0
    assert needed.id in without.err
    assert "JOURNEYMAN_AUDIT_KEY" in without.err

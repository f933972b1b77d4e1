"""A database's file is for its owner alone, whatever the umask says."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman.stores.store import open_store


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_open_umask")
async def test_a_new_database_and_its_companions_are_for_their_owner_alone(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'runs.db'}")
    await store.open()
    try:
        modes = {name: stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)}
    finally:
        await store.close()
    assert modes == {"runs.db": 0o600, "runs.db-wal": 0o600, "runs.db-shm": 0o600}


async def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.touch(mode=0o660)
    path.chmod(0o660)
    store = open_store(f"sqlite:///{path}")
    await store.open()
    await store.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o660

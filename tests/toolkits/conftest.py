"""The tasks toolkit over both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from journeyman.stores.store import SqlStore, open_store
from journeyman.testing import FakeClock
from journeyman.toolkits.tasks import TaskService


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


# What differs between the databases is tested with the stores, every time.
@pytest_asyncio.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> AsyncIterator[SqlStore]:
    sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'store.db'}" if sqlite else request.getfixturevalue("postgres_url")
    opened = open_store(url, clock=clock)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def service(store: SqlStore, clock: FakeClock) -> TaskService:
    return TaskService(store.tasks, clock)

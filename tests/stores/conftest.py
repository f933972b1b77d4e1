"""Stores on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from journeyman.stores.store import SqlStore, open_store
from journeyman.testing import FakeClock


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest_asyncio.fixture
async def store(store_url: str, clock: FakeClock) -> AsyncIterator[SqlStore]:
    opened = open_store(store_url, clock=clock)
    await opened.open()
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def other(store: SqlStore, store_url: str, clock: FakeClock) -> AsyncIterator[SqlStore]:
    """The same database, as another process sees it."""
    opened = open_store(store_url, clock=clock)
    await opened.open()
    yield opened
    await opened.close()

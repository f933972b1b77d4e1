"""Which store a command works on, how it is opened, and how it is named in what a person is told."""

from __future__ import annotations

import logging
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from journeyman.app import ToolLibrary
from journeyman.app.durable import Journeyman, SqlStore, open_store, sqlite_file
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli.faults import complain
from journeyman.doors.cli.options import WrongUsageError, default_store

GRACE_SECONDS = 5.0
"""How long a person who ends a command waits for the step under way."""


@asynccontextmanager
async def desk(url: str, *, library: ToolLibrary | None = None, make: bool = False) -> AsyncIterator[Journeyman]:
    """An app over a store, to look and to decide; it works on no run. The store must be there, or may be made."""
    if not make:
        must_exist(url)
    app = Journeyman(library=library, store=store_at(url))
    await app.store.open()
    try:
        yield app
    finally:
        await app.store.close()


@asynccontextmanager
async def workshop(
    store: SqlStore, *, library: ToolLibrary | None = None, model: str | None = None
) -> AsyncIterator[Journeyman]:
    """An app that works on runs as long as the command lasts. It forgets no old ones: that is ``runs purge``."""
    app = Journeyman(
        library=library,
        store=store,
        model=model,
        grace_seconds=GRACE_SECONDS,
        retention_seconds=None,
    )
    with pauses_told():
        async with app:
            yield app


@asynccontextmanager
async def tasks_at_hand(store: SqlStore, *, needed: bool) -> AsyncIterator[None]:
    """Have the store open where the tools of a run work on its tasks, though the run itself is not kept in it."""
    if not needed:
        yield
        return
    await store.open()
    try:
        yield
    finally:
        await store.close()


class _Telling(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())


@contextmanager
def pauses_told() -> Iterator[None]:
    """Tell the person when runs pause because the store is away, unless logs do so already."""
    if any(not isinstance(handler, logging.NullHandler) for handler in logging.getLogger("journeyman").handlers):
        yield
        return
    telling = _Telling()
    logger = logging.getLogger("journeyman.store")
    logger.addHandler(telling)
    try:
        yield
    finally:
        logger.removeHandler(telling)


@asynccontextmanager
async def as_it_is(url: str, *, patience: float = 5.0) -> AsyncIterator[SqlStore]:
    """The store with whatever schema it has."""
    store = store_at(url, patience=patience)
    await store.open(upgrade=False)
    try:
        yield store
    finally:
        await store.close()


def must_exist(url: str) -> None:
    """Refuse a SQLite file that is not there: looking into it would make it, and a typing error would go unnoticed."""
    if (file := _file(url)) is not None and not file.exists():
        raise WrongUsageError(
            f"there is no store {url!r}; 'journeyman run --durable TASK' makes one, --store names another"
        )


def is_there(url: str) -> bool:
    return (file := _file(url)) is None or file.exists()


def is_sqlite(url: str) -> bool:
    return _file(url) is not None


def shown(url: str) -> str:
    """The URL without its password."""
    parts = urlsplit(url)
    return url.replace(f":{parts.password}@", ":***@", 1) if parts.password else url


def command(url: str, words: str) -> str:
    """What to type next, with the store where it would not be found otherwise."""
    named = "" if url == default_store() else f" --store {shlex.quote(shown(url))}"
    return f"journeyman {words}{named}"


def _file(url: str) -> Path | None:
    try:
        return sqlite_file(url)
    except ConfigurationError as error:
        raise WrongUsageError(f"--store: {error}") from None


def store_at(url: str, *, patience: float = 10.0) -> SqlStore:
    """The store behind --store, not opened yet."""
    try:
        return open_store(url, retry_seconds=patience)
    except ConfigurationError as error:
        raise WrongUsageError(f"--store: {error}") from None

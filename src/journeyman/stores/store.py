"""Everything durable over one database, chosen by URL."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from journeyman.core.errors import ConfigurationError
from journeyman.core.protocols import Clock, SystemClock
from journeyman.stores import migrations
from journeyman.stores.approvals import SqlApprovals, SqlGrants
from journeyman.stores.audit import SqlAudit
from journeyman.stores.calls import SqlCalls
from journeyman.stores.connection import Driver
from journeyman.stores.conversations import SqlConversations
from journeyman.stores.cursors import SqlCursors
from journeyman.stores.database import Database
from journeyman.stores.experiments import SqlExperiments
from journeyman.stores.gaps import SqlGaps
from journeyman.stores.limits import SqlBreaker, SqlBuckets
from journeyman.stores.programs import SqlPrograms
from journeyman.stores.runs import SqlRuns
from journeyman.stores.tasks import SqlTasks

RETRY_SECONDS = 10.0
"""How long a lock or a restart of the database is waited out before StoreError."""


class SqlStore:
    """All aggregates on one database. To be opened, used and closed on one event loop."""

    def __init__(self, driver: Driver, *, clock: Clock | None = None, retry_seconds: float = RETRY_SECONDS) -> None:
        clock = clock or SystemClock()
        self.shared_limits = driver.shared
        self._database = Database(driver, retry_seconds=retry_seconds)
        self.runs = SqlRuns(self._database)
        self.cursors = SqlCursors(self._database)
        self.programs = SqlPrograms(self._database)
        self.approvals = SqlApprovals(self._database)
        self.grants = SqlGrants(self._database)
        self.conversations = SqlConversations(self._database, clock=clock)
        self.calls = SqlCalls(self._database)
        self.audit = SqlAudit(self._database)
        self.gaps = SqlGaps(self._database)
        self.experiments = SqlExperiments(self._database)
        self.tasks = SqlTasks(self._database)
        self.limiter = SqlBuckets(self._database, clock=clock)
        self.breaker = SqlBreaker(self._database, clock=clock)

    async def open(self, *, upgrade: bool = True) -> None:
        """Connect and, unless told otherwise, bring the schema up to date."""
        self._database.start()
        try:
            if upgrade:
                await self.upgrade()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Commit what is queued and let go of the database."""
        await self._database.close()

    async def flush(self) -> None:
        await self._database.flush()

    async def upgrade(self) -> int:
        """Bring the schema up to date; returns its version."""
        return await self._database.write(migrations.upgrade)

    async def downgrade(self, to: int) -> int:
        """Undo migrations, and lose what they hold, down to a version; returns it."""
        return await self._database.write(partial(migrations.downgrade, to=to))

    @property
    def latest_version(self) -> int:
        """The schema version this program works with."""
        return len(migrations.MIGRATIONS)

    async def schema_version(self) -> int:
        return await self._database.write(migrations.version)


def open_store(url: str, *, clock: Clock | None = None, retry_seconds: float = RETRY_SECONDS) -> SqlStore:
    """The store behind a URL; nothing is connected before ``await store.open()``.

    ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://user:password@host/database``.
    """
    return SqlStore(_driver(url), clock=clock, retry_seconds=retry_seconds)


def sqlite_file(url: str) -> Path | None:
    """The file behind a store's URL; None for a database that is no file."""
    return Path(_path(url)) if urlsplit(url).scheme == "sqlite" else None


def _path(url: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if parts.netloc or parts.query or not path:
        raise ConfigurationError(
            f"store {url!r} is no SQLite URL: write 'sqlite:///relative.db' or 'sqlite:////absolute.db'"
        )
    return path


def _driver(url: str) -> Driver:
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            from journeyman.stores.sqlite import SqliteDriver

            return SqliteDriver(_path(url))
        case "postgresql" | "postgres":
            try:
                from journeyman.stores.postgres import PostgresDriver
            except ImportError as error:
                raise ConfigurationError(
                    "PostgreSQL needs more packages: pip install 'journeyman[postgres]'"
                ) from error
            return PostgresDriver(url)
        case scheme:
            raise ConfigurationError(
                f"there is no store for {scheme + ':' if scheme else url!r}: "
                "write 'sqlite:///FILE' or 'postgresql://USER@HOST/DATABASE'"
            )

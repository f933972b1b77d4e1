"""Everything durable over one database, chosen by URL."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from journeyman.core.audit import STORE_PURGED
from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.core.protocols import Clock, SystemClock
from journeyman.core.storing import Purged
from journeyman.stores import backup, migrations
from journeyman.stores.approvals import SqlApprovals, SqlGrants, SqlLabels
from journeyman.stores.audit import AuditKeys, SqlAudit
from journeyman.stores.calls import SqlArtifacts, SqlCalls, SqlExperiments
from journeyman.stores.connection import Connection, Driver, SqliteDriver, can_only_be_read, check_file
from journeyman.stores.conversations import SqlConversations
from journeyman.stores.database import Database
from journeyman.stores.gaps import SqlGaps
from journeyman.stores.limits import SqlBreaker, SqlBuckets
from journeyman.stores.memories import SqlMemories
from journeyman.stores.playbooks import SqlCursors, SqlPlaybooks
from journeyman.stores.processes import SqlIdempotency, SqlLeases, SqlPrograms, SqlSignals
from journeyman.stores.retention import purge
from journeyman.stores.runs import SqlRuns
from journeyman.stores.tasks import SqlTasks

logger = logging.getLogger("journeyman.store")

QUEUE_CONNECTIONS = 2
"""What a job queue needs of a process's connections: one to ask with, one to be told on."""
_UNTOLD = {"audit rows", "rate limits"}
"""Purged without a row about it: audit rows have their own, and rate limits are nobody's data."""
RETRY_SECONDS = 10.0
"""How long a lock or a restart of the database is waited out before StoreError."""


class SqlStore:
    """All aggregates on one database. To be opened, used and closed on one event loop."""

    def __init__(
        self,
        driver: Driver,
        *,
        clock: Clock | None = None,
        retry_seconds: float = RETRY_SECONDS,
        connections: int | None = None,
    ) -> None:
        self._clock = clock = clock or SystemClock()
        self.shared_limits = driver.shared
        self.url: str | None = None
        """What it was opened by, which a job queue in the same database needs."""
        self.created = False
        """Whether there was nothing before this program opened it."""
        self._driver = driver
        # The one place where tests move the time that processes share; a clock that is merely wrong changes nothing.
        driver.now = getattr(clock, "database_time", None)
        self._database = Database(driver, retry_seconds=retry_seconds, connections=connections)
        self.runs = SqlRuns(self._database)
        self.cursors = SqlCursors(self._database)
        self.leases = SqlLeases(self._database)
        self.programs = SqlPrograms(self._database)
        self.signals = SqlSignals(self._database)
        self.idempotency = SqlIdempotency(self._database)
        self.approvals = SqlApprovals(self._database)
        self.grants = SqlGrants(self._database)
        self.conversations = SqlConversations(self._database, clock=clock)
        self.calls = SqlCalls(self._database)
        self.artifacts = SqlArtifacts(self._database)
        self.audit = SqlAudit(self._database, driver.audit_keys)
        self.gaps = SqlGaps(self._database)
        self.labels = SqlLabels(self._database)
        self.experiments = SqlExperiments(self._database)
        self.tasks = SqlTasks(self._database)
        self.memories = SqlMemories(self._database)
        self.playbooks = SqlPlaybooks(self._database)
        self.limiter = SqlBuckets(self._database, clock=clock)
        self.breaker = SqlBreaker(self._database, clock=clock)

    async def open(self, *, upgrade: bool = True) -> None:
        """Connect and, unless told otherwise, bring the schema up to date."""
        self._database.start()
        try:
            if upgrade and not await self._only_readable():
                await self.upgrade()
        except BaseException:
            await self.close()
            raise

    async def _only_readable(self) -> bool:
        """Whether it can be read here and not be written. Raises where its schema would have to be upgraded."""
        if self._driver.shared or not await asyncio.to_thread(can_only_be_read, str(self._driver.file())):
            return False
        await self._database.read(migrations.must_be_readable)
        logger.warning("the store can only be read here: %s", self._driver.file())
        return True

    @property
    def read_only(self) -> bool:
        """Whether it can be read here and not be written."""
        return self._driver.read_only

    async def check(self) -> Sequence[str]:
        """What is wrong with the file it is in; nothing where all is well, or where a server looks after it."""
        if (file := self._driver.file()) is None:
            return ()
        return await asyncio.to_thread(check_file, str(file))

    async def close(self) -> None:
        """Commit what is queued and let go of the database."""
        await self._database.close()

    def retry_for(self, seconds: float) -> None:
        """From now on give up after so long where the database is away; whoever works on runs tries again."""
        self._database.retry_for(seconds)

    async def leave_room_for_queue(self) -> None:
        """Have so many connections fewer as a job queue beside it needs."""
        await self._database.limit(_beside_queue(self._driver))

    # --- looking after it

    async def purge(self, *, before: float, by: str | None = None, shrink: bool = True) -> Purged:
        """Forget what is older, in small steps, and give the room back. Tasks and experiments stay.

        Of the audit a row remains that vouches for what is gone, another says how much of what else went, and both on
        whose word (``by``).
        """
        bytes_before = await asyncio.to_thread(self._driver.size) if shrink else 0
        purged = await purge(self._database, before=before)
        now = self._clock.time()
        if rows := await self.audit.purge(before=before, by=by, now=now):
            purged = purged.model_copy(update={"counts": {**purged.counts, "audit rows": rows}})
        if told := {kind: count for kind, count in purged.counts.items() if kind not in _UNTOLD}:
            details = {"before": before, **told}
            await self.audit.append(STORE_PURGED, actor=by, run_id=None, subject="store", details=details, now=now)
        if not shrink:
            return purged
        await asyncio.to_thread(self._shrink)
        after = await asyncio.to_thread(self._driver.size)
        return purged.model_copy(update={"bytes_before": bytes_before, "bytes_after": after})

    def _shrink(self) -> None:
        try:
            self._driver.shrink()
        except Exception as error:
            # What is gone is gone; that its room is taken is no reason to fail.
            if (fault := self._driver.fault(error)) is None:
                raise
            logger.warning("the room was not given back: %s", fault.message)

    async def backup(self, path: Path) -> None:
        """The whole store as it is at one moment, in a new file. Whoever works on it goes on."""
        part = await asyncio.to_thread(backup.begin, path)
        try:
            if (file := self._driver.file()) is None:
                await self._database.read(partial(backup.copy_rows, path=part))
            else:
                await self.flush()
                await asyncio.to_thread(backup.copy_file, file, part)
            await asyncio.to_thread(backup.finish, part, path)
        except (OSError, sqlite3.Error) as error:
            raise ConfigurationError(f"the backup {str(path)!r} cannot be written: {error}") from error
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)

    async def restore(self, path: Path, *, replace: bool = False) -> int:
        """Put everything from a backup into this store, which is empty unless it may be replaced; returns the rows."""
        kept = await asyncio.to_thread(backup.Backup, path)
        try:
            await self.upgrade()
            return await self._database.write(partial(kept.put_into, replace=replace))
        finally:
            await asyncio.to_thread(kept.close)

    async def now(self) -> float:
        """The time by the database's clock."""
        [(now,)] = await self._database.read(lambda connection: connection.query("SELECT @now"))
        return float(now)

    async def flush(self) -> None:
        """Return when everything written so far is committed."""
        await self._database.flush()

    async def upgrade(self) -> int:
        """Bring the schema up to date; returns its version."""

        def whole(connection: Connection) -> tuple[bool, int]:
            return migrations.version(connection) == 0, migrations.upgrade(connection)

        new, version = await self._database.write(whole)
        self.created = self.created or new
        return version

    async def identity(self) -> str:
        """What tells this store from every other; given once, when it is made."""
        rows = await self._database.read(lambda connection: connection.query("SELECT id FROM store_identity"))
        return str(rows[0][0]) if rows else ""

    async def downgrade(self, to: int) -> int:
        """Undo migrations, and lose what they hold, down to a version; returns it."""
        return await self._database.write(partial(migrations.downgrade, to=to))

    @property
    def latest_version(self) -> int:
        """The schema version this program works with."""
        return len(migrations.MIGRATIONS)

    async def schema_version(self) -> int:
        return await self._database.write(migrations.version)


def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    retry_seconds: float = RETRY_SECONDS,
    audit_keys: AuditKeys | None = None,
    queued: bool = False,
) -> SqlStore:
    """The store behind a URL; nothing is connected before ``await store.open()``.

    ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://user:password@host/database``; with
    ``?pool_size=N`` a process has at most N connections to PostgreSQL. ``queued`` leaves some of them to a job queue.
    The keys of the audit are those of the environment unless they are given.

    What processes must agree on goes by the database's clock, whatever this one's says. For tests a ``clock`` with a
    ``database_time`` (``FakeClock``) stands in for both.
    """
    driver = _driver(url, audit_keys)
    connections = _beside_queue(driver) if queued else driver.pool_size
    store = SqlStore(driver, clock=clock, retry_seconds=retry_seconds, connections=connections)
    store.url = url
    return store


def _beside_queue(driver: Driver) -> int:
    return max(2, driver.pool_size - QUEUE_CONNECTIONS)


def sqlite_file(url: str) -> Path | None:
    """The file behind a store's URL; None for a database that is no file."""
    return Path(_path(url)) if urlsplit(url).scheme == "sqlite" else None


def _path(url: str) -> str:
    parts = urlsplit(url)
    path = unquote(parts.path).removeprefix("/")
    if not url.startswith("sqlite:///") or parts.query or not path:
        raise ConfigurationError(
            f"store {url!r} is no SQLite URL: write 'sqlite:///relative.db' or 'sqlite:////absolute.db'"
        )
    return path


def _driver(url: str, audit_keys: AuditKeys | None) -> Driver:
    parts = urlsplit(url)
    match parts.scheme:
        case "sqlite":
            return SqliteDriver(_path(url), audit_keys=audit_keys)
        case "postgresql" | "postgres":
            try:
                from journeyman.stores.postgres import PostgresDriver
            except ImportError as error:
                raise ConfigurationError(f"PostgreSQL needs more packages: {install_command('postgres')}") from error
            return PostgresDriver(url, audit_keys=audit_keys)
        case scheme:
            raise ConfigurationError(
                f"there is no store for {scheme + ':' if scheme else url!r}: "
                "write 'sqlite:///FILE' or 'postgresql://USER@HOST/DATABASE'"
            )

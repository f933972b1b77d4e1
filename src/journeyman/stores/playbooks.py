"""Playbooks in a database. Every state of every bullet is kept, so that any version can be read again.

And cursors over ended runs, which learning reads with: each reader sees every ended run once, in the order in which the
ends were committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from journeyman.core.data import unchecked
from journeyman.core.errors import ConfigurationError, JournalConflictError, PlaybookConflictError
from journeyman.core.playbook import PlaybookBullet, PlaybookChange, PlaybookState, PlaybookVersion, read_bullet
from journeyman.core.storing import CursorBatch, RunRow
from journeyman.stores.connection import Connection, entities, json_text
from journeyman.stores.database import CURSOR_LEASES, Aggregate, writes
from journeyman.stores.runs import ROW_COLUMNS, RUNS_AND_LEASES


class SqlCursors(Aggregate):
    """Cursors in a database. One process at a time holds a cursor; its lease and epoch work like a run's."""

    @writes(sync=True)
    def take(
        self, connection: Connection, name: str, *, owner: str, lease_seconds: float, limit: int = 100
    ) -> CursorBatch | None:
        """The next ended runs, oldest first; None when there are none, or another process holds the cursor."""
        taken = CURSOR_LEASES.take(connection, name, owner=owner, seconds=lease_seconds)
        if taken is None:
            return None
        connection.put("cursors", {"name": name, "position": 0}, key="name")
        [(position,)] = connection.query("SELECT position FROM cursors WHERE name = ?", name)
        rows = connection.query(
            f"SELECT end_number, {ROW_COLUMNS} FROM {RUNS_AND_LEASES} WHERE end_number > ? ORDER BY end_number LIMIT ?",
            *(position, limit),
        )
        if not rows:
            CURSOR_LEASES.release(connection, name, epoch=taken.epoch)
            return None
        runs = entities(RunRow, (row[1:] for row in rows))
        return CursorBatch(name=name, epoch=taken.epoch, after=position, up_to=rows[-1][0], runs=runs)

    @writes(sync=True)
    def advance(self, connection: Connection, batch: CursorBatch) -> None:
        """Commit that a batch was read.

        Raises JournalConflictError where another process has taken the cursor over; then nothing is written.
        """
        _advance(connection, batch)


def _advance(connection: Connection, batch: CursorBatch) -> None:
    held = CURSOR_LEASES.release(connection, batch.name, epoch=batch.epoch)
    sql = "UPDATE cursors SET position = ? WHERE name = ? AND position = ?"
    if not held or not connection.execute(sql, batch.up_to, batch.name, batch.after):
        raise JournalConflictError(f"cursor {batch.name!r} was taken over by another process; read it again")


AT_ONCE = 2_000
"""Bullets to a page: others get their turn in between."""

_LATEST = """
    SELECT id, body FROM playbook_bullets b WHERE domain = ? AND version > ? AND version <= ? AND id > ?
    AND version = (
        SELECT MAX(version) FROM playbook_bullets c WHERE c.domain = b.domain AND c.id = b.id AND c.version <= ?
    )
    ORDER BY id LIMIT ?
"""


class SqlPlaybooks(Aggregate):
    """Playbooks of every domain."""

    async def read(self, domain: str, *, after: int = 0) -> PlaybookState:
        version = await self._version(domain)
        if version == after:
            return PlaybookState(version=version)
        return await self._between(domain, after, version)

    @writes(sync=True)
    def commit(
        self, connection: Connection, changes: Sequence[PlaybookChange], *, now: float, batch: CursorBatch | None = None
    ) -> Mapping[str, int]:
        """Write changes, and advance the cursor where they came from it: all or nothing."""
        if batch is not None:
            _advance(connection, batch)
        versions: dict[str, int] = {}
        for change in sorted(changes, key=lambda item: item.domain):  # everybody locks them in one order
            domain, version = change.domain, change.expected + 1
            connection.put("playbooks", {"domain": domain, "version": 0}, key="domain")
            sql = "UPDATE playbooks SET version = ? WHERE domain = ? AND version = ?"
            if not connection.execute(sql, version, domain, change.expected):
                raise PlaybookConflictError(
                    f"playbook {domain!r} is no longer at version {change.expected}: read it again"
                )
            about = {"domain": domain, "version": version, "made_at": float(now), "reason": change.reason}
            counts = {"changed": len(change.bullets), "removed": len(change.removed)}
            connection.put("playbook_changes", about | counts)
            written: dict[str, str | None] = {bullet.id: json_text(bullet) for bullet in change.bullets}
            written.update(dict.fromkeys(change.removed))
            for key, body in written.items():
                row = {"domain": domain, "id": key, "version": version, "body": body}
                connection.put("playbook_bullets", row)
            versions[domain] = version
        return versions

    async def at(self, domain: str, version: int) -> PlaybookState:
        latest = await self._version(domain)
        if not 0 <= version <= latest:
            raise ConfigurationError(f"playbook {domain!r} has no version {version}: it is at version {latest}")
        return await self._between(domain, 0, version)

    async def history(self, domain: str, *, limit: int = 50) -> Sequence[PlaybookVersion]:
        sql = (
            "SELECT version, made_at, reason, changed, removed FROM playbook_changes WHERE domain = ? "
            "ORDER BY version DESC LIMIT ?"
        )
        return entities(PlaybookVersion, await self._query(sql, domain, limit))

    async def domains(self) -> Sequence[str]:
        sql = "SELECT domain FROM playbooks ORDER BY domain"
        return [domain for (domain,) in await self._query(sql)]

    async def _between(self, domain: str, after: int, version: int) -> PlaybookState:
        bullets: list[PlaybookBullet] = []
        removed: list[str] = []
        last = ""
        while rows := await self._query(_LATEST, domain, after, version, last, version, AT_ONCE):
            for key, body in rows:
                if body is None:
                    removed.append(key)
                else:
                    bullets.append(read_bullet(body))
            last = rows[-1][0]
            await asyncio.sleep(0)
        return unchecked(PlaybookState, {"version": version, "bullets": tuple(bullets), "removed": tuple(removed)})

    async def _version(self, domain: str) -> int:
        rows = await self._query("SELECT version FROM playbooks WHERE domain = ?", domain)
        return int(rows[0][0]) if rows else 0

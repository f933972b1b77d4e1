"""Playbooks in a database. Every state of every bullet is kept, so that any version can be read again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from journeyman.core.errors import ConfigurationError, PlaybookConflictError
from journeyman.core.playbook import PlaybookBullet, PlaybookChange, PlaybookState, PlaybookVersion, read_bullet
from journeyman.core.storing import CursorBatch
from journeyman.stores.connection import Connection, Row, json_text
from journeyman.stores.cursors import advance_cursor
from journeyman.stores.database import Database

AT_ONCE = 2_000
"""Bullets to a page: others get their turn in between."""

_LATEST = """
    SELECT id, body FROM playbook_bullets b WHERE domain = ? AND version > ? AND version <= ? AND id > ?
    AND version = (
        SELECT MAX(version) FROM playbook_bullets c WHERE c.domain = b.domain AND c.id = b.id AND c.version <= ?
    )
    ORDER BY id LIMIT ?
"""


class SqlPlaybooks:
    """Playbooks of every domain."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, domain: str, *, after: int = 0) -> PlaybookState:
        version = await self._database.read(partial(_version, domain=domain))
        if version == after:
            return PlaybookState(version=version)
        return await self._between(domain, after, version)

    async def commit(
        self, changes: Sequence[PlaybookChange], *, now: float, batch: CursorBatch | None = None
    ) -> Mapping[str, int]:
        """Write changes, and advance the cursor where they came from it: all or nothing."""
        return await self._database.write(partial(_commit, changes=changes, now=now, batch=batch))

    async def at(self, domain: str, version: int) -> PlaybookState:
        latest = await self._database.read(partial(_version, domain=domain))
        if not 0 <= version <= latest:
            raise ConfigurationError(f"playbook {domain!r} has no version {version}: it is at version {latest}")
        return await self._between(domain, 0, version)

    async def history(self, domain: str, *, limit: int = 50) -> Sequence[PlaybookVersion]:
        sql = (
            "SELECT version, made_at, reason, changed, removed FROM playbook_changes WHERE domain = ? "
            "ORDER BY version DESC LIMIT ?"
        )
        rows = await self._database.read(lambda connection: connection.query(sql, domain, limit))
        return [PlaybookVersion(**dict(zip(PlaybookVersion.model_fields, row, strict=True))) for row in rows]

    async def domains(self) -> Sequence[str]:
        sql = "SELECT domain FROM playbooks ORDER BY domain"
        return [domain for (domain,) in await self._database.read(lambda connection: connection.query(sql))]

    async def _between(self, domain: str, after: int, version: int) -> PlaybookState:
        bullets: list[PlaybookBullet] = []
        removed: list[str] = []
        last = ""
        while rows := await self._database.read(partial(_page, domain=domain, after=after, up_to=version, last=last)):
            for key, body in rows:
                if body is None:
                    removed.append(key)
                else:
                    bullets.append(read_bullet(body))
            last = rows[-1][0]
            await asyncio.sleep(0)
        return PlaybookState.unchecked(version=version, bullets=tuple(bullets), removed=tuple(removed))


def _version(connection: Connection, *, domain: str) -> int:
    rows = connection.query("SELECT version FROM playbooks WHERE domain = ?", domain)
    return int(rows[0][0]) if rows else 0


def _page(connection: Connection, *, domain: str, after: int, up_to: int, last: str) -> Sequence[Row]:
    return connection.query(_LATEST, domain, after, up_to, last, up_to, AT_ONCE)


def _commit(
    connection: Connection, *, changes: Sequence[PlaybookChange], now: float, batch: CursorBatch | None
) -> dict[str, int]:
    if batch is not None:
        advance_cursor(connection, batch=batch, work=None)
    versions: dict[str, int] = {}
    for change in sorted(changes, key=lambda item: item.domain):  # everybody locks them in one order
        domain, version = change.domain, change.expected + 1
        sql = "INSERT INTO playbooks (domain, version) VALUES (?, 0) ON CONFLICT (domain) DO NOTHING"
        connection.execute(sql, domain)
        sql = "UPDATE playbooks SET version = ? WHERE domain = ? AND version = ?"
        if not connection.execute(sql, version, domain, change.expected):
            raise PlaybookConflictError(f"playbook {domain!r} is no longer at version {change.expected}: read it again")
        connection.execute(
            "INSERT INTO playbook_changes (domain, version, made_at, reason, changed, removed) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            *(domain, version, float(now), change.reason, len(change.bullets), len(change.removed)),
        )
        written: dict[str, str | None] = {bullet.id: json_text(bullet) for bullet in change.bullets}
        written.update(dict.fromkeys(change.removed))
        for key, body in written.items():
            sql = "INSERT INTO playbook_bullets (domain, id, version, body) VALUES (?, ?, ?, ?)"
            connection.execute(sql, domain, key, version, body)
        versions[domain] = version
    return versions

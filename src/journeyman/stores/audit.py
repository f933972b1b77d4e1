"""The tamper-evident log, to which rows are only ever added, except that old ones can be purged.

Each row's hash covers the row and the hash before it; its mac, where there is a key, that hash and the mac before it.
``audit_check`` verifies both.

Where many processes write, what calls leave goes to one of several chains, each with a head of its own, so that nobody
waits for the others; ``fold`` adds their rows to the log, after a moment and before anybody reads it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from journeyman.core.audit import PURGED, SETTINGS, AuditAnchor, AuditNote, AuditReport, AuditRow
from journeyman.core.data import canonical_json, new_id
from journeyman.core.errors import AuditError, ConfigurationError, StoreError
from journeyman.stores.connection import Connection, Row, Where, columns, marks, storable
from journeyman.stores.database import Aggregate, Database, reads, writes

logger = logging.getLogger("journeyman.store")

VARIABLE = "JOURNEYMAN_AUDIT_KEY"
"""One key, or several with commas between them: the first is written with, all are verified with. Empty: no key."""
SHORTEST = 16
_FILE = Path("journeyman", "audit.key")


class AuditKey:
    """One key. Its id tells keys apart and says nothing about them."""

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self.id = self._digest(b"journeyman audit key id")[:16]

    def mac(self, digest: str, before: str | None) -> str:
        """Of a row's hash and the mac before it."""
        return self._digest(f"{before or ''}\n{digest}".encode())

    def _digest(self, message: bytes) -> str:
        return hmac.digest(self._secret, message, "sha256").hex()


class AuditKeys:
    """The keys that this process has, read when the first row is written or verified.

    With ``make_file``, for a database that is a file of this machine, a user without a key is given one: in a file that
    nobody else can read, in their folder for state.
    """

    def __init__(self, secrets: Sequence[str] | None = None, *, make_file: bool = False) -> None:
        self._given = secrets
        self._make_file = make_file

    @cached_property
    def writing(self) -> AuditKey | None:
        """The key for new rows; None: they get no mac."""
        if self._secrets:
            return AuditKey(self._secrets[0])
        if self._make_file and not self._declined:
            secret = _secret_in_file(make=True)
            return None if secret is None else AuditKey(secret)
        return None

    @cached_property
    def by_id(self) -> dict[str, AuditKey]:
        """All keys, to verify with."""
        kept = _secret_in_file(make=False) if self._make_file and not self._declined else None
        keys = [AuditKey(secret) for secret in (*self._secrets, *([kept] if kept else ()))]
        return {key.id: key for key in keys}

    @cached_property
    def _secrets(self) -> list[str]:
        given = self._given
        if given is None:
            given = [part.strip() for part in os.environ.get(VARIABLE, "").split(",") if part.strip()]
        if any(len(secret) < SHORTEST for secret in given):
            raise ConfigurationError(f"a key of the audit ({VARIABLE}) has at least {SHORTEST} characters")
        return list(given)

    @property
    def _declined(self) -> bool:
        """Whether somebody said that there is to be no key."""
        return self._given is not None or os.environ.get(VARIABLE) == ""


def key_file() -> Path | None:
    """Where a user's own key is kept; None for one without a home."""
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / _FILE
    except RuntimeError:
        return None


def _secret_in_file(*, make: bool) -> str | None:
    path = key_file()
    if path is None:
        return None
    try:
        if make and not path.exists():
            _write_new(path)
        if path.stat().st_mode & 0o077:
            logger.warning("the key of the audit can be read by others: chmod 600 %s", path)
        return path.read_text().strip() or None
    except OSError as error:
        if make:
            logger.warning("the audit log has no key, since %s cannot be used: %s", path, error.strerror)
        return None


def _write_new(path: Path) -> None:
    """Make the file, whole or not at all: another process may be doing the same."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32) + "\n")
        os.link(draft, path)
    except FileExistsError:
        pass  # that one is as good
    finally:
        draft.unlink()


SHARDS = 64
SHARD_COLUMNS = "number, time, kind, actor, run_id, subject, details, previous, hash, key_id, mac"
FOLDED_AT_ONCE = 1_000


def add_audit(
    connection: Connection,
    kind: str,
    *,
    actor: str | None,
    subject: str,
    now: float,
    run_id: str | None = None,
    details: dict[str, Any] | None = None,
    often: bool = False,
) -> None:
    """Have a row added with the transaction under way, at its end: the head of the log is wanted by everybody.

    One of a kind that is written ``often`` goes to a chain of its own where the database is shared.
    """
    row = (now, kind, actor, run_id, subject, details or {}, None)
    write = _write_shard if often and connection.audit_shard is not None else _write_rows
    connection.at_end.setdefault(write, []).append(row)


def shard_hash(shard: int, values: Sequence[Any]) -> str:
    """Of a row of a chain, from its number to ``previous``."""
    return row_hash(values, f"shard {shard}")


def _chained(
    connection: Connection, rows: Sequence[Row], head: Row, *, shard: int | None = None
) -> tuple[list[Row], tuple[int, str, str | None]]:
    """Rows as they follow a head (number, hash, mac), with what the hashes and macs cover; and the head after them."""
    last, previous, mac = head
    key, written = connection.audit_keys.writing, []
    for number, (now, kind, *rest, details, entry_id) in enumerate(rows, start=last + 1):
        # Made as it will be read back: the hash must not cover what the database cannot keep.
        values = (number, float(now), kind, *map(storable, (*rest, canonical_json(details))), previous)
        previous = row_hash(values, entry_id) if shard is None else shard_hash(shard, values)
        # The latest mac stays where a row has none: it is what the next one follows.
        key_id, own_mac = (None, None) if key is None else (key.id, key.mac(previous, mac))
        mac = own_mac or mac
        written.append((*values, previous, entry_id, key_id, own_mac))
    return written, (last + len(rows), previous, mac)


def _write_shard(connection: Connection, rows: Sequence[Row]) -> None:
    shard = connection.audit_shard or 0
    connection.put("audit_shards", {"shard": shard, "number": 0, "hash": ""}, key="shard")
    sql = f"SELECT number, hash, mac FROM audit_shards WHERE shard = ? {connection.for_update}"
    [head] = connection.query(sql, shard)
    chained, head = _chained(connection, rows, head, shard=shard)
    written = [(shard, *row[:-3], *row[-2:]) for row in chained]  # they get no entry id before they are folded
    connection.insert(f"audit_waiting (shard, {SHARD_COLUMNS})", written, at_once=100)
    connection.execute("UPDATE audit_shards SET number = ?, hash = ?, mac = ? WHERE shard = ?", *head, shard)


def fold(connection: Connection) -> bool:
    """Add rows of the chains to the log; whether there may be more. Only whole beginnings that nobody has changed."""
    if not connection.query("SELECT 1 FROM audit_waiting LIMIT 1"):
        return False
    _locked_head(connection)
    known = {shard: row for shard, *row in connection.query("SELECT shard, number, hash, mac FROM audit_folded")}
    waiting = connection.query(
        f"SELECT shard, {SHARD_COLUMNS} FROM audit_waiting ORDER BY number, shard LIMIT ?", FOLDED_AT_ONCE
    )
    rows, folded = list[Row](), dict[int, Sequence[Any]]()
    for shard, number, *values, previous, digest, _, mac in sorted(waiting, key=lambda row: row[:2]):
        last = folded.get(shard) or known.get(shard) or (0, "", None)
        if (number, previous) != (last[0] + 1, last[1]) or digest != shard_hash(shard, (number, *values, previous)):
            logger.error("row %d of chain %d of the audit does not follow: it is left where it is", number, shard)
            continue
        folded[shard] = (number, digest, mac or last[2])
        rows.append((*values[:-1], json.loads(values[-1]), f"{shard}.{number}"))
    _write_rows(connection, sorted(rows, key=lambda row: row[0]))
    for shard, (number, digest, mac) in folded.items():
        ends = {"number": number, "hash": digest, "mac": mac}
        connection.put("audit_folded", {"shard": shard, **ends}, key="shard", replaced=ends)
        connection.execute("DELETE FROM audit_waiting WHERE shard = ? AND number <= ?", shard, number)
    return len(waiting) == FOLDED_AT_ONCE and bool(folded)


def _write_rows(connection: Connection, rows: Sequence[Row]) -> list[Row]:
    """Add rows after the last one."""
    written, head = _chained(connection, rows, _locked_head(connection))
    connection.insert(f"audit ({columns(AuditRow)})", written, at_once=100)
    connection.execute("UPDATE audit_head SET seq = ?, hash = ?, mac = ? WHERE id = 1", *head)
    return written


def _locked_head(connection: Connection) -> Row:
    """The last row's number and hash and the latest mac. Whoever comes second waits, and reads what the first left."""
    heads = connection.query(f"SELECT seq, hash, mac FROM audit_head WHERE id = 1 {connection.for_update}")
    if not heads:
        raise AuditError("the audit log has lost its head; nothing can be added to it")
    return heads[0]


def add_note(connection: Connection, note: AuditNote | None, *, subject: str, run_id: str | None = None) -> None:
    """Add the row that goes with a change, where there is to be one."""
    if note is not None:
        add_audit(connection, run_id=run_id, **{**note.__dict__, "subject": note.subject or subject})


def _append_once(connection: Connection, row: Row, *, entry_id: str) -> AuditRow:
    _locked_head(connection)
    sql = f"SELECT {columns(AuditRow)} FROM audit WHERE entry_id = ?"
    rows = connection.query(sql, entry_id) or _write_rows(connection, [row])
    return read_row(rows[0])


def row_hash(values: Sequence[Any], entry_id: str | None) -> str:
    """The hash of a row's columns from ``seq`` to ``previous``, and of its entry id if it has one."""
    covered = tuple(values) if entry_id is None else (*values, entry_id)
    return hashlib.sha256(canonical_json(covered).encode()).hexdigest()


def read_row(row: Row) -> AuditRow:
    named = dict(zip(AuditRow.model_fields, row, strict=True))
    return AuditRow.model_validate({**named, "details": json.loads(named["details"])})


class SqlAudit(Aggregate):
    """The log in a database."""

    def __init__(self, database: Database, keys: AuditKeys) -> None:
        super().__init__(database)
        self._keys = keys

    async def append(
        self,
        kind: str,
        *,
        actor: str | None,
        run_id: str | None,
        subject: str,
        details: dict[str, Any],
        now: float,
        entry_id: str | None = None,
    ) -> AuditRow:
        """Add a row. Of several with one ``entry_id`` the first counts, and is returned each time."""
        entry_id = entry_id or new_id("entry")
        row = (now, kind, actor, run_id, subject, dict(details), entry_id)
        add = partial(_append_once, row=row, entry_id=entry_id)
        try:
            return await self._database.write(add)
        except StoreError:
            # Its commit may have been cut off and have succeeded all the same: then this finds the row.
            return await self._database.write(add)

    async def list(
        self, *, after: int = 0, limit: int = 100, actor: str | None = None, kind: str | None = None
    ) -> Sequence[AuditRow]:
        await self.fold()
        where = Where().holds("seq > ?", after).equals(actor=actor, kind=kind)
        sql = f"SELECT {columns(AuditRow)} FROM audit {where.clause} ORDER BY seq LIMIT ?"
        rows = await self._query(sql, *where.values, limit)
        return tuple(read_row(row) for row in rows)

    async def count(self, *, actor: str | None = None, kind: str | None = None) -> int:
        await self.fold()
        return await self._count("audit", Where().equals(actor=actor, kind=kind))

    async def missing_keys(self) -> Sequence[str]:
        """The ids of keys that rows were written with, and that are not here to verify them."""
        rows = await self._query("SELECT DISTINCT key_id FROM audit WHERE key_id IS NOT NULL ORDER BY key_id")
        return [key_id for (key_id,) in rows if key_id not in self._keys.by_id]

    async def verify(self, *, anchor: AuditAnchor | None = None) -> int:
        """Check the whole log and return its length. Raises AuditError naming the first row that does not fit."""
        report = await self.inspect(anchor=anchor)
        if report.findings:
            raise AuditError(report.findings[0])
        return report.rows

    async def inspect(self, *, anchor: AuditAnchor | None = None) -> AuditReport:
        """Check the whole log and say all that was found."""
        await self.fold()
        from journeyman.stores.audit_check import inspect

        return await self._database.read(partial(inspect, keys=self._keys.by_id, anchor=anchor))

    async def fold(self) -> None:
        """Add what calls have left in chains of their own to the log."""
        while not self._database.read_only and await self._query("SELECT 1 FROM audit_waiting LIMIT 1"):
            if not await self._database.write(fold):
                break

    async def anchor(self, *, now: float) -> AuditAnchor:
        """Where the log ends now, to be kept elsewhere."""
        await self.fold()
        return await self._anchor(now=now)

    @reads
    def _anchor(self, connection: Connection, *, now: float) -> AuditAnchor:
        rows = connection.query("SELECT seq, hash, key_id, mac FROM audit ORDER BY seq DESC LIMIT 1")
        [(count,)] = connection.query("SELECT COUNT(*) FROM audit")
        seq, digest, key_id, mac = rows[0] if rows else (0, "", None, None)
        return AuditAnchor(seq=seq, count=count, hash=digest, key_id=key_id, mac=mac, time=now)

    @writes(sync=True)
    def purge(self, connection: Connection, *, before: float, by: str | None, now: float) -> int:
        """Forget the rows at the beginning that are older; returns how many.

        A row is added that vouches for them, so that the rest can still be verified.
        """
        _locked_head(connection)
        [(last,)] = connection.query(
            "SELECT COALESCE((SELECT MIN(seq) - 1 FROM audit WHERE time >= ?), (SELECT MAX(seq) FROM audit))", before
        )
        rows = connection.query("SELECT hash FROM audit WHERE seq = ?", last)
        if not rows:
            return 0
        earlier, in_force = latest_purge(connection), _settings_up_to(connection, last)
        macs = connection.query(
            "SELECT mac FROM audit WHERE seq <= ? AND mac IS NOT NULL ORDER BY seq DESC LIMIT 1", last
        ) or [(None if earlier is None else earlier.details["mac"],)]
        purged = connection.execute("DELETE FROM audit WHERE seq <= ?", last)
        details = {"up_to": last, "hash": rows[0][0], "mac": macs[0][0], "rows": purged}
        add_audit(connection, PURGED, actor=by, subject=str(last), details=details, now=now)
        for row in in_force:
            details = {**row.details, "first_written": {"row": row.seq, "time": row.time}}
            again = AuditNote(kind=row.kind, actor=row.actor, subject=row.subject, details=details, now=now)
            add_note(connection, again, subject=row.subject, run_id=row.run_id)
        return purged


# --- purging


def latest_purge(connection: Connection) -> AuditRow | None:
    """The row that vouches for all that was purged so far."""
    sql = f"SELECT {columns(AuditRow)} FROM audit WHERE kind = ? ORDER BY seq DESC LIMIT 1"
    rows = connection.query(sql, PURGED)
    return read_row(rows[0]) if rows else None


def _settings_up_to(connection: Connection, last: int) -> list[AuditRow]:
    """The settings among the first rows that no later row has replaced."""
    kinds = sorted(SETTINGS)
    rows = connection.query(
        f"SELECT {columns(AuditRow)} FROM audit WHERE kind IN ({marks(kinds)}) ORDER BY seq", *kinds
    )
    latest = {(row.kind, row.subject): row for row in map(read_row, rows)}
    return [row for row in latest.values() if row.seq <= last]

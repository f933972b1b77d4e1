"""Verifying the audit log: what was changed, cut, inserted, reordered or replaced, and which rows that concerns."""

from __future__ import annotations

from collections.abc import Mapping

from journeyman.core.audit import AuditAnchor, AuditReport, AuditRow
from journeyman.core.data import moment
from journeyman.stores.audit import SHARD_COLUMNS, AuditKey, latest_purge, row_hash, shard_hash
from journeyman.stores.connection import Connection, Row, columns

PAGE = 1000
MOST_FINDINGS = 20
"""Of a log that was replaced as a whole every row would be one."""
_SEQ, _PREVIOUS, _HASH, _ENTRY_ID, _KEY_ID, _MAC = 0, 7, 8, 9, 10, 11


def inspect(connection: Connection, *, keys: Mapping[str, AuditKey], anchor: AuditAnchor | None) -> AuditReport:
    """Walk over the whole log, on one state of the database."""
    walk = _Walk(keys, anchor)
    walk.begin(connection)
    after: int | None = None
    while rows := _page(connection, after):
        for row in rows:
            walk.take(row)
        after = rows[-1][_SEQ]
    return walk.report(connection)


def _page(connection: Connection, after: int | None) -> list[Row]:
    # From the very first: a row that was put in below number 1 is to be found as well.
    test, values = ("WHERE seq IS NOT NULL", ()) if after is None else ("WHERE seq > ?", (after,))
    sql = f"SELECT {columns(AuditRow)} FROM audit {test} ORDER BY seq LIMIT ?"
    return list(connection.query(sql, *values, PAGE))


class _Walk:
    """What the rows so far say."""

    def __init__(self, keys: Mapping[str, AuditKey], anchor: AuditAnchor | None) -> None:
        self._keys = keys
        self._anchor = anchor
        self._findings: list[str] = []
        self._unvouched: list[tuple[int, str]] = []
        """Rows that no key here vouches for; an anchor after them can."""
        self._rows = 0
        self._seq = 0
        self._hash: str | None = ""
        """None where the row before is missing."""
        self._mac: str | None = None
        self._mac_known = True
        self._keyed_from: int | None = None
        self._key_ids: dict[str, None] = {}
        self._purged = 0
        self._purge: AuditRow | None = None
        self._anchored = False

    # --- rows

    def begin(self, connection: Connection) -> None:
        try:
            purge = latest_purge(connection)
            if purge is not None:
                told = purge.details
                self._purged, self._hash, self._mac = int(told["up_to"]), str(told["hash"]), told["mac"]
                self._purge, self._seq = purge, self._purged
        except (KeyError, TypeError, ValueError):
            self._find("the row that vouches for what was purged cannot be read: it was changed")
        self._look_at_anchor(self._purged, self._hash)

    def take(self, row: Row) -> None:
        seq, self._rows = row[_SEQ], self._rows + 1
        if not isinstance(seq, int) or seq <= self._seq:
            put_in = "was purged or never written" if isinstance(seq, int) else "is no number of a row"
            self._find(f"audit row {seq!r} was put in: that number {put_in}")
            return
        if seq > self._seq + 1:
            self._missing(self._seq + 1, seq - 1, f"the row after number {self._seq} has number {seq}")
            self._hash, self._mac_known = None, False
        self._seq = seq
        if self._hash is not None and row[_PREVIOUS] != self._hash:
            self._find(f"audit row {seq} does not follow from row {seq - 1}: one of them was changed")
        elif not _fits(row):
            self._find(f"audit row {seq} was changed: its content does not fit its hash")
        self._take_mac(row)
        self._hash = row[_HASH]
        self._look_at_anchor(seq, row[_HASH], row)

    def _take_mac(self, row: Row) -> None:
        seq, key_id, mac = row[_SEQ], row[_KEY_ID], row[_MAC]
        if key_id is None and mac is None:
            if self._mac is not None:
                told = "has no mac, though rows before it have one: it was forged, or written without the key"
                self._unvouched.append((seq, f"audit row {seq} {told}"))
            return
        if key_id is None or mac is None:
            self._find(f"audit row {seq} was changed: it has lost its {'key id' if key_id is None else 'mac'}")
        elif (key := self._keys.get(key_id)) is None:
            told = f"was written with the key {key_id}, which is not here: it cannot be told from a forged one"
            self._unvouched.append((seq, f"audit row {seq} {told}"))
        else:
            self._keyed_from = self._keyed_from or seq
            self._key_ids[key_id] = None
            if self._mac_known and key.mac(row[_HASH], self._mac) != mac:
                self._find(f"audit row {seq} was forged, or one before it was: its mac does not fit")
        self._mac, self._mac_known = mac, True

    def _look_at_anchor(self, seq: int, digest: str | None, row: Row | None = None) -> None:
        anchor = self._anchor
        if anchor is None or anchor.seq != seq:
            return
        fits = digest == anchor.hash and (row is None or (row[_KEY_ID], row[_MAC]) == (anchor.key_id, anchor.mac))
        if not fits:
            self._find(
                f"audit row {seq} is not the one that was anchored at {_time(anchor)}: rows up to it were replaced"
            )
        self._anchored = fits

    # --- the end

    def report(self, connection: Connection) -> AuditReport:
        self._check_head(connection)
        self._check_shards(connection)
        self._check_anchor()
        anchored = self._anchor.seq if self._anchored and self._anchor is not None else None
        findings = self._findings + [told for seq, told in self._unvouched if anchored is None or seq > anchored]
        return AuditReport(
            rows=self._rows,
            last=self._seq,
            keyed_from=self._keyed_from,
            key_ids=tuple(self._key_ids),
            purged=self._purged,
            anchored=anchored,
            findings=tuple(findings[:MOST_FINDINGS]),
        )

    def _check_shards(self, connection: Connection) -> None:
        """What waits in chains to be added to the log: each goes on where it was added last, up to its head."""
        ends = {shard: row for shard, *row in connection.query("SELECT shard, number, hash, mac FROM audit_folded")}
        rows = connection.query(f"SELECT shard, {SHARD_COLUMNS} FROM audit_waiting ORDER BY shard, number")
        for shard, number, *values, digest, key_id, mac in rows:
            last = ends.get(shard, [0, "", None])
            key = self._keys.get(key_id)
            if (number, values[-1]) != (last[0] + 1, last[1]):
                self._find(f"row {number} of chain {shard} of the audit does not follow: rows before it were changed")
            elif digest != shard_hash(shard, (number, *values)):
                self._find(f"row {number} of chain {shard} of the audit was changed: it does not fit its hash")
            elif key is not None and key.mac(digest, last[2]) != mac:
                self._find(f"row {number} of chain {shard} of the audit was forged: its mac does not fit")
            ends[shard] = [number, digest, mac or last[2]]
        heads = connection.query("SELECT shard, number, hash, mac FROM audit_shards ORDER BY shard")
        for shard in sorted(ends.keys() ^ {shard for shard, *_ in heads}):
            self._find(f"chain {shard} of the audit has lost its head or all its rows")
        for shard, *head in heads:
            if shard in ends and list(head) != ends[shard]:
                self._find(f"chain {shard} of the audit does not end with its head: the end was cut or forged")

    def _check_head(self, connection: Connection) -> None:
        heads = connection.query("SELECT seq, hash, mac FROM audit_head WHERE id = 1")
        if not heads:
            self._find("the head of the audit log is missing: it was removed")
            return
        length, head, mac = heads[0]
        if (length, head) != (self._seq, self._hash):
            told = f"the audit log ends with row {self._seq}, but {length} rows were written"
            self._find(f"{told}: the end was cut or forged")
        elif mac != self._mac:
            self._find(f"the head of the audit log was changed: its mac is not that of row {self._seq}")
        [(there,)] = connection.query("SELECT COUNT(*) FROM audit")
        if there != self._rows:
            self._find(f"{there - self._rows} rows without a number were put into the audit log")

    def _check_anchor(self) -> None:
        anchor = self._anchor
        if anchor is None or self._anchored:
            return
        if anchor.seq > self._seq:
            self._missing(self._seq + 1, anchor.seq, f"they were there at {_time(anchor)}, when the log was anchored")
            return
        # Whether who wrote of the purge had a key that is here; its mac was checked with the others.
        vouched = self._purge is not None and self._purge.key_id in self._keys
        if anchor.seq < self._purged and not vouched:
            told = f"row {anchor.seq}, which the anchor of {_time(anchor)} knows, is said to be purged"
            self._find(f"{told}, and no key vouches for that: verify with an anchor made after the purge")

    def _missing(self, first: int, last: int, why: str) -> None:
        rows = f"audit row {first} is" if first == last else f"audit rows {first} to {last} are"
        self._find(f"{rows} missing: {why}")

    def _find(self, finding: str) -> None:
        self._findings.append(finding)


def _fits(row: Row) -> bool:
    try:
        return bool(row_hash(row[:_HASH], row[_ENTRY_ID]) == row[_HASH])
    except (TypeError, ValueError):  # of a type that no row has
        return False


def _time(anchor: AuditAnchor) -> str:
    return moment(anchor.time).isoformat(timespec="seconds")

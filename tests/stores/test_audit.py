"""The tamper-evident log: whatever is changed, cut, put in, replaced or forged is found, and named by its row."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.audit import AuditRow
from journeyman.core.data import canonical_json
from journeyman.core.errors import AuditError
from journeyman.stores.audit import AuditKey, AuditKeys
from journeyman.stores.connection import Connection
from journeyman.stores.store import SqlStore, open_store
from tests.stores.samples import NOW
from tests.stores.test_database import watched

INSERT = "INSERT INTO audit (seq, time, kind, subject, details, previous, hash) VALUES"
OURS, THEIRS = "the key of the operator", "the key of somebody else"


async def note(store: SqlStore, subject: str, *, now: float = NOW) -> AuditRow:
    return await store.audit.append(
        "call_refused", actor="ada", run_id="r1", subject=subject, details={"b": 1, "a": "ä"}, now=now
    )


async def notes(store: SqlStore, *subjects: str) -> None:
    for subject in subjects:
        await note(store, subject)


def run_all(connection: Connection, *, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)


async def tamper(store: SqlStore, *statements: str) -> None:
    await store._database.write(partial(run_all, statements=statements))


@asynccontextmanager
async def keyed(url: str, *keys: str) -> AsyncIterator[SqlStore]:
    """A store whose audit is kept with these keys, or with none."""
    opened = open_store(url, audit_keys=AuditKeys(keys))
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


async def findings(store: SqlStore, **options: Any) -> str:
    return "\n".join((await store.audit.inspect(**options)).findings)


async def test_rows_form_a_chain(store: SqlStore) -> None:
    first, second = await note(store, "c-1"), await note(store, "c-2", now=7)
    assert (first.seq, first.previous) == (1, "")
    assert (second.seq, second.previous) == (2, first.hash)
    assert tuple(await store.audit.list()) == (first, second)
    assert tuple(await store.audit.list(after=1)) == (second,)
    assert tuple(await store.audit.list(limit=1)) == (first,)
    assert await store.audit.verify() == 2


async def test_an_empty_log_is_whole(store: SqlStore) -> None:
    assert await store.audit.verify() == 0
    assert await store.audit.verify(anchor=await store.audit.anchor(now=NOW)) == 0


async def test_rows_are_found_by_who_and_what_before_the_limit(store: SqlStore) -> None:
    for number in range(30):
        await store.audit.append("noise", actor="bob", run_id=None, subject=str(number), details={}, now=NOW)
    mine = await note(store, "c-1")
    assert tuple(await store.audit.list(actor="ada", limit=5)) == (mine,)
    assert tuple(await store.audit.list(kind="call_refused", limit=5)) == (mine,)
    assert await store.audit.list(actor="bob", kind="call_refused") == ()


TAMPERINGS: list[tuple[tuple[str, ...], str]] = [
    (("UPDATE audit SET actor = 'eve' WHERE seq = 2",), "row 2 was changed"),
    (("UPDATE audit SET actor = NULL WHERE seq = 2",), "row 2 was changed"),
    (("UPDATE audit SET time = time + 1 WHERE seq = 3",), "row 3 was changed"),
    (("UPDATE audit SET kind = 'x' WHERE seq = 3",), "row 3 was changed"),
    (("UPDATE audit SET run_id = 'r2' WHERE seq = 3",), "row 3 was changed"),
    (("UPDATE audit SET subject = 'x' WHERE seq = 3",), "row 3 was changed"),
    (("UPDATE audit SET details = '{}' WHERE seq = 1",), "row 1 was changed"),
    (("UPDATE audit SET previous = 'x' WHERE seq = 3",), "row 3 does not follow from row 2"),
    (("UPDATE audit SET hash = 'x' WHERE seq = 3",), "row 3 was changed"),
    (("UPDATE audit SET entry_id = 'x' WHERE seq = 3",), "row 3 was changed"),
    (("UPDATE audit SET entry_id = NULL WHERE seq = 3",), "row 3 was changed"),
    (("DELETE FROM audit WHERE seq = 2",), "row 2 is missing"),
    (("DELETE FROM audit WHERE seq = 1",), "row 1 is missing"),
    (("DELETE FROM audit WHERE seq IN (2, 3)",), "rows 2 to 3 are missing"),
    (("DELETE FROM audit WHERE seq = 4",), "ends with row 3, but 4 rows were written"),
    (("DELETE FROM audit",), "ends with row 0"),
    (("DELETE FROM audit_head",), "the head of the audit log is missing"),
    (("UPDATE audit_head SET seq = 9",), "ends with row 4, but 9 rows were written"),
    (("UPDATE audit_head SET hash = 'x'",), "the end was cut or forged"),
    (
        ("DELETE FROM audit WHERE seq = 2", "UPDATE audit SET seq = seq - 1 WHERE seq > 2"),
        "row 2 does not follow from row 1",
    ),
    (
        (
            "UPDATE audit SET seq = 99 WHERE seq = 2",
            "UPDATE audit SET seq = 2 WHERE seq = 3",
            "UPDATE audit SET seq = 3 WHERE seq = 99",
        ),
        "row 2 does not follow from row 1",
    ),
    ((f"{INSERT} (-1, 1, 'x', '', '{{}}', '', '')",), "row -1 was put in"),
    ((f"{INSERT} (5, 1, 'x', '', '{{}}', '', '')",), "row 5 does not follow from row 4"),
    (("UPDATE audit SET hash = 'x', actor = 'eve' WHERE seq = 4",), "row 4 was changed"),
]
KEYED_TAMPERINGS: list[tuple[tuple[str, ...], str]] = [
    (("UPDATE audit SET mac = 'é' WHERE seq = 2",), "row 2 was forged"),
    (("UPDATE audit SET mac = NULL WHERE seq = 2",), "row 2 was changed: it has lost its mac"),
    (("UPDATE audit SET key_id = NULL WHERE seq = 2",), "row 2 was changed: it has lost its key id"),
    (("UPDATE audit SET key_id = 'other' WHERE seq = 2",), "row 2 was written with the key other, which is not here"),
    (("UPDATE audit SET key_id = NULL, mac = NULL WHERE seq = 2",), "row 2 has no mac"),
    # Where the keyed rows begin is as fixed as they are.
    (("UPDATE audit SET key_id = NULL, mac = NULL WHERE seq = 1",), "row 2 was forged, or one before it"),
    (("UPDATE audit_head SET mac = 'x'",), "the head of the audit log was changed"),
]


@pytest.mark.parametrize(("statements", "finding"), TAMPERINGS)
async def test_tampering_is_found(store_url: str, statements: tuple[str, ...], finding: str) -> None:
    async with keyed(store_url) as store:
        await notes(store, "c-0", "c-1", "c-2", "c-3")
        assert await store.audit.verify() == 4
        await tamper(store, *statements)
        with pytest.raises(AuditError, match=finding):
            await store.audit.verify()


@pytest.mark.parametrize(("statements", "finding"), TAMPERINGS + KEYED_TAMPERINGS)
async def test_tampering_with_a_keyed_log_is_found(store_url: str, statements: tuple[str, ...], finding: str) -> None:
    async with keyed(store_url, OURS) as store:
        await notes(store, "c-0", "c-1", "c-2", "c-3")
        assert await store.audit.verify() == 4
        await tamper(store, *statements)
        assert finding in await findings(store)


async def test_a_row_without_a_number_is_found(tmp_path: Path) -> None:
    async with keyed(f"sqlite:///{tmp_path / 'x.db'}", OURS) as store:  # the other database has no such rows
        await notes(store, "c-0")
        await tamper(store, f"{INSERT} (NULL, 1, 'x', '', '{{}}', '', '')", f"{INSERT} ('9a', 1, 'x', '', '', '', '')")
        told = await findings(store)
        assert ("row '9a' was put in" in told, "1 rows without a number" in told) == (True, True)


def forge(connection: Connection, *, keep: int, key: AuditKey | None, actor: str) -> None:
    """What somebody does who can write to the database and knows this source: a whole new chain, without a fault."""
    previous, mac = "", None
    rows = connection.query("SELECT seq, time, kind, run_id, subject, details FROM audit WHERE seq <= ?", keep)
    connection.execute("DELETE FROM audit")
    for seq, time, kind, run_id, subject, details in sorted(rows):
        values = (seq, time, kind, actor, run_id, subject, details, previous)
        digest = hashlib.sha256(canonical_json(values).encode()).hexdigest()
        mac = None if key is None else key.mac(digest, mac)
        connection.execute(
            "INSERT INTO audit (seq, time, kind, actor, run_id, subject, details, previous, hash, key_id, mac) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(*values, digest, None if key is None else key.id, mac),
        )
        previous = digest
    connection.execute("UPDATE audit_head SET seq = ?, hash = ?, mac = ?", len(rows), previous, mac)


async def test_a_chain_that_was_made_anew_with_another_key_is_found(store_url: str) -> None:
    async with keyed(store_url, OURS) as store:
        await notes(store, "c-0", "c-1", "c-2")
        await store._database.write(partial(forge, keep=3, key=AuditKey(THEIRS), actor="eve"))
        told = await findings(store)
        assert all(f"row {seq} was written with the key {AuditKey(THEIRS).id}" in told for seq in (1, 2, 3))
        anchored = await store.audit.inspect(anchor=await store.audit.anchor(now=NOW))
        assert (anchored.anchored, anchored.findings) == (3, ()), "whoever anchors it takes it as it is"


async def test_what_only_an_anchor_can_tell(store_url: str) -> None:
    async with keyed(store_url, OURS) as store:
        await notes(store, "c-0", "c-1", "c-2")
        anchor = await store.audit.anchor(now=NOW)
        assert OURS not in anchor.model_dump_json()
        await notes(store, "c-3")
        report = await store.audit.inspect(anchor=anchor)
        assert (report.anchored, report.keyed_from, report.findings) == (3, 1, ())

        await store._database.write(partial(forge, keep=4, key=None, actor="eve"))  # back to a plain chain
        assert (await store.audit.inspect()).keyed_from is None
        assert "row 3 is not the one that was anchored at 20" in await findings(store, anchor=anchor)
        with pytest.raises(AuditError, match="row 3 is not the one that was anchored"):
            await store.audit.verify(anchor=anchor)


async def test_an_end_that_was_cut_is_found_with_an_anchor(store_url: str) -> None:
    async with keyed(store_url, OURS) as store:
        await notes(store, "c-0", "c-1", "c-2", "c-3")
        anchor = await store.audit.anchor(now=NOW)
        await tamper(
            store,
            "DELETE FROM audit WHERE seq > 2",
            "UPDATE audit_head SET seq = 2, hash = (SELECT hash FROM audit WHERE seq = 2), "
            "mac = (SELECT mac FROM audit WHERE seq = 2)",
        )
        assert await findings(store) == ""
        assert "rows 3 to 4 are missing: they were there at" in await findings(store, anchor=anchor)


async def test_macs_that_were_taken_off_are_found_with_an_anchor(store_url: str) -> None:
    async with keyed(store_url, OURS) as store:
        await notes(store, "c-0", "c-1")
        anchor = await store.audit.anchor(now=NOW)
        await tamper(store, "UPDATE audit SET key_id = NULL, mac = NULL", "UPDATE audit_head SET mac = NULL")
        assert await findings(store) == ""
        assert "row 2 is not the one that was anchored" in await findings(store, anchor=anchor)


async def test_rows_from_before_the_key_stay_good_and_the_key_vouches_for_them(store_url: str) -> None:
    async with keyed(store_url) as store:
        await notes(store, "c-0", "c-1")
    async with keyed(store_url, OURS) as store:
        await notes(store, "c-2", "c-3")
        report = await store.audit.inspect()
        assert (report.rows, report.keyed_from, report.key_ids) == (4, 3, (AuditKey(OURS).id,))
        assert report.findings == ()
        await tamper(store, "UPDATE audit SET actor = 'eve' WHERE seq = 1")
        assert await findings(store) == "audit row 1 was changed: its content does not fit its hash"


async def test_who_has_no_key_or_another_one_is_named_until_somebody_anchors_it(store_url: str) -> None:
    async with keyed(store_url, OURS) as store:
        await note(store, "c-0")
    async with keyed(store_url) as store:
        await note(store, "c-1")
        assert "row 1 was written with the key" in await findings(store)
    async with keyed(store_url, THEIRS) as store:
        await note(store, "c-2")
    async with keyed(store_url, OURS) as store:
        await note(store, "c-3")
        told = await findings(store)
        assert ("row 2 has no mac" in told, "row 3 was written with the key" in told, "row 4" in told) == (
            True,
            True,
            False,
        )
        assert await store.audit.verify(anchor=await store.audit.anchor(now=NOW)) == 4


async def test_a_key_is_changed_by_giving_the_new_one_first(store_url: str) -> None:
    async with keyed(store_url, THEIRS) as store:
        await notes(store, "c-0", "c-1")
    async with keyed(store_url, OURS, THEIRS) as store:
        assert (await note(store, "c-2")).key_id == AuditKey(OURS).id
        assert await store.audit.verify() == 3


async def test_what_was_purged_leaves_a_log_that_can_be_verified(store_url: str) -> None:
    async with keyed(store_url, OURS) as store:
        for number in range(6):
            await note(store, f"c-{number}", now=NOW + number)
        old, recent = await store.audit.anchor(now=NOW), None
        assert await store.audit.purge(before=NOW, by="ada", now=NOW) == 0
        assert await store.audit.purge(before=NOW + 4, by="ada", now=NOW + 9) == 4
        assert [row.seq for row in await store.audit.list()] == [5, 6, 7]
        [checkpoint] = await store.audit.list(kind="audit_purged")
        assert (checkpoint.actor, checkpoint.details["up_to"]) == ("ada", 4)
        report = await store.audit.inspect(anchor=old)
        assert (report.rows, report.purged, report.anchored, report.findings) == (3, 4, 6, ())
        recent = await store.audit.anchor(now=NOW)

        assert await store.audit.purge(before=NOW + 99, by=None, now=NOW + 99) == 3
        assert [row.seq for row in await store.audit.list()] == [8]
        await note(store, "c-8")
        for anchor in (None, old, recent, await store.audit.anchor(now=NOW)):
            assert await store.audit.verify(anchor=anchor) == 2

        await tamper(store, "DELETE FROM audit WHERE seq = 8")
        assert "rows 1 to 8 are missing" in await findings(store)


@pytest.mark.parametrize(
    ("statements", "finding"),
    [
        (("DELETE FROM audit WHERE seq = 5",), "row 5 is missing"),
        (("UPDATE audit SET details = '[]' WHERE seq = 7",), "cannot be read: it was changed"),
        (("UPDATE audit SET previous = 'x' WHERE seq = 5",), "row 5 does not follow from row 4"),
        ((f"{INSERT} (4, 1, 'x', '', '{{}}', '', '')",), "row 4 was put in"),
    ],
)
async def test_tampering_with_a_purged_log_is_found(store_url: str, statements: tuple[str, ...], finding: str) -> None:
    async with keyed(store_url, OURS) as store:
        for number in range(6):
            await note(store, f"c-{number}", now=NOW + number)
        await store.audit.purge(before=NOW + 4, by="ada", now=NOW + 9)
        await tamper(store, *statements)
        assert finding in await findings(store)


async def test_a_purge_that_no_key_vouches_for_does_not_pass_an_older_anchor(store_url: str) -> None:
    async with keyed(store_url) as store:
        for number in range(4):
            await note(store, f"c-{number}", now=NOW + number)
        older = await store.audit.anchor(now=NOW)
        await note(store, "c-4", now=NOW + 4)
        await store.audit.purge(before=NOW + 99, by=None, now=NOW + 99)
        assert "no key vouches for that" in await findings(store, anchor=older)
        assert await store.audit.verify(anchor=await store.audit.anchor(now=NOW)) == 1


async def test_a_purge_keeps_the_settings_that_are_in_force(store: SqlStore) -> None:
    for shares in ({"a": 50}, {"a": 90}):
        await store.audit.append("split_changed", actor="ada", run_id=None, subject="s", details=shares, now=NOW)
    await store.audit.append("split_changed", actor="ada", run_id=None, subject="t", details={}, now=NOW + 10)
    assert await store.audit.purge(before=NOW + 5, by=None, now=NOW + 20) == 2
    rows = await store.audit.list(kind="split_changed")
    assert [(row.subject, row.actor, row.details.get("a")) for row in rows] == [("t", "ada", None), ("s", "ada", 90)]
    assert await store.audit.verify() == 3


async def test_writers_in_several_processes_do_not_fork_the_chain(store_url: str) -> None:
    async with keyed(store_url, OURS) as store, keyed(store_url, OURS) as other:
        await asyncio.gather(*(note(store if number % 2 else other, f"c-{number}") for number in range(60)))
        assert await store.audit.verify() == 60
        assert len({row.previous for row in await other.audit.list()}) == 60


async def test_a_row_that_is_written_again_is_there_once(store: SqlStore, other: SqlStore) -> None:
    async def append(where: SqlStore) -> AuditRow:
        return await where.audit.append(
            "x", actor=None, run_id=None, subject="s", details={}, now=NOW, entry_id="entry-1"
        )

    rows = await asyncio.gather(*(append(store if number % 2 else other) for number in range(10)))
    assert set(map(str, rows)) == {str(rows[0])}
    assert await store.audit.verify() == 1


async def test_a_row_whose_commit_succeeded_unheard_is_there_once(tmp_path: Path) -> None:
    async with watched(tmp_path) as (store, driver):
        driver.writing.lose_the_news = True
        row = await note(store, "c-1")
        assert [found.hash for found in await store.audit.list()] == [row.hash]
        assert await store.audit.verify() == 1


async def test_rows_of_an_older_version_stay_good(store_url: str) -> None:
    """They were hashed over their first eight columns, and written without regard to keys."""

    def older(connection: Connection) -> None:
        [(seq, previous)] = connection.query("UPDATE audit_head SET seq = seq + 1 WHERE id = 1 RETURNING seq, hash")
        values = (seq, NOW, "call_refused", "ada", "r1", "c", json.dumps({}), previous)
        digest = hashlib.sha256(canonical_json(values).encode()).hexdigest()
        connection.execute(
            "INSERT INTO audit (seq, time, kind, actor, run_id, subject, details, previous, hash) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(*values, digest),
        )
        connection.execute("UPDATE audit_head SET hash = ? WHERE id = 1", digest)

    async with keyed(store_url, OURS) as store:
        await store._database.write(older)
        await note(store, "c-1")
        assert await store.audit.verify() == 2
        await store._database.write(older)  # a program that was not upgraded yet
        await note(store, "c-3")
        assert await findings(store) == (
            "audit row 3 has no mac, though rows before it have one: it was forged, or written without the key"
        )

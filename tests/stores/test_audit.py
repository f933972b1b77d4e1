"""The tamper-evident log: whatever is changed, cut or forged is found."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from journeyman.core.audit import AuditRow
from journeyman.core.errors import AuditError
from journeyman.stores.connection import Connection
from journeyman.stores.store import SqlStore
from tests.stores.samples import NOW


async def note(store: SqlStore, subject: str, *, now: float = NOW) -> AuditRow:
    return await store.audit.append(
        "call_refused", actor="ada", run_id="r1", subject=subject, details={"b": 1, "a": "ä"}, now=now
    )


def tamper(connection: Connection, *, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement)


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


@pytest.mark.parametrize(
    ("statements", "finding"),
    [
        (("UPDATE audit SET actor = 'eve' WHERE seq = 2",), "row 2 was changed"),
        (("UPDATE audit SET time = time + 1 WHERE seq = 3",), "row 3 was changed"),
        (("UPDATE audit SET details = '{}' WHERE seq = 1",), "row 1 was changed"),
        (("DELETE FROM audit WHERE seq = 2",), "row 2 is missing"),
        (("DELETE FROM audit WHERE seq = 1",), "row 1 is missing"),
        (("DELETE FROM audit WHERE seq = 4",), "ends with row 3, but 4 rows were written"),
        (("DELETE FROM audit",), "ends with row 0"),
        (
            ("DELETE FROM audit WHERE seq = 2", "UPDATE audit SET seq = seq - 1 WHERE seq > 2"),
            "row 2 does not follow from row 1",
        ),
        (("UPDATE audit SET hash = 'x', actor = 'eve' WHERE seq = 4",), "row 4 was changed"),
    ],
)
async def test_tampering_is_found(store: SqlStore, statements: tuple[str, ...], finding: str) -> None:
    for number in range(4):
        await note(store, f"c-{number}")
    assert await store.audit.verify() == 4
    await store._database.write(partial(tamper, statements=statements))
    with pytest.raises(AuditError, match=finding):
        await store.audit.verify()


async def test_writers_in_several_processes_do_not_fork_the_chain(store: SqlStore, other: SqlStore) -> None:
    await asyncio.gather(*(note(store if number % 2 else other, f"c-{number}") for number in range(60)))
    assert await store.audit.verify() == 60
    assert len({row.previous for row in await other.audit.list()}) == 60

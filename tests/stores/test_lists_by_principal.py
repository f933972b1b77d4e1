"""Lists of what belongs to one principal, to nobody, or to anybody: whole pages, however much others have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import pytest

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.policy import ANY_PRINCIPAL
from journeyman.core.runs import RunStatus
from journeyman.stores.store import SqlStore
from tests.stores.samples import NOW, order, question

FOREIGN = 2_000
OWN = 7


async def fill(store: SqlStore) -> None:
    """Thousands of bob's, between them a few of ada's and of nobody's; each a run with a session and a question."""

    async def add(number: int, principal: str | None, at: float) -> None:
        name = f"{principal or 'nobody'}-{number}"
        await store.runs.create(order(name, session=f"s-{name}", at=at, principal=principal))
        await store.approvals.ask(question(f"a-{name}", run_id=name, principal=principal, at=at))

    await asyncio.gather(*(add(number, "bob", NOW + number) for number in range(FOREIGN)))
    step = FOREIGN / OWN
    own = [(number, principal, NOW + number * step + 0.5) for number in range(OWN) for principal in ("ada", None)]
    await asyncio.gather(*(add(*item) for item in own))


@pytest.mark.slow
async def test_pages_hold_what_is_asked_for_and_have_no_holes(store: SqlStore) -> None:
    await fill(store)
    await check(store.runs.list, "", newest_first=True)
    await check(partial(store.runs.list, statuses=[RunStatus.QUEUED]), "", newest_first=True)
    await check(store.approvals.list, "a-", newest_first=False)
    await check(partial(store.approvals.list, status=ApprovalStatus.PENDING), "a-", newest_first=False)
    await check(store.conversations.list, "s-", newest_first=True)


async def check(read: Callable[..., Awaitable[Sequence[Any]]], prefix: str, *, newest_first: bool) -> None:
    for principal_id, name in (("ada", "ada"), (None, "nobody")):
        expected = [f"{prefix}{name}-{number}" for number in range(OWN)]
        if newest_first:
            expected.reverse()
        assert [row.id for row in await read(principal_id=principal_id, limit=50)] == expected
        pages = [await read(principal_id=principal_id, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
        assert [[row.id for row in page] for page in pages] == [expected[:3], expected[3:6], expected[6:], []]
    assert await read(principal_id="eve") == ()
    everybody = FOREIGN + 2 * OWN
    assert len(await read(limit=everybody + 1)) == everybody
    assert len(await read(principal_id=ANY_PRINCIPAL, limit=everybody + 1)) == everybody

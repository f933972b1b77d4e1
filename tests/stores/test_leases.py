"""Leases: one holder at a time, by the database's clock, and a new epoch whenever one is taken."""

from __future__ import annotations

import asyncio

import pytest

from journeyman.core.errors import ConfigurationError
from journeyman.core.storing import LONGEST_LEASE, Lease
from journeyman.stores.store import SqlStore, open_store
from journeyman.testing import FakeClock
from tests.stores.samples import NOW


async def test_a_duty_is_one_process_s_until_its_lease_is_over(
    store: SqlStore, other: SqlStore, clock: FakeClock
) -> None:
    assert await store.leases.take("show", owner="w1", lease_seconds=20) == Lease(owner="w1", epoch=1)
    clock.advance(19)
    assert await other.leases.take("show", owner="w2", lease_seconds=20) == Lease(owner="w1", epoch=1)
    assert await store.leases.take("show", owner="w1", lease_seconds=20) == Lease(owner="w1", epoch=2)
    clock.advance(19)
    assert await other.leases.take("show", owner="w2", lease_seconds=20) == Lease(owner="w1", epoch=2)
    clock.advance(1)
    assert await other.leases.take("show", owner="w2", lease_seconds=20) == Lease(owner="w2", epoch=3)
    assert await other.leases.take("another", owner="w1", lease_seconds=20) == Lease(owner="w1", epoch=1)


async def test_nobody_waits_for_the_dead(store: SqlStore) -> None:
    await store.leases.take("show", owner="w1", lease_seconds=20)
    assert (await store.leases.take("show", owner="w2", lease_seconds=20, dead=["w0"])).owner == "w1"
    assert (await store.leases.take("show", owner="w2", lease_seconds=20, dead=["w1"])).owner == "w2"


async def test_only_its_holder_gives_a_duty_back(store: SqlStore) -> None:
    await store.leases.take("show", owner="w1", lease_seconds=20)
    lease = await store.leases.take("show", owner="w1", lease_seconds=20)
    await store.leases.release("show", epoch=lease.epoch - 1)
    assert (await store.leases.take("show", owner="w2", lease_seconds=20)).owner == "w1"
    await store.leases.release("show", epoch=lease.epoch)
    assert (await store.leases.take("show", owner="w2", lease_seconds=20)).owner == "w2"


async def test_of_many_that_want_a_duty_one_gets_it(store: SqlStore, other: SqlStore) -> None:
    leases = await asyncio.gather(
        *((store, other)[number % 2].leases.take("show", owner=f"w{number}", lease_seconds=20) for number in range(10))
    )
    assert len(set(leases)) == 1


async def test_a_lease_from_before_the_clock_was_set_back_is_anybody_s(store: SqlStore, store_url: str) -> None:
    before = open_store(store_url, clock=FakeClock(NOW + 2 * LONGEST_LEASE))
    await before.open()
    await before.leases.take("show", owner="w1", lease_seconds=20)
    await before.close()
    assert (await store.leases.take("show", owner="w2", lease_seconds=20)).owner == "w2"


async def test_a_lease_is_at_most_as_long_as_others_believe(store: SqlStore) -> None:
    assert (await store.leases.take("show", owner="w1", lease_seconds=LONGEST_LEASE)).owner == "w1"
    assert (await store.leases.take("show", owner="w2", lease_seconds=LONGEST_LEASE)).owner == "w1"
    with pytest.raises(ConfigurationError, match="a lease of 7200 s is too long: at most 3600"):
        await store.leases.take("show", owner="w1", lease_seconds=7_200)

"""Rate limits and circuit breakers that processes share."""

from __future__ import annotations

import asyncio

import pytest

from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.stores.store import SqlStore
from journeyman.testing import FakeClock

LIMIT = RateLimit(calls=3, seconds=60)
RULE = BreakerRule(failures=3, rest_seconds=30)


async def test_a_bucket_gives_bursts_and_refills_evenly(store: SqlStore, clock: FakeClock) -> None:
    assert [await store.limiter.take("t", LIMIT) for _ in range(3)] == [0, 0, 0]
    assert await store.limiter.take("t", LIMIT) == pytest.approx(20)
    assert await store.limiter.take("other", LIMIT) == 0
    clock.advance(19)
    assert await store.limiter.take("t", LIMIT) == pytest.approx(1)
    clock.advance(1)
    assert await store.limiter.take("t", LIMIT) == 0
    clock.advance(1e6)
    assert [await store.limiter.take("t", LIMIT) > 0 for _ in range(4)] == [False, False, False, True]


async def test_a_bucket_is_shared(store: SqlStore, other: SqlStore) -> None:
    waits = await asyncio.gather(*((store if n % 2 else other).limiter.take("t", LIMIT) for n in range(10)))
    assert sum(wait == 0 for wait in waits) == 3


async def test_a_clock_behind_the_others_neither_gains_nor_loses_tokens(store: SqlStore, clock: FakeClock) -> None:
    clock.advance(100)
    assert await store.limiter.take("t", LIMIT) == 0
    clock._passed -= 50
    assert [await store.limiter.take("t", LIMIT) for _ in range(2)] == [0, 0]
    assert await store.limiter.take("t", LIMIT) == pytest.approx(20)


async def test_a_failing_tool_rests_then_one_call_tries_it_out(store: SqlStore, clock: FakeClock) -> None:
    for _ in range(2):
        await store.breaker.report("t", RULE, healthy=False)
        assert await store.breaker.blocked("t", RULE) == 0
    await store.breaker.report("t", RULE, healthy=False)
    assert await store.breaker.blocked("t", RULE) == pytest.approx(30)
    assert await store.breaker.blocked("fine", RULE) == 0
    clock.advance(30)
    assert await store.breaker.blocked("t", RULE) == 0
    assert await store.breaker.blocked("t", RULE) == pytest.approx(30)
    await store.breaker.report("t", RULE, healthy=True)
    assert await store.breaker.blocked("t", RULE) == 0


async def test_a_failed_try_begins_another_rest(store: SqlStore, clock: FakeClock) -> None:
    for _ in range(3):
        await store.breaker.report("t", RULE, healthy=False)
    clock.advance(31)
    assert await store.breaker.blocked("t", RULE) == 0
    clock.advance(5)
    await store.breaker.report("t", RULE, healthy=False)
    assert await store.breaker.blocked("t", RULE) == pytest.approx(30)


async def test_a_success_starts_the_count_again(store: SqlStore) -> None:
    for healthy in (False, False, True, False, False):
        await store.breaker.report("t", RULE, healthy=healthy)
    assert await store.breaker.blocked("t", RULE) == 0


async def test_a_breaker_opened_in_one_process_is_open_in_the_next_within_a_second(
    store: SqlStore, other: SqlStore, clock: FakeClock
) -> None:
    assert await other.breaker.blocked("t", RULE) == 0
    for place in (store, other, store):
        await place.breaker.report("t", RULE, healthy=False)
    clock.advance(1)
    assert await other.breaker.blocked("t", RULE) == pytest.approx(29)
    clock.advance(30)
    waits = await asyncio.gather(*((store if n % 2 else other).breaker.blocked("t", RULE) for n in range(6)))
    assert sum(wait == 0 for wait in waits) == 1
    await other.breaker.report("t", RULE, healthy=True)
    clock.advance(1)
    assert await store.breaker.blocked("t", RULE) == 0


async def test_a_healthy_tool_costs_no_write(store: SqlStore, other: SqlStore) -> None:
    await store.breaker.report("t", RULE, healthy=True)
    assert await store.breaker.blocked("t", RULE) == 0
    assert await other._database.read(lambda connection: connection.query("SELECT * FROM breakers")) == []

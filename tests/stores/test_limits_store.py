"""Rate limits and circuit breakers that processes share."""

from __future__ import annotations

import asyncio

import pytest

from journeyman.core.policy import BreakerRule, RateLimit, Taken
from journeyman.stores.store import SqlStore
from journeyman.testing import FakeClock

LIMIT = RateLimit(calls=3, seconds=60)
RULE = BreakerRule(failures=3, rest_seconds=30)


async def test_no_span_of_time_has_more_calls_than_the_limit(store: SqlStore, clock: FakeClock) -> None:
    assert await store.limiter.take("t", {"t": LIMIT}) == 0
    clock.advance(20)
    assert [await store.limiter.take("t", {"t": LIMIT}) for _ in range(2)] == [0, 0]
    assert await store.limiter.take("t", {"t": LIMIT}) == pytest.approx(40)
    assert await store.limiter.take("other", {"other": LIMIT}) == 0
    clock.advance(39)
    assert await store.limiter.take("t", {"t": LIMIT}) == pytest.approx(1)
    clock.advance(1)
    assert await store.limiter.take("t", {"t": LIMIT}) == 0
    assert await store.limiter.take("t", {"t": LIMIT}) == pytest.approx(20)
    clock.advance(1e6)
    assert [await store.limiter.take("t", {"t": LIMIT}) > 0 for _ in range(4)] == [False, False, False, True]


async def test_a_call_takes_a_token_from_every_limit_or_from_none(store: SqlStore, clock: FakeClock) -> None:
    wide, narrow = RateLimit(calls=10), RateLimit(calls=1)
    assert await store.limiter.take("t", {"wide": wide, "narrow": narrow}) == 0
    for _ in range(20):  # none of these costs the other limit anything
        assert await store.limiter.take("t", {"wide": wide, "narrow": narrow}) == pytest.approx(60)
    assert [await store.limiter.take("u", {"wide": wide}) for _ in range(9)] == [0] * 9
    assert await store.limiter.take("u", {"wide": wide}) > 0


async def test_a_burst_is_a_multiple_and_the_average_holds_all_the_same(store: SqlStore, clock: FakeClock) -> None:
    limit = RateLimit(calls=3, seconds=60, burst=2)
    assert [await store.limiter.take("t", {"t": limit}) for _ in range(6)] == [0] * 6
    assert await store.limiter.take("t", {"t": limit}) == pytest.approx(120)
    passed = 6
    for _ in range(600):
        clock.advance(1)
        passed += await store.limiter.take("t", {"t": limit}) == 0
    assert 30 <= passed <= 6 + 30


def test_a_limit_of_many_calls_is_remembered_in_few_spans_and_still_holds() -> None:
    limit, passed = RateLimit(calls=1_000, seconds=60), list[float]()
    taken: Taken = ()
    for step in range(20_000):
        now = step * 0.01
        taken, wait = limit.take(taken, now)
        passed += [] if wait else [now]
    assert len(taken) <= 64
    assert all(passed[n + 1_000] - when >= 60 - 1e-5 for n, when in enumerate(passed[:-1_000]))
    assert len(passed) > 3_000  # and little is lost by it


async def test_a_pause_that_a_tool_asked_for_holds_everywhere(
    store: SqlStore, other: SqlStore, clock: FakeClock
) -> None:
    assert await other.limiter.take("t", {}) == 0
    await store.limiter.pause("t", 30)
    await store.limiter.pause("t", 10)  # a shorter one changes nothing
    assert await store.limiter.take("t", {}) == pytest.approx(30)
    clock.advance(1)
    assert await other.limiter.take("t", {"t": LIMIT}) == pytest.approx(29)
    assert await other.limiter.take("u", {}) == 0
    clock.advance(29)
    assert await other.limiter.take("t", {"t": LIMIT}) == 0


async def test_a_bucket_is_shared(store: SqlStore, other: SqlStore) -> None:
    waits = await asyncio.gather(*((store if n % 2 else other).limiter.take("t", {"t": LIMIT}) for n in range(10)))
    assert sum(wait == 0 for wait in waits) == 3


async def test_a_clock_behind_the_others_neither_gains_nor_loses_tokens(store: SqlStore, clock: FakeClock) -> None:
    clock.advance(100)
    assert await store.limiter.take("t", {"t": LIMIT}) == 0
    clock._passed -= 50
    assert [await store.limiter.take("t", {"t": LIMIT}) for _ in range(2)] == [0, 0]
    assert await store.limiter.take("t", {"t": LIMIT}) == pytest.approx(60)


async def test_a_failing_tool_rests_then_three_calls_try_it_out(store: SqlStore, clock: FakeClock) -> None:
    for _ in range(2):
        await store.breaker.report("t", RULE, healthy=False)
        assert await store.breaker.blocked("t", RULE) == 0
    await store.breaker.report("t", RULE, healthy=False)
    assert await store.breaker.blocked("t", RULE) == pytest.approx(30)
    assert await store.breaker.blocked("fine", RULE) == 0
    clock.advance(30)
    assert [await store.breaker.blocked("t", RULE) for _ in range(4)] == [0, 0, 0, pytest.approx(30)]
    for _ in range(2):
        await store.breaker.report("t", RULE, healthy=True)
        assert await store.breaker.blocked("t", RULE) == pytest.approx(30)
    await store.breaker.report("t", RULE, healthy=True)
    assert await store.breaker.blocked("t", RULE) == 0


async def test_tries_that_never_report_do_not_block_a_tool_for_ever(store: SqlStore, clock: FakeClock) -> None:
    for _ in range(3):
        await store.breaker.report("t", RULE, healthy=False)
    clock.advance(30)
    assert [await store.breaker.blocked("t", RULE) for _ in range(3)] == [0, 0, 0]
    clock.advance(30)
    assert await store.breaker.blocked("t", RULE) == 0


async def test_a_call_from_before_it_opened_proves_nothing(store: SqlStore) -> None:
    for _ in range(3):
        await store.breaker.report("t", RULE, healthy=False)
    for _ in range(4):
        await store.breaker.report("t", RULE, healthy=True)
    assert await store.breaker.blocked("t", RULE) == pytest.approx(30)


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
    assert sum(wait == 0 for wait in waits) == 3
    for place in (other, store, other):
        await place.breaker.report("t", RULE, healthy=True)
    clock.advance(1)
    assert await store.breaker.blocked("t", RULE) == 0


async def test_a_healthy_tool_costs_no_write(store: SqlStore, other: SqlStore) -> None:
    await store.breaker.report("t", RULE, healthy=True)
    assert await store.breaker.blocked("t", RULE) == 0
    assert await other._database.read(lambda connection: connection.query("SELECT * FROM breakers")) == []

"""Processes whose clocks are wrong, on one database: what they share goes by the database's clock alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman import Agent, ConfigurationError, ToolLibrary
from journeyman.app.journeyman import Journeyman
from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.core.protocols import SystemClock
from journeyman.core.runs import RunStatus
from journeyman.core.storing import LONGEST_LEASE
from journeyman.stores.store import open_store
from journeyman.testing import FakeClock, ScriptedModel, say
from tests.stores.samples import order, question
from tests.waiting import until

MINUTES, DAYS = 60.0, 24 * 3600.0
ELSEWHERE = "elsewhere/7/1/1"


class SkewedClock(SystemClock):
    """The clock of a machine that is wrong about the time."""

    def __init__(self, offset: float) -> None:
        self._offset = offset

    def time(self) -> float:
        return super().time() + self._offset


class SkewedFakeClock(FakeClock):
    """The same, where a test moves the right time."""

    def __init__(self, right: FakeClock, offset: float) -> None:
        super().__init__()
        self._right, self._offset = right, offset

    def time(self) -> float:
        return self._right.time() + self._offset

    def database_time(self) -> float:
        return self._right.time()

    def monotonic(self) -> float:
        return self._right.monotonic()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    found: str = request.getfixturevalue("postgres_url")
    return found


def process(url: str, *, ahead: float = 0.0) -> Journeyman:
    """An app as another process would have it, on a machine whose clock is ahead of the database's."""
    return Journeyman(
        library=ToolLibrary(),
        store=url,
        clock=SkewedClock(ahead),
        poll_seconds=0.05,
        model=ScriptedModel([say("Done.")]),
    )


@pytest.mark.parametrize("ahead", [15 * MINUTES, -15 * MINUTES])
async def test_a_run_is_held_as_long_as_its_lease_whatever_a_process_takes_for_the_time(url: str, ahead: float) -> None:
    async with process(url) as right, process(url, ahead=ahead) as wrong:
        runs = right.store.runs
        await runs.create(order("r"))
        for seconds, held in ((60.0, True), (0.0, False)):
            assert await runs.claim("r", owner=ELSEWHERE, lease_seconds=seconds) is not None
            row = await wrong.store.runs.get("r")
            assert row is not None
            assert wrong.runner.claims.held(row) is held
            assert bool(await wrong.store.runs.due(among=["r"])) is not held
        assert await wrong.runner.claims.take("r") is not None
        assert await right.runner.claims.take("r") is None


async def test_a_process_that_is_ahead_expires_nobody_s_questions(url: str) -> None:
    async with process(url) as right:
        now = right.clock.time()
        await right.store.approvals.ask(question("a-1", at=now, expires_at=now + 10 * MINUTES))
        async with process(url, ahead=15 * MINUTES) as wrong:
            await wrong.runner.tick()
            assert [item.id for item in await wrong.approvals.pending()] == ["a-1"]
        assert [item.id for item in await right.approvals.pending()] == ["a-1"]


@pytest.mark.parametrize("ahead", [15 * MINUTES, -15 * MINUTES])
async def test_a_question_waits_as_long_whoever_asks_it(url: str, ahead: float) -> None:
    async with process(url) as right, process(url, ahead=ahead) as wrong:
        now = wrong.clock.time()
        await wrong.store.approvals.ask(question("a-1", at=now, expires_at=now + 10 * MINUTES))
        [asked] = await right.approvals.pending()
        assert 9 * MINUTES < asked.expires_at.timestamp() - await right.store.now() <= 10 * MINUTES
        assert (await right.approvals.approve("a-1", by="grace")).decided_by == "grace"


@pytest.mark.parametrize(("runs_ahead", "purges_ahead"), [(0.0, 8 * DAYS), (-8 * DAYS, 0.0)])
async def test_an_ended_run_is_kept_whoever_ends_it_and_whoever_looks(
    url: str, runs_ahead: float, purges_ahead: float
) -> None:
    async with process(url, ahead=runs_ahead) as app:
        handle = await app.start(Agent(name="a", instruction="Answer."), "Do it", run_id="r")
        assert await handle.wait() is RunStatus.COMPLETED
    async with process(url, ahead=purges_ahead) as app:
        retention = app.runner._retention
        await until(lambda: retention.task is not None and retention.task.done())
        assert [row.id for row in await app.store.runs.list()] == ["r"]


async def test_a_process_that_is_ahead_freezes_no_limit(url: str) -> None:
    clock = FakeClock()
    right, wrong = open_store(url, clock=clock), open_store(url, clock=SkewedFakeClock(clock, 60 * MINUTES))
    limits, rule = {"pay": RateLimit(calls=1, seconds=10, burst=1)}, BreakerRule(failures=1, rest_seconds=60)
    for store in (right, wrong):
        await store.open()
    try:
        assert await wrong.limiter.take("pay", limits) == 0
        assert await right.limiter.take("pay", limits) == pytest.approx(10)
        clock.advance(10)
        assert await right.limiter.take("pay", limits) == 0

        await wrong.limiter.pause("mail", 5)
        clock.advance(2)  # longer than what was read of pauses and breakers is believed
        assert await right.limiter.take("mail", {}) == pytest.approx(3)
        clock.advance(3)
        assert await right.limiter.take("mail", {}) == 0

        await wrong.breaker.report("ship", rule, healthy=False)
        clock.advance(2)
        assert await right.breaker.blocked("ship", rule) == pytest.approx(58)
        clock.advance(58)
        assert await right.breaker.blocked("ship", rule) == 0
    finally:
        for store in (right, wrong):
            await store.close()


async def test_a_process_that_is_ahead_shows_the_signals_of_others(url: str) -> None:
    async with process(url) as right, process(url, ahead=-15 * MINUTES) as wrong:
        await wrong.store.signals.read("r", seconds=60)
        assert await right.store.signals.readers() == {"r"}


def test_a_lease_is_no_longer_than_one_that_others_believe() -> None:
    assert Journeyman(store="sqlite:///unopened.db", lease_seconds=LONGEST_LEASE)
    with pytest.raises(ConfigurationError, match=r"a lease of 7200 s is too long: at most 3600"):
        Journeyman(store="sqlite:///unopened.db", lease_seconds=7_200)
    for seconds in (0.0, -1.0, 1e-9):
        with pytest.raises(ConfigurationError, match=r"is too short: at least 0\.1"):
            Journeyman(store="sqlite:///unopened.db", lease_seconds=seconds)


async def test_the_longest_lease_is_not_taken_from_the_living(url: str) -> None:
    async with process(url) as app:
        await app.store.runs.create(order("r"))
        assert await app.store.runs.claim("r", owner=ELSEWHERE, lease_seconds=LONGEST_LEASE)
        assert await app.store.runs.claim("r", owner="another", lease_seconds=LONGEST_LEASE) is None
        with pytest.raises(ConfigurationError, match="too long"):
            await app.store.runs.renew(ELSEWHERE, lease_seconds=LONGEST_LEASE + 1)

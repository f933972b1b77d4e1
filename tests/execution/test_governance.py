"""Rate limits, circuit breaker, cache, deadlines and retries, by a clock that is moved by hand."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from journeyman import BreakerRule, CallStatus, Principal, RateLimit, ToolContext, ToolError, tool
from journeyman.testing import FakeClock, call
from tests.execution.pathway import Path

ADA, BOB = Principal("ada"), Principal("bob")


class Counted:
    """A tool that counts its calls and fails when it is told to."""

    def __init__(self, *failures: Exception | None, **options: Any) -> None:
        self.calls = 0
        self.keys: set[str] = set()
        self._failures = iter(failures)

        async def work(context: ToolContext, number: int = 0) -> int:
            """Work."""
            self.calls += 1
            self.keys.add(context.idempotency_key)
            if (failure := next(self._failures, None)) is not None:
                raise failure
            return self.calls

        self.tool = tool(work, **options)


# --- rate limits


async def test_a_call_over_the_limit_waits_for_its_turn() -> None:
    work = Counted()
    path = Path([work.tool], rate_limits={"work": RateLimit(calls=2, seconds=10)})
    statuses = [(await path.call(call("work", number=n))).status for n in range(4)]
    assert statuses == ["success"] * 4
    assert path.clock.slept == [pytest.approx(10)]


async def test_a_wait_that_is_too_long_is_an_error_that_says_when() -> None:
    work = Counted()
    path = Path([work.tool], rate_limits={"work": RateLimit(calls=1, seconds=3600)})
    await path.call(call("work"))
    record = await path.call(call("work"))
    assert record.error is not None
    assert (record.status, record.error.code, record.error.category) == ("error", "RATE_LIMITED", "rate_limit")
    assert "3600.0 s" in record.error.message
    assert record.error.retryable
    assert (work.calls, record.attempts, path.clock.slept) == (1, 0, [])


async def test_a_call_waits_for_as_long_as_the_policy_says_and_no_longer() -> None:
    limit = RateLimit(calls=1, seconds=12)
    for wait_seconds, statuses in ((11, ["success", "error"]), (12, ["success", "success"])):
        work = Counted(timeout_seconds=60)  # the time it may take is not time to wait
        path = Path([work.tool], rate_limits={"work": limit}, wait_seconds=wait_seconds)
        assert [(await path.call(call("work", number=n))).status for n in range(2)] == statuses
    work = Counted(ValueError("once"), ValueError("twice"), idempotent=True, retries=2, timeout_seconds=60)
    path = Path([work.tool], rate_limits={"work": limit}, wait_seconds=20, retry_backoff_seconds=0)
    record = await path.call(call("work"))
    assert (record.status, record.attempts, path.clock.slept) == ("error", 2, [0, pytest.approx(12), 0])


async def test_a_tool_that_asks_for_a_longer_pause_than_the_policy_is_not_waited_for() -> None:
    limited = ToolError("RATE_LIMITED", "slow down", retryable=True, category="rate_limit", retry_after=7.5)
    path = Path([Counted(limited, retries=1, timeout_seconds=60).tool], wait_seconds=7)
    assert (await path.error(call("work"))).code == "RATE_LIMITED"
    assert path.clock.slept == []


async def test_a_limit_per_principal_does_not_touch_others() -> None:
    work = Counted()
    path = Path([work.tool], rate_limits={"work": RateLimit(calls=1, seconds=3600, per="principal")})
    codes = [(await path.call(call("work"), who)).status for who in (ADA, BOB, ADA, None, None)]
    assert codes == ["success", "success", "error", "success", "error"]


async def test_every_attempt_takes_its_own_token() -> None:
    work = Counted(ValueError("once"), ValueError("twice"), idempotent=True, retries=2)
    path = Path([work.tool], rate_limits={"work": RateLimit(calls=1, seconds=10)}, retry_backoff_seconds=0)
    record = await path.call(call("work"))
    assert (record.status, record.attempts) == ("success", 3)
    assert sum(path.clock.slept) == pytest.approx(20)


async def test_limits_of_category_principal_and_all_calls_hold_beside_the_tools_own() -> None:
    first, second = Counted(name="first", category="shop"), Counted(name="second", category="shop")
    for policy, statuses in (
        ({"category_rate_limits": {"shop": RateLimit(calls=3, seconds=3600)}}, "sssee"),
        ({"principal_rate_limit": RateLimit(calls=1, seconds=3600)}, "sesee"),
        ({"principal_rate_limits": {"ada": RateLimit(calls=1, seconds=3600)}}, "sesse"),
        ({"overall_rate_limit": RateLimit(calls=2, seconds=3600, burst=2)}, "sssse"),
    ):
        path = Path([first.tool, second.tool], **policy)
        calls = [("first", ADA), ("second", ADA), ("first", BOB), ("second", BOB), ("first", ADA)]
        found = [(await path.call(call(name), who)).status[0] for name, who in calls]
        assert "".join(found) == statuses, policy


async def test_a_pause_that_a_tool_asks_for_holds_for_every_call_of_it() -> None:
    limited = ToolError("RATE_LIMITED", "slow down", retryable=True, category="rate_limit", retry_after=7.5)
    work, other = Counted(limited, limited, retries=1), Counted(name="other")
    path = Path([work.tool, other.tool], wait_seconds=60, retry_backoff_seconds=0.25)
    error = await path.error(call("work"))
    assert (error.code, error.retry_after, path.clock.slept) == ("RATE_LIMITED", 7.5, [7.5])
    assert error.for_model()["retry_after_seconds"] == 7.5
    assert (await path.call(call("other"))).status == "success"
    assert path.clock.slept == [7.5]
    assert (await path.call(call("work"))).status == "success"
    assert path.clock.slept == [7.5, pytest.approx(7.5)]


async def test_a_pause_longer_than_a_call_may_wait_is_an_error_that_says_when() -> None:
    work = Counted(ToolError("BUSY", "later", retryable=True, retry_after=1e9), retries=3)
    path = Path([work.tool])
    assert (await path.error(call("work"))).code == "BUSY"
    error = await path.error(call("work"))
    assert error.code == "RATE_LIMITED"
    assert error.retry_after == pytest.approx(3_600)  # whatever a server says
    assert (work.calls, path.clock.slept) == (1, [])


# --- circuit breaker


async def test_a_tool_that_keeps_failing_gets_a_rest_and_a_trial() -> None:
    work = Counted(*[ValueError("down")] * 4)
    path = Path([work.tool], breaker=BreakerRule(failures=3, rest_seconds=30))
    for _ in range(3):
        assert (await path.error(call("work"))).code == "TOOL_RAISED"
    resting = await path.call(call("work"))
    assert resting.error is not None
    assert (resting.status, resting.error.code, resting.attempts) == ("error", "CIRCUIT_OPEN", 0)
    assert "30 s" in resting.error.message
    path.clock.advance(31)
    assert (await path.error(call("work"))).code == "TOOL_RAISED"  # the trial fails
    assert (await path.error(call("work"))).code == "CIRCUIT_OPEN"
    assert work.calls == 4
    path.clock.advance(31)
    assert (await path.call(call("work"))).status is CallStatus.SUCCESS
    assert (await path.call(call("work"))).status is CallStatus.SUCCESS


async def test_only_so_many_calls_try_a_resting_tool_out() -> None:
    entered, release = asyncio.Event(), asyncio.Event()
    failing = [True]

    @tool
    async def work() -> str:
        """Work."""
        if failing[0]:
            raise ValueError("down")
        entered.set()
        await release.wait()
        return "up"

    path = Path([work], breaker=BreakerRule(failures=1, rest_seconds=30, probes=1))
    await path.call(call("work"))
    failing[0] = False
    path.clock.advance(31)
    trial = asyncio.ensure_future(path.call(call("work")))
    await entered.wait()
    assert (await path.error(call("work"))).code == "CIRCUIT_OPEN"
    release.set()
    assert (await trial).status is CallStatus.SUCCESS
    assert (await path.call(call("work"))).status is CallStatus.SUCCESS


async def test_a_tool_that_says_no_is_not_ill() -> None:
    work = Counted(*[ToolError("NOT_FOUND", "no such order")] * 10)
    path = Path([work.tool], breaker=BreakerRule(failures=2))
    assert {(await path.error(call("work"))).code for _ in range(10)} == {"NOT_FOUND"}


async def test_a_success_in_between_starts_the_count_again() -> None:
    failures = itertools.chain.from_iterable([(ValueError("x"), ValueError("x"), None)] * 3)
    path = Path([Counted(*failures).tool], breaker=BreakerRule(failures=3))
    statuses = [(await path.call(call("work"))).status.value for _ in range(9)]
    assert statuses == ["error", "error", "success"] * 3


async def test_without_a_rule_nothing_rests() -> None:
    work = Counted(*[ValueError("down")] * 20)
    path = Path([work.tool], breaker=None)
    for _ in range(20):
        await path.call(call("work"))
    assert work.calls == 20


# --- cache


async def test_an_answer_is_remembered_until_it_expires() -> None:
    work = Counted(read_only=True, cache_seconds=60)
    path = Path([work.tool])
    records = [await path.call(call("work")) for _ in range(3)]
    assert [(r.result, r.cached, r.attempts) for r in records] == [(1, False, 1), (1, True, 0), (1, True, 0)]
    path.clock.advance(60)
    again = await path.call(call("work"))
    assert (again.result, again.cached) == (2, False)


async def test_the_key_covers_arguments_principal_and_version() -> None:
    work = Counted(read_only=True, cache_seconds=60)
    path = Path([work.tool])
    await path.call(call("work"), ADA)
    for other in (call("work", number=1), call("work", number=2)):
        assert not (await path.call(other, ADA)).cached
    assert not (await path.call(call("work"), BOB)).cached
    assert not (await path.call(call("work"))).cached
    assert (await path.call(call("work", number=0), ADA)).cached  # the default, written out
    path.tools["work"] = work.tool.with_changes(version="2")
    assert not (await path.call(call("work"), ADA)).cached


async def test_nothing_is_remembered_unless_the_tool_opts_in() -> None:
    work = Counted(read_only=True)
    path = Path([work.tool])
    assert [(await path.call(call("work"))).result for _ in range(2)] == [1, 2]


async def test_errors_are_not_remembered() -> None:
    work = Counted(ValueError("once"), read_only=True, cache_seconds=60)
    path = Path([work.tool])
    assert [(await path.call(call("work"))).status for _ in range(2)] == ["error", "success"]


async def test_what_a_reader_does_to_a_cached_answer_changes_nothing() -> None:
    @tool(read_only=True, cache_seconds=60)
    def read() -> dict[str, list[int]]:
        """Read."""
        return {"items": [1]}

    path = Path([read])
    for _ in range(3):
        record = await path.call(call("read"))
        assert record.result == {"items": [1]}
        record.result["items"].append(2)


async def test_a_cached_answer_needs_no_token_and_no_healthy_tool() -> None:
    work = Counted(read_only=True, cache_seconds=60)
    path = Path([work.tool], rate_limits={"work": RateLimit(calls=1, seconds=3600)})
    assert [(await path.call(call("work"))).status for _ in range(3)] == ["success"] * 3


async def test_a_cached_answer_needs_the_permission() -> None:
    work = Counted(read_only=True, cache_seconds=60, permissions={"work:do"})
    path = Path([work.tool])
    granted, revoked = Principal("ada", permissions={"work:do"}), Principal("ada")
    assert [(await path.call(call("work"), who)).status for who in (granted, revoked)] == ["success", "denied"]


# --- deadlines and retries


@pytest.mark.parametrize(
    ("options", "failure", "attempts"),
    [
        ({}, ValueError("x"), 1),
        ({"idempotent": True}, ValueError("x"), 3),
        ({"read_only": True}, ValueError("x"), 3),
        ({}, ToolError("X", "x"), 1),
        ({}, ToolError("X", "x", retryable=True), 3),
        ({"idempotent": True}, ToolError("X", "x"), 1),
    ],
)
async def test_only_what_is_safe_is_tried_again(options: dict[str, Any], failure: Exception, attempts: int) -> None:
    work = Counted(*[failure] * 3, retries=2, **options)
    path = Path([work.tool])
    record = await path.call(call("work"))
    assert (record.status, record.attempts, work.calls) == ("error", attempts, attempts)
    assert work.keys == {"run.c1"}
    assert path.clock.slept == [0.25, 0.5][: attempts - 1]
    assert [kind for kind, _ in path.journal.log] == [*["call_started"] * attempts, "call_finished"]


async def test_without_retries_nothing_is_tried_again() -> None:
    work = Counted(ValueError("x"), idempotent=True)
    assert (await Path([work.tool]).call(call("work"))).attempts == 1


async def test_the_deadline_is_outside_the_retries() -> None:
    clock = FakeClock()

    @tool(idempotent=True, retries=50, timeout_seconds=1)
    async def slow() -> None:
        """Take four seconds by the fake clock, then fail."""
        clock.advance(4)
        raise ValueError("x")

    path = Path([slow], clock=clock, wait_seconds=0, breaker=None)
    path.deadline = 10
    record = await path.call(call("slow"))
    assert (record.status, record.attempts) == ("error", 3)
    assert clock.monotonic() < 15


async def test_a_call_after_the_runs_deadline_does_not_run() -> None:
    work = Counted()
    path = Path([work.tool])
    path.deadline = 5
    path.clock.advance(5)
    record = await path.call(call("work"))
    assert record.error is not None
    assert (record.error.code, record.error.category, work.calls) == ("DEADLINE_PASSED", "timeout", 0)


async def test_nobody_waits_for_a_token_past_the_runs_deadline() -> None:
    work = Counted()
    path = Path([work.tool], rate_limits={"work": RateLimit(calls=1, seconds=20)})
    path.deadline = 10
    codes = [(await path.call(call("work"))).error for _ in range(2)]
    assert codes[0] is None
    assert codes[1] is not None
    assert codes[1].code == "RATE_LIMITED"
    assert path.clock.slept == []


async def test_a_timeout_of_a_safe_tool_is_tried_again() -> None:
    hangs = iter([True, False])

    @tool(read_only=True, retries=1, timeout_seconds=1)
    async def read() -> str:
        """Read, the second time."""
        if next(hangs):
            await asyncio.Event().wait()
        return "text"

    path = Path([read])
    record = await path.call(call("read"))
    assert (record.status, record.attempts, record.result) == ("success", 2, "text")


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), asyncio.CancelledError()])
async def test_a_coroutine_that_awaits_nothing_is_governed_like_any_other(error: BaseException) -> None:
    failing = False

    @tool(read_only=True)
    async def work(number: int) -> int:
        """Work."""
        if failing:
            raise error
        return number + 1

    path = Path([work])
    assert (await path.call(call("work", number=1))).result == 2
    failing = True
    record = await path.call(call("work", number=1))
    assert (record.status, record.error is not None) == ("error", True)

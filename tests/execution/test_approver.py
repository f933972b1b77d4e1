"""An approver in the same process: what becomes of answers that come late, and whose time the waiting is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from journeyman import Approval, Approve, RiskLevel
from journeyman.core.approvals import Decision, Deny, Expired
from journeyman.core.data import moment
from journeyman.execution import invoke
from journeyman.execution.approval import AskApprover
from journeyman.testing import FakeClock
from tests.waiting import WAIT_SECONDS


def question(seconds: float = 300, name: str = "a") -> Approval:
    now = moment(FakeClock().time())
    return Approval(
        id=f"appr_{name}",
        run_id="run",
        call_id=name,
        tool_name="delete",
        arguments={},
        digest="d",
        risk=RiskLevel.IRREVERSIBLE,
        requested_at=now,
        expires_at=now + timedelta(seconds=seconds),
    )


async def test_an_answer_after_the_expiry_is_no_answer() -> None:
    clock = FakeClock()

    def blocks(approval: Approval) -> Approve:
        clock.advance(301)
        return Approve()

    async def waits(approval: Approval) -> Approve:
        return blocks(approval)

    assert await AskApprover(blocks, clock=clock).ask(question()) == Expired()
    assert await AskApprover(waits, clock=clock).ask(question()) == Expired()
    assert await AskApprover(waits, clock=clock).ask(question(302)) == Approve()


async def test_an_approver_that_swallows_its_cancellation_does_not_keep_the_question_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(invoke, "GRACE_SECONDS", 0.01)
    release = asyncio.Event()

    async def stubborn(approval: Approval) -> Approve:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return Approve()

    asking = asyncio.create_task(AskApprover(stubborn).ask(question(0.01)))
    await asyncio.wait((asking,), timeout=WAIT_SECONDS)
    decided = asking.done()
    release.set()
    assert (decided, await asking) == (True, Expired())


async def test_an_approver_that_gives_in_late_has_expired() -> None:
    async def at_last(approval: Approval) -> Approve:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return Approve()

    assert await AskApprover(at_last).ask(question(0.01)) == Expired()


async def test_an_approver_that_cancels_itself_denies() -> None:
    async def cancelled(approval: Approval) -> Any:
        raise asyncio.CancelledError

    assert isinstance(await AskApprover(cancelled).ask(question()), Deny)


async def test_time_with_several_questions_open_is_told_once_and_as_soon_as_one_is_answered() -> None:
    clock, told = FakeClock(), list[float]()
    answers: dict[str, asyncio.Future[Approve]] = {
        name: asyncio.get_running_loop().create_future() for name in ("a", "b")
    }
    asker = AskApprover(lambda approval: answers[approval.call_id], clock=clock, waited=told.append)

    async def answered(asking: asyncio.Task[Decision | None], name: str) -> None:
        answers[name].set_result(Approve())
        assert await asking == Approve()

    first = asyncio.create_task(asker.ask(question(name="a")))
    await asyncio.sleep(0)
    clock.advance(10)
    second = asyncio.create_task(asker.ask(question(name="b")))
    await asyncio.sleep(0)
    clock.advance(20)
    await answered(first, "a")
    clock.advance(5)
    await answered(second, "b")
    clock.advance(100)
    assert told == [30, 5]
    answers["a"] = asyncio.get_running_loop().create_future()
    third = asyncio.create_task(asker.ask(question(name="a")))
    await asyncio.sleep(0)
    clock.advance(7)
    await answered(third, "a")
    assert told == [30, 5, 7]

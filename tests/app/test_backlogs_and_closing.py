"""Many runs that are due at once are worked off in linear time, and an app closes whatever its runs do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from journeyman import Agent, Model
from journeyman.core import ApprovalStatus
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.stores.runs import SqlRuns
from journeyman.testing import FakeClock
from tests.app.conftest import Opens
from tests.app.shop import ADA, deletes
from tests.waiting import WAIT_SECONDS, until

RUNS = 60


async def test_what_is_due_is_not_gone_through_again_after_every_run(
    opens: Opens, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(manual=True)
    async with opens(deletes("W-1"), clock=clock) as app:
        handles = [await app.start(agent, f"Delete it ({number})", principal=ADA) for number in range(RUNS)]
        for handle in handles:
            await handle.wait()
    clock.advance(7 * 24 * 3600.0)

    looked_at = 0
    due = SqlRuns.due

    async def counted(runs: SqlRuns, **named: Any) -> Any:
        nonlocal looked_at
        found = await due(runs, **named)
        looked_at += len(found)
        return found

    monkeypatch.setattr(SqlRuns, "due", counted)
    async with opens(deletes("W-1"), clock=clock, concurrency=2, poll_seconds=WAIT_SECONDS) as app:
        handles = await app.resume()
        assert len(handles) == RUNS

        async def ended() -> bool:
            return all([(await handle.status()).ended for handle in handles])

        await until(ended)
        expired = await app.store.approvals.list(status=ApprovalStatus.EXPIRED, limit=1000)
    assert len(expired) == RUNS
    assert looked_at <= 4 * RUNS


class Deaf(Model):
    """A model that does not let itself be interrupted."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.over = asyncio.Event()

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        self.asked.set()
        while not self.over.is_set():
            try:
                await self.over.wait()
            except asyncio.CancelledError:
                continue
        raise asyncio.CancelledError


@pytest.mark.slow
async def test_an_app_closes_though_a_run_does_not_let_itself_be_interrupted(opens: Opens, agent: Agent) -> None:
    model = Deaf()
    app = opens(model, grace_seconds=0.1)
    await app.__aenter__()
    await app.start(agent, "Go")
    await model.asked.wait()
    closing = asyncio.create_task(app.close())
    done, _ = await asyncio.wait((closing,), timeout=WAIT_SECONDS / 2)
    model.over.set()
    assert done
    await closing


async def test_a_run_that_another_process_has_ended_is_forgotten(
    opens: Opens, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that leaves its runs to workers would keep the name of every one of them for ever."""
    monkeypatch.setattr("journeyman.app.runner._FORGET_SECONDS", 0.0, raising=False)
    async with opens(deletes("W-1")) as app, opens(deletes("W-1")) as other:
        first, second = [await app.start(agent, "Delete W-1", principal=ADA) for _ in range(2)]
        assert [await handle.wait() for handle in (first, second)] == ["awaiting_approval"] * 2
        await (await other.handle(first.run_id)).cancel()
        await until(lambda: first.run_id not in app.runner._adopted)
        assert second.run_id in app.runner._adopted
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace")
        assert (await second.result()).status == "completed"

"""Runs that are refused, given up or cancelled before they could go anywhere: whoever waits is told."""

from __future__ import annotations

import pytest

from journeyman import Agent, ConfigurationError, JourneymanError, TaskInput
from journeyman.core.protocols import Deltas
from journeyman.core.storing import RunOrder
from journeyman.models import ModelRequest, ModelResponse
from journeyman.testing import ScriptedModel, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, Ledger, deletes
from tests.waiting import until


async def test_a_task_that_names_tools_there_are_not_is_refused_at_the_start(opens: Opens, agent: Agent) -> None:
    async with opens(ScriptedModel([say("Hello.")])) as app:
        session = app.session("s")
        with pytest.raises(ConfigurationError, match=r"available_tools.*'nope'"):
            await session.send(agent, TaskInput(description="x", available_tools=("nope",)))
        assert (await (await session.send(agent, "next")).result()).answer == "Hello."


async def test_an_app_that_is_not_open_says_so(opens: Opens, agent: Agent) -> None:
    app = opens(ScriptedModel([say("Hello.")]))
    with pytest.raises(ConfigurationError, match="async with"):
        await app.start(agent, "x")
    async with app:
        pass
    for attempt in (app.start(agent, "x"), app.resume()):
        with pytest.raises(ConfigurationError, match="not open"):
            await attempt
    with pytest.raises(ConfigurationError, match="make a new"):
        await app.__aenter__()


class _Faulty:
    """A model on which our own code stumbles once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.asked = 0

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        self.asked += 1
        if self.asked == 1:

            def stumble(*_: object, **__: object) -> None:
                raise ZeroDivisionError("a fault of ours")

            self._monkeypatch.setattr("journeyman.agent.turn.numbered", stumble)
        return ModelResponse(text="Hello.")


async def test_a_fault_of_ours_is_told_to_whoever_waits_and_not_tried_again_by_itself(
    opens: Opens, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _Faulty(monkeypatch)
    async with opens(model) as app:
        handle = await app.start(agent, "x")
        with pytest.raises(JourneymanError, match="ZeroDivisionError: a fault of ours"):
            await handle.wait()
        facts = len(await app.store.runs.facts(handle.run_id))
        await app.runner.tick()
        assert len(await app.store.runs.facts(handle.run_id)) == facts
        monkeypatch.undo()
        await app.resume()
        assert (await handle.result()).answer == "Hello."
    assert model.asked == 2


async def test_a_run_that_waits_for_its_turn_can_be_cancelled(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1")) as app:
        session = app.session("s")
        first = await session.send(agent, "Delete W-1", principal=ADA)
        assert await first.wait() == "awaiting_approval"
        second = await session.send(agent, "Delete W-2", principal=ADA)
        await second.cancel()
        assert await second.wait() == "cancelled"
        assert await first.status() == "awaiting_approval"
    assert ledger.lines() == []


async def test_runs_of_others_do_not_hide_our_own(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1")) as app, opens(deletes("W-1")) as desk:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        for number in range(5):
            task = TaskInput(description="somebody else's")
            order = RunOrder(run_id=f"other-{number}", agent=agent.snapshot, task=task, created_at=1.0)
            await app.store.runs.create(order)
        [asked] = await desk.approvals.pending()
        await desk.approvals.approve(asked.id, by="grace")
        await until(lambda: bool(ledger.lines()))
        assert (await handle.result()).status == "completed"

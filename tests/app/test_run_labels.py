"""What people and a verifier say of a run: the outcome that follows, and that it is kept."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from journeyman import Agent, RiskLevel, run, run_sync, tool
from journeyman.core.errors import ConfigurationError, InvalidDataError
from journeyman.core.runs import AgentResponse
from journeyman.testing import ScriptedModel, call, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, deletes


@tool(risk=RiskLevel.REVERSIBLE)
def note(text: str) -> str:
    """Keep a note."""
    return "kept"


WRITES = ScriptedModel([call("note", text="milk"), say("Kept.")])


def noting(**options: Any) -> Agent:
    return Agent(name="noter", instruction="Keep notes.", tools=[note], **options)


def heard(labels: Any) -> list[tuple[str, str, str | None]]:
    return [(label.source.value, label.value, label.by) for label in labels]


def is_right(response: AgentResponse) -> bool:
    return response.answer == "Kept."


async def is_wrong(response: AgentResponse) -> bool:
    return response.answer != "Kept."


def test_a_verifier_of_the_agent_decides_the_outcome() -> None:
    response = run_sync(noting(verify=is_right), "Note milk", model=WRITES)
    assert (response.outcome, response.outcome_source) == ("achieved", "verifier")
    assert heard(response.labels) == [("verifier", "good", "is_right")]


async def test_a_verifier_of_the_run_wins_over_the_agents() -> None:
    response = await run(noting(verify=is_right), "Note milk", model=WRITES, verify=is_wrong)
    assert (response.outcome, response.outcome_source) == ("not", "verifier")


def test_without_a_verifier_the_calls_and_the_judge_are_all_there_is() -> None:
    response = run_sync(noting(), "Note milk", model=WRITES)
    assert (response.outcome, response.outcome_source, response.labels) == ("achieved", None, ())
    assert response.label is not None
    assert heard([response.label]) == [("judge", "good", None)]


@pytest.mark.parametrize("verdict", [None, "yes", ValueError("no idea")])
def test_a_verifier_that_has_no_idea_or_fails_changes_nothing(verdict: Any, caplog: pytest.LogCaptureFixture) -> None:
    def verify(response: AgentResponse) -> Any:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    with caplog.at_level(logging.WARNING):
        response = run_sync(noting(verify=verify), "Note milk", model=WRITES)
    assert (response.outcome, response.labels) == ("achieved", ())
    assert bool(caplog.records) is (verdict is not None)


def test_a_verifier_is_a_function_and_no_part_of_the_agents_data() -> None:
    with pytest.raises(InvalidDataError, match="verify"):
        noting(verify="is_right")
    agent = noting(verify=is_right)
    assert agent == noting()
    assert "verify" not in agent.snapshot
    assert agent.with_output({"type": "object"}).verify is is_right


async def test_decisions_and_verdicts_are_kept_and_a_rating_decides(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-17")) as app:
        handle = await app.start(agent, "Delete order W-17", principal=ADA, verify=lambda _: True)
        await handle.wait()
        with pytest.raises(ConfigurationError, match="awaiting_approval"):
            await handle.rate("good", by="ada")
        [approval] = await app.approvals.pending()
        assert approval.grounding is not None
        assert [source.origin for source in approval.grounding] == ["request"]
        await app.approvals.approve(approval.id, by="grace")
        response = await handle.result()
        assert [(label.source.value, label.decision) for label in response.labels] == [
            ("verifier", None),
            ("decision", "approved"),
        ]
        with pytest.raises(ConfigurationError, match="'fine'"):
            await handle.rate("fine", by="ada")  # type: ignore[arg-type]  # a mistake
        with pytest.raises(ConfigurationError, match="characters"):
            await handle.rate("bad", by="ada", note="x" * 3_000)
        await handle.rate("bad", by="ada", note="I meant W-18")
        again = await handle.result()
        assert (again.outcome, again.outcome_source) == ("not", "rating")
    async with opens(deletes("W-17")) as app:
        found = await (await app.handle(handle.run_id)).result()
        assert [label.source.value for label in found.labels] == ["rating", "verifier", "decision"]
        assert found.labels[0].note == "I meant W-18"
        assert await app.store.labels.of(handle.run_id) == list(found.labels)


async def test_an_edited_and_a_denied_call_say_so(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-17")) as app:
        for edited, expected in (({"order_id": "W-18"}, ("good", "edited")), (None, ("bad", "denied"))):
            handle = await app.start(agent, "Delete order W-17", principal=ADA)
            await handle.wait()
            [approval] = await app.approvals.pending()
            if edited is None:
                await app.approvals.deny(approval.id, by="grace", reason="keep it")
            else:
                await app.approvals.approve(approval.id, by="grace", arguments=edited)
            [label] = (await handle.result()).labels
            assert (label.value, label.decision) == expected
            assert (label.by, label.call_id) == ("grace", "call_1_1")


async def test_where_arguments_came_from_survives_a_restart(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-99")) as app:
        handle = await app.start(agent, "Delete my last order", principal=ADA)
        await handle.wait()
    async with opens(deletes("W-99")) as app:
        [approval] = await app.approvals.pending()
        assert approval.ungrounded == ("order_id",)
        await app.resume()
        await app.approvals.approve(approval.id, by="grace")
        [record] = (await (await app.handle(handle.run_id)).result()).tool_calls
        assert record.ungrounded == ("order_id",)


async def test_whoever_wrote_a_chain_said_what_is_in_it(opens: Opens) -> None:
    async with opens(deletes("W-1")) as app:
        handle = await app.start(
            Agent(name="chain", instruction="-", tools=app.library.specifications()),
            "A chain",
            principal=ADA,
            chain=[{"tool": "delete_order", "args": {"order_id": "W-99"}}],  # type: ignore[list-item]  # read as one
        )
        await handle.wait()
        [approval] = await app.approvals.pending()
        assert approval.grounding is None

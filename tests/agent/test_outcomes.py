"""What a response says about what became of the request: a run can complete and have achieved nothing."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman import Approval, Approve, Deny, RiskLevel, ToolError, tool
from journeyman.models import ModelResponse
from journeyman.testing import call, say, together
from tests.playing import agent_with, play


@tool(read_only=True)
def look(at: str = "") -> str:
    """Look."""
    if at == "nowhere":
        raise ToolError("NOT_THERE", "nothing there")
    return "seen"


@tool(risk=RiskLevel.REVERSIBLE)
def write(what: str) -> str:
    """Write."""
    if what == "bad":
        raise ToolError("REFUSED", "cannot write that")
    return "written"


@tool(risk=RiskLevel.IRREVERSIBLE)
def erase() -> str:
    """Erase."""
    return "erased"


OK, BAD = call("write", what="good"), call("write", what="bad")


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        ([], "unknown"),
        ([call("look")], "achieved"),
        ([call("look", at="nowhere")], "not"),
        ([call("look", at="nowhere"), call("look")], "achieved"),
        ([OK], "achieved"),
        ([BAD], "not"),
        ([BAD, OK], "achieved"),
        ([together(BAD, OK)], "partly"),
        ([OK, BAD], "partly"),
        ([call("look"), BAD], "not"),
        ([call("look"), call("erase")], "not"),
        ([OK, call("erase")], "partly"),
        ([call("look", at="nowhere"), OK], "achieved"),
        ([call("vanish")], "not"),
        ([call("vanish"), OK], "achieved"),
    ],
)
async def test_what_became_of_it(turns: list[Any], outcome: str) -> None:
    response = (await play([look, write, erase], [*turns, say("Over.")])).response
    assert (response.status, response.outcome) == ("completed", outcome)
    assert response.model_dump(mode="json")["outcome"] == outcome


@pytest.mark.parametrize(("confidence", "outcome"), [(0.29, "not"), (0.31, "unknown"), (None, "unknown")])
async def test_a_model_that_calls_nothing_and_is_not_sure_has_found_no_tool(
    confidence: float | None, outcome: str
) -> None:
    response = (await play([look], [ModelResponse(text="I cannot.", confidence=confidence)])).response
    assert (response.status, response.outcome) == ("completed", outcome)


async def test_a_decision_counts() -> None:
    async def yes(_: Approval) -> Approve:
        return Approve()

    async def no(_: Approval) -> Deny:
        return Deny(reason="not today")

    for approver, outcome in ((yes, "achieved"), (no, "not")):
        played = await play([erase], [call("erase"), say("Over.")], approver=approver)
        assert played.response.outcome == outcome


async def test_a_limit_leaves_it_unfinished() -> None:
    agent = agent_with(look, write, max_iterations=2)
    assert (await play([look, write], [OK, call("look"), OK], agent=agent)).response.outcome == "partly"
    assert (await play([look, write], [call("look"), call("look")], agent=agent)).response.outcome == "partly"
    assert (await play([look, write], [BAD, BAD], agent=agent)).response.outcome == "not"


async def test_every_refusal_tells_a_person_what_to_do() -> None:
    turns = [call("vanish"), call("write"), call("write", what="bad"), call("erase"), call("look", at="nowhere")]
    response = (await play([look, write, erase], [*turns, say("Over.")])).response
    assert len(response.tool_calls) == 5
    for record in response.tool_calls:
        assert record.error is not None
        assert record.error.user_guidance, record

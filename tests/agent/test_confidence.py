"""How far an answer is trusted: ``finish``, then the adapter, then an estimate from what happened."""

from __future__ import annotations

from typing import Any

import pytest

from journeyman import Limits, Policy, tool
from journeyman.models import ModelResponse
from journeyman.testing import call, say
from tests.playing import agent_with, play

failures: list[bool] = []


@tool(read_only=True, retries=1)
def work(number: int = 0) -> str:
    """Work, or fail when told to."""
    if failures and failures.pop(0):
        raise ValueError("x")
    return f"did {number}"


@tool
def delete() -> str:
    """Delete."""
    return "gone"


FINISH = call("finish", answer="a", confidence=0.6)
GOOD, BAD = [False], [True, True]


@pytest.mark.parametrize(
    ("plan", "turns", "confidence"),
    [
        ([], [say("a")], 0.9),
        ([], [say("a", confidence=0.4)], 0.4),
        (GOOD, [call("work"), say("a")], 0.9),
        (BAD + GOOD, [call("work"), call("work", number=1), say("a")], 0.9 - 0.2 - 0.05),
        ([True, False], [call("work"), say("a")], 0.85),
        (BAD, [call("work"), say("a")], 0.0),
        (BAD, [call("work"), say("a", confidence=1.0)], 0.0),
        (BAD, [call("work"), FINISH], 0.0),
        (GOOD, [call("work"), FINISH], 0.6),
        ([], [call("work", number="x"), say("a")], 0.0),
        ([], [call("delete"), say("a")], 0.9),
    ],
)
async def test_confidence(plan: list[bool], turns: list[Any], confidence: float) -> None:
    failures[:] = plan
    finish = turns[-1] is FINISH
    tools = [work, delete]
    played = await play(tools, turns, agent=agent_with(*tools, finish=finish))
    assert played.response.confidence == pytest.approx(confidence)


async def test_many_failures_leave_a_little_trust_if_the_last_call_worked() -> None:
    failures[:] = [True] * 12
    turns = [*(call("work", number=n) for n in range(7)), say("a")]
    played = await play([work], turns, policy=Policy(breaker=None))
    assert played.response.confidence == pytest.approx(0.1)


async def test_half_of_it_at_a_limit_and_none_without_an_answer() -> None:
    said = ModelResponse(text="so far", calls=(call("work").tool_call,))
    for turn, confidence in ((said, 0.45), (call("work"), 0.0)):
        failures.clear()
        played = await play([work], [turn], limits=Limits(iterations=1))
        assert played.response.confidence == pytest.approx(confidence)


async def test_a_number_in_the_models_text_never_counts() -> None:
    played = await play([work], [say('I am sure. {"confidence": 0.01}')])
    assert played.response.confidence == 0.9

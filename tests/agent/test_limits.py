"""What ends a run before its answer, and what it still has to show then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from journeyman import Limits, RunStatus, ToolLibrary, Usage, run, tool
from journeyman.models import ModelRequest, ModelResponse
from journeyman.testing import ScriptedModel, call, say
from tests.playing import agent_with, play


@tool(read_only=True)
def look(at: int) -> str:
    """Look."""
    return f"nothing at {at}"


def thinking(text: str, number: int) -> ModelResponse:
    return ModelResponse(text=text, calls=(call("look", at=number).tool_call,))


async def test_at_the_limit_the_run_ends_with_what_it_has() -> None:
    played = await play(
        [look],
        [thinking("First idea", 1), thinking("Best idea so far", 2), call("look", at=3)],
        limits=Limits(iterations=3),
    )
    response = played.response
    assert (response.status, response.iteration_limit_reached) == (RunStatus.LIMIT_REACHED, True)
    assert response.answer == "Best idea so far"
    assert response.total_iterations == 3
    assert [c.result for c in response.tool_calls] == ["nothing at 1", "nothing at 2", "nothing at 3"]
    assert response.error is not None
    assert response.error.message == "the run reached its limit of 3 iterations"
    assert "max_iterations" in (response.error.user_guidance or "")
    assert "Ended early" in response.reasoning
    assert played.types[-1] == "run_finished"


async def test_an_earlier_conversation_is_no_answer() -> None:
    first = await play([look], [say("The old answer")])
    second = await play([look], [call("look", at=1)], history=first.response.messages, limits=Limits(iterations=1))
    assert (second.response.answer, second.response.confidence) == ("", 0.0)
    assert second.response.status is RunStatus.LIMIT_REACHED


async def test_an_answer_in_the_last_iteration_counts() -> None:
    played = await play([look], [call("look", at=1), say("there")], limits=Limits(iterations=2))
    assert (played.response.status, played.response.iteration_limit_reached) == (RunStatus.COMPLETED, False)


async def test_tokens_are_limited() -> None:
    class Costly:
        async def respond(self, request: ModelRequest, deltas: Any = None) -> ModelResponse:
            usage = Usage(input_tokens=900_000, output_tokens=100_000, requests=1)
            return ModelResponse(calls=(call("look", at=request.step).tool_call,), usage=usage)

    response = await run(
        agent_with(look), "go", library=ToolLibrary([look]), model=Costly(), limits=Limits(tokens=2_500_000)
    )
    assert (response.status, response.total_iterations) == (RunStatus.LIMIT_REACHED, 3)
    assert not response.iteration_limit_reached
    assert response.error is not None
    assert "2,500,000 tokens" in response.error.message


async def test_time_over_while_the_model_thinks() -> None:
    async def forever(request: ModelRequest) -> str:
        await asyncio.Event().wait()
        return "never"

    played = await play([look], [call("look", at=1), forever], limits=Limits(seconds=0.5))
    response = played.response
    assert (response.status, response.total_iterations) == (RunStatus.LIMIT_REACHED, 1)
    assert response.error is not None
    assert (response.error.category, response.error.message) == ("timeout", "the run reached its limit of 0.5 seconds")


async def test_time_over_while_a_tool_works() -> None:
    @tool(read_only=True)
    async def wait() -> None:
        """Wait."""
        await asyncio.Event().wait()

    played = await play([wait], [call("wait"), say("never")], limits=Limits(seconds=0.5))
    assert played.response.status is RunStatus.LIMIT_REACHED
    assert [c.status for c in played.response.tool_calls] == ["timeout"]
    assert len(played.model.requests) == 1


async def test_the_adapter_is_told_how_much_time_is_left() -> None:
    played = await play([look], [call("look", at=1), say("x")], limits=Limits(seconds=60))
    left = [request.timeout for request in played.model.requests]
    assert all(seconds is not None and 0 < seconds <= 60 for seconds in left)
    unlimited = await play([look], [say("x")])
    assert unlimited.model.requests[0].timeout is None


async def test_an_adapter_that_notices_the_end_first_is_no_failure() -> None:
    from journeyman import ModelError
    from journeyman.core import ErrorCategory

    async def punctual(request: ModelRequest) -> ModelError:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return ModelError("MODEL_TIMEOUT", "no answer", category=ErrorCategory.TIMEOUT)
        raise AssertionError

    response = await run(agent_with(), "go", model=ScriptedModel([punctual]), limits=Limits(seconds=0.1))
    assert response.status is RunStatus.LIMIT_REACHED


@pytest.mark.parametrize("field", ["iterations", "history_messages", "seconds", "tokens"])
def test_a_limit_is_positive(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        Limits(**{field: 0})

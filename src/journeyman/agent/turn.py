"""One question to the model and what to make of its reply."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from journeyman.agent.run import Run
from journeyman.agent.state import Turn
from journeyman.core.data import LOG_FIELDS, storable_json
from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.events import CallsPlanned, MessageReceived, StepRestarted, TextDelta
from journeyman.core.messages import ToolCall
from journeyman.core.protocols import ModelResponse

logger = logging.getLogger("journeyman.agent")

EMPTY_REPLY = "Your reply was empty. Call a tool, or answer the user in plain text."
UNFINISHED = "Your text alone does not end the task. Call a tool, or call finish with your answer."
MOST_FRUITLESS = 3
"""Replies in a row without a call or an answer before a run is given up."""


async def ask(run: Run) -> bool:
    """Ask the model and record its reply; False when the run's time is over first."""
    iteration, asked_at = run.iteration, run.clock.time()
    response = await _respond(run, iteration)
    if response is None:
        return False
    calls = numbered(response.calls, iteration=iteration, taken=run.state.call_ids)
    message = MessageReceived.unchecked(
        iteration=iteration,
        text=response.text,
        calls=calls,
        usage=response.usage,
        confidence=response.confidence,
        model=response.model,
        started=asked_at,
    )
    if calls:
        await run.recorder.record(message, CallsPlanned.unchecked(iteration=iteration, calls=calls))
    else:
        await run.recorder.record(message)
    return True


async def _respond(run: Run, iteration: int) -> ModelResponse | None:
    deltas = _Deltas(run, iteration) if run.wants_text else None
    try:
        if run.deadline is None:
            return _checked(await run.model.respond(run.request(), deltas))
        async with asyncio.timeout(max(0.0, run.remaining() or 0.0)) as limit:
            return _checked(await run.model.respond(run.request(), deltas))
    except ModelError as error:
        # An adapter that keeps to the run's time may notice its end first.
        if error.info.category is ErrorCategory.TIMEOUT and run.overdue:
            return None
        raise
    except TimeoutError as error:
        if run.deadline is not None and limit.expired():
            return None
        raise _model_failed(error) from error
    except Exception as error:
        logger.exception("the model adapter failed", extra={LOG_FIELDS: {"run_id": run.id}})
        raise _model_failed(error) from error


def _checked(response: Any) -> ModelResponse:
    if not isinstance(response, ModelResponse):
        raise TypeError(f"respond() returned {type(response).__name__}, not a ModelResponse")
    return response


def _model_failed(error: Exception) -> ModelError:
    return ModelError(
        "MODEL_FAILED",
        f"the model adapter raised {type(error).__name__}: {error}",
        category=ErrorCategory.SYSTEM_ERROR,
        user_guidance="This is a fault of the adapter, not of the model: see the log for its traceback",
    )


class _Deltas:
    """Turns an adapter's growing text into signals."""

    def __init__(self, run: Run, iteration: int) -> None:
        self._run = run
        self._iteration = iteration

    def text(self, delta: str) -> None:
        self._run.recorder.signal(TextDelta(iteration=self._iteration, text=delta))

    def restart(self) -> None:
        self._run.recorder.signal(StepRestarted(iteration=self._iteration))


def numbered(calls: Iterable[ToolCall], *, iteration: int, taken: set[str]) -> tuple[ToolCall, ...]:
    """The calls with ids that are unique within the run: models leave them out or use them twice."""
    given: list[ToolCall] = []
    used: set[str] = set()
    for index, call in enumerate(calls):
        wanted = call.id or f"call_{iteration}_{index + 1}"
        unique, again = wanted, 2
        while unique in taken or unique in used:
            unique, again = f"{wanted}_{again}", again + 1
        used.add(unique)
        call = _writable(call)
        given.append(call if unique == call.id else call.model_copy(update={"id": unique}))
    return tuple(given)


def _writable(call: ToolCall) -> ToolCall:
    """The call, or its refusal as malformed where its arguments fit into no journal: not JSON, or nested too deeply."""
    try:
        storable_json(call.arguments)
    except ValueError as error:
        return call.model_copy(update={"arguments": {}, "malformed": f"({error})"})
    return call


def composed_thought(turn: Turn) -> str:
    """A factual sentence where the model gave no thought of its own."""
    names = list(dict.fromkeys(call.tool_name for call in turn.calls))
    if not names:
        return "Gives no text and calls no tool."
    return f"Calls {', '.join(names[:-1]) + ' and ' if names[:-1] else ''}{names[-1]}."


def nudge_for(run: Run, turn: Turn) -> str | None:
    """What to tell a model whose reply calls nothing and is no answer; None when the text is the answer."""
    if turn.text.strip() and not run.agent.finish:
        return None
    if run.state.fruitless + 1 >= MOST_FRUITLESS:
        if turn.text.strip():
            return None  # it will not call finish: its text is as good an answer as it will give
        raise ModelError(
            "EMPTY_ANSWER",
            f"the model gave {MOST_FRUITLESS} empty replies in a row",
            category=ErrorCategory.TOOL_ERROR,
            user_guidance="Try again, another model, or a clearer instruction",
        )
    return UNFINISHED if turn.text.strip() else EMPTY_REPLY

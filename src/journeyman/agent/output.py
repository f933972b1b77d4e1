"""Runs whose answer is data: what a model is told of an answer that does not fit, and how such runs end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import to_json

from journeyman.agent.builtin import FINISH
from journeyman.agent.state import UNFIT
from journeyman.agent.turn import nudge_for
from journeyman.core.budgets import LARGE_TEXT
from journeyman.core.errors import ErrorCategory, ErrorInfo, ModelError, problem_text, validation_problems
from journeyman.core.events import Answered
from journeyman.core.runs import AgentResponse, RunStatus

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent
    from journeyman.agent.run import Run
    from journeyman.agent.state import RunState, Turn

MOST_INVALID = 10
"""Answers that do not fit before a run is given up, where its iterations are more or have no limit."""
INVALID = "OUTPUT_INVALID"
EMPTY = "Your reply was empty. Call a tool, or give the answer in the form that is asked for."
_SHOWN = 8_000
"""Characters of a schema up to which a model is shown it again."""


async def output_nudge(run: Run, turn: Turn) -> str | None:
    """What to tell a model whose text is not the data that was asked for; None where it is."""
    if not turn.text.strip():
        return nudge_for(run, turn) and EMPTY
    try:
        await _read(run, turn.text)
    except ValueError as error:
        schema = to_json(run.agent.expected.parameters).decode()
        shown = f" that fits this schema: {schema}" if len(schema) <= _SHOWN else " that fits the schema"
        return f"{UNFIT}{error}\nGive it again: call finish with it if you have that tool, else write only JSON{shown}"
    return None


async def with_output(run: Run, answer: Answered) -> Answered:
    """The answer with its data. Raises ModelError where a type's own checks do not decide twice in the same way."""
    try:
        plain = await _read(run, answer.text)
    except ValueError as error:
        raise never_valid(run.state, problem=str(error)) from None
    text = plain if isinstance(plain, str) and plain.strip() else to_json(plain).decode()
    return answer.model_copy(update={"text": text, "output": plain})


async def _read(run: Run, text: str) -> Any:
    """A text as the data that was asked for. Raises ValueError with everything that is wrong with it."""
    size, most = len(text.encode("utf-8", "surrogatepass")), run.executor.policy.max_argument_bytes
    if size > most:
        raise ValueError(f"it has {size:,} bytes, at most {most:,} are accepted")
    read = run.agent.expected.answer
    return await asyncio.to_thread(read, text) if len(text) > LARGE_TEXT else read(text)


def never_valid(state: RunState, *, problem: str = "", first: str = "", guidance: str | None = None) -> ModelError:
    """Why a run ends without the data it was asked for."""
    told = f"{first}the model gave no answer that fits the output: {problem or state.output_problem}"
    also = "Try another model, a simpler schema or a clearer instruction"
    return ModelError(
        INVALID,
        told,
        category=ErrorCategory.INVALID_INPUT,
        user_guidance=also if guidance is None else f"{also}. {guidance}",
    )


def written_in_vain(state: RunState) -> str:
    """The latest answer that did not fit, as it was written."""
    for message in reversed(state.messages[state.task_at :]):
        if message.role != "assistant":
            continue
        for call in reversed(message.calls):
            if call.tool_name == FINISH:
                return call.malformed or to_json(call.arguments).decode()
        if message.content.strip():
            return message.content.strip()
    return ""


def typed(response: AgentResponse, agent: Agent) -> AgentResponse:
    """The response with its output as a value of the agent's type, if it has one.

    Another process may have checked the answer against the schema alone: what the type itself refuses is no output.
    """
    if agent.output_type is None or response.status is not RunStatus.COMPLETED:
        return response
    try:
        return response.with_output(agent.expected.value(response.plain_output))
    except ValidationError as error:
        problems = problem_text(validation_problems(error, whole="output"))
        info = ErrorInfo(
            code=INVALID,
            message=f"the answer fits the schema and not its type: {problems}",
            category=ErrorCategory.INVALID_INPUT,
            user_guidance="Have the type where the agent runs, too, or say in the schema what the type checks",
        )
        return response.model_copy(update={"output": None, "outcome": "not", "error": info})

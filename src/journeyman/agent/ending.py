"""How runs end: with an answer, at a limit, in failure, cancelled. And the response that is made of their facts.

Also what ends are labelled with, answers that must be data, and whether nothing was done of what was asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import to_json

from journeyman.agent.agent import Agent, Verify
from journeyman.agent.state import REPEATED, UNFIT, RunState, Turn
from journeyman.agent.turn import ENDS, finish_step, nudge_for
from journeyman.core.approvals import Label, LabelSource
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import LARGE_TEXT, LOG_FIELDS, unchecked
from journeyman.core.errors import ErrorCategory, ErrorInfo, ModelError, Severity, problem_text, validation_problems
from journeyman.core.events import Answered, Fact, MessageReceived, RunFailed, RunFinished
from journeyman.core.gaps import ToolGapReport
from journeyman.core.runs import UNSURE, AgentResponse, LimitName, Outcome, ReasoningStep, RunStatus, unasked
from journeyman.core.specification import FINISH, RESERVED_NAMES
from journeyman.core.words import Patterns
from journeyman.execution.outcome import Refusal
from journeyman.tools.tool import is_async

if TYPE_CHECKING:
    from journeyman.agent.run import Run

logger = logging.getLogger("journeyman.agent")

MOST_INVALID = 4
"""Answers that do not fit before a run is given up: it is corrected three times."""
INVALID = "OUTPUT_INVALID"
_EMPTY = "Your reply was empty. Call a tool, or give the answer in the form that is asked for."
_SHOWN = 8_000
"""Characters of a schema up to which a model is shown it again."""
MANY_STEPS = 500
"""Going through more of them would hold up everybody else."""
VERIFY_SECONDS = 60.0
"""How long a verifier may take."""
GAP_SECONDS = 10.0
"""How long looking for a missing tool may take: the run's end waits for it."""
_FAILED = (CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.UNKNOWN)
_LIMIT_HINTS = {
    "iterations": "Raise max_iterations, or give the agent tools that need fewer steps",
    "seconds": "Raise Limits(seconds=...), or look in the trace for what took so long",
    "tokens": "Raise Limits(tokens=...), or shorten the history",
}


_ENDINGS = {
    "length": (
        "ANSWER_CUT_OFF",
        "the model's answer was cut off at the limit of its output tokens",
        "Raise max_output_tokens of the model's settings, or ask for less at a time",
    ),
    "refusal": ("ANSWER_REFUSED", "the model refused to answer", "Ask for something else, or in other words"),
    "filter": (
        "ANSWER_FILTERED",
        "the provider's content filter stopped the answer",
        "Ask for something else, or in other words; the same again would be stopped again",
    ),
}


async def finish(run: Run, answer: Answered) -> None:
    why = run.state.finish
    if run.state.answer is None and why != "filter":
        if run.agent.output is not None and why not in ENDS:
            answer = await with_output(run, answer)
        elif run.agent.output is not None and why == "length":
            with contextlib.suppress(ModelError):  # it may have been whole by then
                answer, why = await with_output(run, answer), None
        if answer.text.strip():
            await run.recorder.record(answer)
    if why not in ENDS or (why == "refusal" and run.state.answer is not None and run.agent.output is None):
        await _end(run, RunStatus.COMPLETED)
        return
    code, message, guidance = _ENDINGS[why or ""]
    error = ErrorInfo(
        code=code,
        message=message,
        category=ErrorCategory.SYSTEM_ERROR,
        user_guidance=guidance,
    )
    if why == "length":
        await _end(run, RunStatus.LIMIT_REACHED, error, limit="tokens")
    else:
        await fail(run, error)


async def stop(run: Run, limit: LimitName) -> None:
    """At a limit the run ends with what it has."""
    allowed = getattr(run.limits, limit)
    error = ErrorInfo(
        code="LIMIT_REACHED",
        message=f"the run reached its limit of {allowed:,} {limit}",
        category=ErrorCategory.TIMEOUT if limit == "seconds" else ErrorCategory.SYSTEM_ERROR,
        user_guidance=_LIMIT_HINTS[limit],
    )
    if run.state.output_problem:
        error = never_valid(run.state, first=f"{error.message}, and ", guidance=error.user_guidance).info
    await _keep_shown(run)
    await _end(run, RunStatus.LIMIT_REACHED, error, limit=limit)


async def interrupted(run: Run) -> None:
    """Cancelled: close what is open, so that the trace and the conversation stay whole."""
    await _close_turn(run)
    await _keep_shown(run)
    error = ErrorInfo(
        code="RUN_CANCELLED",
        message="the run was cancelled",
        category=ErrorCategory.SYSTEM_ERROR,
        severity=Severity.INFO,
        user_guidance="Ask again if it is still wanted; the trace shows what had been done before",
    )
    await _end(run, RunStatus.CANCELLED, error)


async def fail(run: Run, error: ErrorInfo) -> None:
    await _close_turn(run)
    await _end(run, RunStatus.FAILED, error)


async def _end(run: Run, status: RunStatus, error: ErrorInfo | None = None, *, limit: LimitName | None = None) -> None:
    # Synced: nothing looks after a run that has ended, so an end that is lost would not be noticed.
    gap = await _gap(run, status)
    seconds = run.state.seconds_until(run.clock.time())
    made = await response_of(run.id, run.state, status=status, error=error, limit=limit, gap=gap, seconds=seconds)
    ended = typed(made, run.agent)
    labels = await end_labels(run, ended) if run.verify is not None or run.state.decisions else ()
    ended = ended.with_labels(labels) if labels else ended
    about: dict[str, Any] = {"error": error, "labels": labels, "seconds": seconds, "response": ended}
    if status is RunStatus.FAILED:
        fact: Fact = unchecked(RunFailed, about)
    else:
        fact = unchecked(RunFinished, {**about, "status": status, "limit": limit, "gap": gap})
    await run.recorder.record(fact, sync=True)


async def _gap(run: Run, status: RunStatus) -> ToolGapReport | None:
    """What is missing for a run that ends now; None where it did what was asked, or nothing is missing."""
    state, tools = run.state, run.offer.permitted
    if run.gaps is None or state.task is None or state.wants_output or not tools:
        return None  # who has no tools to give expects none to be used
    text, confidence = (None, None) if state.answer is None else (state.answer.text, state.answer.confidence)
    look = partial(unserved, state.task.description, state.steps, text, status=status, confidence=confidence)
    missed, sure = look() if len(state.steps) <= MANY_STEPS else await asyncio.to_thread(look)
    if not missed:
        return None
    try:
        async with asyncio.timeout(GAP_SECONDS):
            return await run.gaps(state.task.description, tools, sure)
    except Exception:
        # The run is as good without a report as it was before there were any.
        logger.exception("looking for a gap failed", extra={LOG_FIELDS: {"run_id": run.id}})
        return None


async def _keep_shown(run: Run) -> None:
    """What people have read of a reply that broke off is its answer, as far as it got: it does not vanish."""
    text = "".join(run.shown)
    if run.state.turn is None and run.state.answer is None and run.agent.output is None and text.strip():
        await run.recorder.record(MessageReceived(iteration=run.iteration, text=text, started=run.clock.time()))
        assert run.state.turn is not None
        await finish_step(run, run.state.turn)
        await run.recorder.record(Answered(text=text.strip()))


async def _close_turn(run: Run) -> None:
    turn = run.state.turn
    if turn is None:
        return
    for call in turn.calls:
        if call.id in turn.records:
            continue
        past = turn.pasts.get(call.id)
        if past is not None and past.started is not None:
            await run.executor.abandon(call, run.scope, past)
        else:
            await run.executor.refuse(call, run.scope, Refusal.cancelled(call.tool_name, under_way=False))
    await finish_step(run, turn)


async def response_of(run_id: str, state: RunState, **about: Any) -> AgentResponse:
    """What a run's facts amount to: ``response``, beside the event loop where the run has many steps."""
    if len(state.steps) <= MANY_STEPS:
        return response(run_id, state, **about)
    return await asyncio.to_thread(response, run_id, state, **about)


def response(
    run_id: str,
    state: RunState,
    *,
    status: RunStatus | None = None,
    error: ErrorInfo | None = None,
    limit: LimitName | None = None,
    gap: ToolGapReport | None = None,
    seconds: float | None = None,
) -> AgentResponse:
    """What a run's facts amount to."""
    status = status or state.status
    error = error or state.error
    task = state.task
    assert task is not None
    answer = state.answer
    fields = {
        "task_id": task.task_id,
        "run_id": run_id,
        "status": status,
        "answer": answer.text if answer else _words_left(state, status),
        "output": answer.output if answer else None,
        "reasoning": _reasoning(state, status, error),
        "confidence": confidence(state, status),
        "outcome": outcome(state, status),
        "structured_trace": tuple(state.steps),
        "limit_reached": limit or state.limit_reached,
        "finish_reason": state.finish,
        "usage": state.usage,
        "seconds": state.active_seconds if seconds is None else seconds,
        "model": state.model,
        "messages": tuple(state.messages),
        "error": error,
        "gap": gap or state.gap,
        "metadata": dict(task.metadata),
    }
    made: AgentResponse = unchecked(AgentResponse, fields)
    return made.with_labels(state.labels) if state.labels else made


def _words_left(state: RunState, status: RunStatus) -> str:
    """What stands in the answer's place where there is none."""
    if state.output_problem:
        return _last_words(state, finishing=True)
    return _last_words(state) if status is RunStatus.LIMIT_REACHED else ""


def _last_words(state: RunState, *, finishing: bool = False) -> str:
    """The latest text the model wrote beside its calls: the best a run at its limit has to offer.

    Where ``finishing`` counts, what it gave to ``finish`` is one: the answer that did not fit, as it was written.
    """
    for message in reversed(state.messages[state.task_at :]):
        for call in reversed(message.calls if finishing else ()):
            if call.tool_name == FINISH:
                return call.malformed or to_json(call.arguments).decode()
        if message.role == "assistant" and message.content.strip():
            return message.content.strip()
    return ""


def _reasoning(state: RunState, status: RunStatus, error: ErrorInfo | None) -> str:
    if state.answer is not None and state.answer.reasoning:
        return state.answer.reasoning
    thoughts = unasked(state.steps) + [step.thought for step in state.steps if step.calls]
    if error is not None:
        thoughts.append(f"Ended early: {error.message}.")
    if status.waiting:
        thoughts.append("Waits for a person.")
    return " ".join(thoughts) or "Answered directly, without calling a tool."


def confidence(state: RunState, status: RunStatus) -> float:
    """How far the answer can be trusted, from 0 to 1.

    0 when there is no answer, it broke off, or the last call before it failed or timed out. Else what ``finish`` said,
    else what the model's adapter reports, else an estimate from evidence: 0.9, less 0.2 for every call that failed and
    0.05 for every retry, never below 0.1; half of that at a limit.
    """
    words = not state.wants_output and status is RunStatus.LIMIT_REACHED and _last_words(state)
    if status is RunStatus.CANCELLED or (state.answer is None and not words):
        return 0.0
    calls = [call for step in state.steps for call in step.calls if call.tool_name != FINISH]
    if calls and calls[-1].status in _FAILED:
        return 0.0
    if state.answer is not None and state.answer.confidence is not None:
        return state.answer.confidence
    failed = sum(call.status in _FAILED for call in calls)
    retried = sum(max(0, call.attempts - 1) for call in calls)
    estimate = max(0.1, 0.9 - 0.2 * failed - 0.05 * retried)
    return estimate / 2 if status is RunStatus.LIMIT_REACHED else estimate


def outcome(state: RunState, status: RunStatus) -> Outcome:
    """What became of what was asked, judged by the calls alone.

    Where calls were to have effects, only they count: reading something does not make up for a change that was denied.
    A failed call is made good by a later iteration in which its tool succeeds, not by a sibling in the same one.
    Without any call, only a model that says how sure it is tells something: one that is not has found no tool.
    """
    steps = [[call for call in step.calls if call.tool_name not in RESERVED_NAMES] for step in state.steps]
    if state.finish == "refusal":
        return "partly" if any(call.success for calls in steps for call in calls) else "not"
    if status is RunStatus.COMPLETED and any(steps) and all(call.success for calls in steps for call in calls):
        return "achieved"
    if not status.ended or any(_failed_as(call, "OUTCOME_UNKNOWN") for calls in steps for call in calls):
        return "unknown"
    if state.wants_output and status is RunStatus.COMPLETED and not any(steps):
        return "achieved"
    if all(_misnamed(call) for calls in steps for call in calls):
        return "not" if any(steps) or status is not RunStatus.COMPLETED or _found_no_tool(state) else "unknown"
    done, failed = set[str](), set[str]()
    for calls in reversed(steps):
        lost = {call.tool_name for call in calls if not call.success and not _misnamed(call)}
        failed |= lost - done
        done |= {call.tool_name for call in calls if call.success}
    reads = state.read_only_tools
    wanted = {name for name in done | failed if name not in reads}
    if not wanted and (status is RunStatus.COMPLETED or not state.wants_output):
        wanted = done | failed  # what was only read is all there is to go by
    if status is RunStatus.COMPLETED and not failed & wanted:
        return "achieved"
    return "partly" if done & wanted else "not"


def _found_no_tool(state: RunState) -> bool:
    answer = state.answer
    return answer is not None and answer.confidence is not None and answer.confidence < UNSURE


def _failed_as(call: ToolCallRecord, *codes: str) -> bool:
    return call.error is not None and call.error.code in codes


def _misnamed(call: ToolCallRecord) -> bool:
    """A call of a tool that is not there, or one too many: it says nothing about what was wanted."""
    return _failed_as(call, "UNKNOWN_TOOL", REPEATED)


# --- labels: people's decisions on the run's calls, and the verdict of its verifier


async def end_labels(run: Run, ended: AgentResponse) -> tuple[Label, ...]:
    """The labels that a run ends with. Most have none."""
    labels = tuple(run.state.decisions.values())
    if run.verify is not None and ended.status in (RunStatus.COMPLETED, RunStatus.LIMIT_REACHED):
        label = await _verified(run, run.verify, ended)
        labels = labels if label is None else (label, *labels)
    return labels


async def _verified(run: Run, verify: Verify, ended: AgentResponse) -> Label | None:
    name = getattr(verify, "__qualname__", type(verify).__name__)
    try:
        async with asyncio.timeout(VERIFY_SECONDS):
            # In a thread: it may well look into a database.
            verdict: Any = verify(ended) if is_async(verify) else await asyncio.to_thread(verify, ended)
            if inspect.isawaitable(verdict):
                verdict = await verdict
        if verdict is not None and not isinstance(verdict, bool):
            raise TypeError(f"verify returned {type(verdict).__name__}, not True, False or None")
    except Exception as error:
        # A run is what it is, whoever fails to judge it.
        fields = {"run_id": run.id, "verifier": name, "error": type(error).__name__}
        logger.warning("a verifier failed: %s", type(error).__name__, exc_info=error, extra={LOG_FIELDS: fields})
        return None
    if verdict is None:
        return None
    value = "good" if verdict else "bad"
    return Label(source=LabelSource.VERIFIER, value=value, by=name, time=run.clock.time())


# --- answers that are data


async def output_nudge(run: Run, turn: Turn) -> str | None:
    """What to tell a model whose text is not the data that was asked for; None where it is."""
    if turn.finish in ENDS:
        return None
    if not turn.text.strip():
        return nudge_for(run, turn) and _EMPTY
    try:
        await _read_output(run, turn.text)
    except ValueError as error:
        schema = to_json(run.agent.expected.parameters).decode()
        shown = f" that fits this schema: {schema}" if len(schema) <= _SHOWN else " that fits the schema"
        return f"{UNFIT}{error}\nGive it again: call finish with it if you have that tool, else write only JSON{shown}"
    return None


async def with_output(run: Run, answer: Answered) -> Answered:
    """The answer with its data. Raises ModelError where a type's own checks do not decide twice in the same way."""
    try:
        plain = await _read_output(run, answer.text)
    except ValueError as error:
        raise never_valid(run.state, problem=str(error)) from None
    text = plain if isinstance(plain, str) and plain.strip() else to_json(plain).decode()
    return answer.model_copy(update={"text": text, "output": plain})


async def _read_output(run: Run, text: str) -> Any:
    """A text as the data that was asked for. Raises ValueError with everything that is wrong with it."""
    size, most = len(text.encode("utf-8", "surrogatepass")), run.policy.max_argument_bytes
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


_READ_CHARS = 2_000

_written = Patterns("journeyman.agent", "requests.txt")


def unserved(
    request: str,
    taken: Sequence[ReasoningStep],
    answer: str | None,
    *,
    status: RunStatus,
    confidence: float | None = None,
) -> tuple[bool, float | None]:
    """Whether nothing was done of what was asked; and how sure the model was that a tool would do, where it says."""
    if status not in (RunStatus.COMPLETED, RunStatus.LIMIT_REACHED):
        return False, None
    calls = [call for step in taken for call in step.calls if call.tool_name not in RESERVED_NAMES]
    if calls:
        # It asked for tools that are not there, and for no others.
        return all(_failed_as(call, "UNKNOWN_TOOL") for call in calls), 0.0
    if status is RunStatus.LIMIT_REACHED or answer is None:
        return status is RunStatus.LIMIT_REACHED and bool(taken), None
    if confidence is not None:
        return confidence < UNSURE, confidence
    if _written.declines.search(answer[:_READ_CHARS]):
        return True, 0.0
    # An answer in words alone does nothing in the world, whatever it says.
    return _written.of_the_world.match(request[:_READ_CHARS]) is not None, None

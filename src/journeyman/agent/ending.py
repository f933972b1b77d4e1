"""How runs end: with an answer, at a limit, in failure, cancelled. And the response that is made of their facts."""

from __future__ import annotations

from journeyman.agent.builtin import FINISH
from journeyman.agent.run import Run
from journeyman.agent.state import RunState
from journeyman.agent.turn import composed_thought
from journeyman.core.calls import CallStatus
from journeyman.core.errors import ErrorCategory, ErrorInfo, Severity
from journeyman.core.events import Answered, RunFailed, RunFinished, StepFinished
from journeyman.core.runs import AgentResponse, LimitName, RunStatus
from journeyman.execution.outcome import cancelled

_LIMIT_HINTS = {
    "iterations": "Raise max_iterations, or give the agent tools that need fewer steps",
    "seconds": "Raise Limits(seconds=...), or look in the trace for what took so long",
    "tokens": "Raise Limits(tokens=...), or shorten the history",
}


async def finish(run: Run, answer: Answered) -> None:
    if run.state.answer is None:
        await run.recorder.record(answer)
    await _end(run, RunStatus.COMPLETED)


async def stop(run: Run, limit: LimitName) -> None:
    """At a limit the run ends with what it has."""
    allowed = getattr(run.limits, limit)
    error = ErrorInfo(
        code="LIMIT_REACHED",
        message=f"the run reached its limit of {allowed:,} {limit}",
        category=ErrorCategory.TIMEOUT if limit == "seconds" else ErrorCategory.SYSTEM_ERROR,
        severity=Severity.MEDIUM,
        user_guidance=_LIMIT_HINTS[limit],
    )
    await _end(run, RunStatus.LIMIT_REACHED, error, limit=limit)


async def interrupted(run: Run) -> None:
    """Cancelled: close what is open, so that the trace and the conversation stay whole."""
    await _close_turn(run)
    error = ErrorInfo(
        code="RUN_CANCELLED",
        message="the run was cancelled",
        category=ErrorCategory.SYSTEM_ERROR,
        severity=Severity.INFO,
    )
    await _end(run, RunStatus.CANCELLED, error)


async def fail(run: Run, error: ErrorInfo) -> None:
    await _close_turn(run)
    failed = response(run.id, run.state, status=RunStatus.FAILED, error=error)
    await run.recorder.record(RunFailed(error=error, response=failed), sync=True)


async def _end(run: Run, status: RunStatus, error: ErrorInfo | None = None, *, limit: LimitName | None = None) -> None:
    # Synced: nothing looks after a run that has ended, so an end that is lost would not be noticed.
    ended = response(run.id, run.state, status=status, error=error, limit=limit)
    await run.recorder.record(RunFinished.unchecked(status=status, limit=limit, error=error, response=ended), sync=True)


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
            await run.executor.refuse(call, run.scope, cancelled(call.tool_name, under_way=False))
    await run.recorder.record(
        StepFinished(
            iteration=turn.iteration,
            thought=turn.text.strip() or composed_thought(turn),
            duration_ms=max(0.0, (run.clock.time() - turn.asked_at) * 1000),
        )
    )


def response(
    run_id: str,
    state: RunState,
    *,
    status: RunStatus | None = None,
    error: ErrorInfo | None = None,
    limit: LimitName | None = None,
) -> AgentResponse:
    """What a run's facts amount to."""
    status = status or state.status
    error = error or state.error
    task = state.task
    assert task is not None
    answer = state.answer
    return AgentResponse.unchecked(
        task_id=task.task_id,
        run_id=run_id,
        status=status,
        answer=answer.text if answer else _last_words(state) if status is RunStatus.LIMIT_REACHED else "",
        reasoning=_reasoning(state, status, error),
        confidence=confidence(state, status),
        structured_trace=tuple(state.steps),
        limit_reached=limit or state.limit_reached,
        usage=state.usage,
        messages=tuple(state.messages),
        error=error,
        metadata=dict(task.metadata),
    )


def _last_words(state: RunState) -> str:
    """The latest text the model wrote beside its calls: the best a run at its limit has to offer."""
    for message in reversed(state.messages[state.task_at :]):
        if message.role == "assistant" and message.content.strip():
            return message.content.strip()
    return ""


def _reasoning(state: RunState, status: RunStatus, error: ErrorInfo | None) -> str:
    if state.answer is not None and state.answer.reasoning:
        return state.answer.reasoning
    thoughts = [step.thought for step in state.steps if step.calls]
    if error is not None:
        thoughts.append(f"Ended early: {error.message}.")
    if status.waiting:
        thoughts.append("Waits for a person.")
    return " ".join(thoughts) or "Answered directly, without calling a tool."


def confidence(state: RunState, status: RunStatus) -> float:
    """How far the answer can be trusted, from 0 to 1.

    0 when there is no answer, or when the last call before it failed or timed out. Else what ``finish`` said, else
    what the model's adapter reports, else an estimate from evidence: 0.9, less 0.2 for every call that failed and
    0.05 for every retry, never below 0.1; half of that at a limit.
    """
    if state.answer is None and not (status is RunStatus.LIMIT_REACHED and _last_words(state)):
        return 0.0
    calls = [call for step in state.steps for call in step.calls if call.tool_name != FINISH]
    if calls and calls[-1].status in (CallStatus.ERROR, CallStatus.TIMEOUT):
        return 0.0
    if state.answer is not None and state.answer.confidence is not None:
        return state.answer.confidence
    failed = sum(call.status in (CallStatus.ERROR, CallStatus.TIMEOUT) for call in calls)
    retried = sum(max(0, call.attempts - 1) for call in calls)
    estimate = max(0.1, 0.9 - 0.2 * failed - 0.05 * retried)
    return estimate / 2 if status is RunStatus.LIMIT_REACHED else estimate

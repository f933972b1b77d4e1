"""How runs end: with an answer, at a limit, in failure, cancelled. And the response that is made of their facts."""

from __future__ import annotations

from journeyman.agent.builtin import FINISH
from journeyman.agent.guards import REPEATED
from journeyman.agent.labels import end_labels
from journeyman.agent.output import never_valid, typed, with_output, written_in_vain
from journeyman.agent.run import Run
from journeyman.agent.state import RunState
from journeyman.agent.turn import composed_thought
from journeyman.agent.undone import missing_for
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.errors import ErrorCategory, ErrorInfo, Severity
from journeyman.core.events import Answered, RunFailed, RunFinished, StepFinished
from journeyman.core.gaps import ToolGapReport
from journeyman.core.runs import UNSURE, AgentResponse, LimitName, Outcome, RunStatus
from journeyman.core.specification import RESERVED_NAMES
from journeyman.execution.outcome import cancelled

_FAILED = (CallStatus.ERROR, CallStatus.TIMEOUT, CallStatus.UNKNOWN)
_LIMIT_HINTS = {
    "iterations": "Raise max_iterations, or give the agent tools that need fewer steps",
    "seconds": "Raise Limits(seconds=...), or look in the trace for what took so long",
    "tokens": "Raise Limits(tokens=...), or shorten the history",
}


async def finish(run: Run, answer: Answered) -> None:
    if run.state.answer is None:
        if run.agent.output is not None:
            answer = await with_output(run, answer)
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
    if run.state.output_problem:
        error = never_valid(run.state, first=f"{error.message}, and ", guidance=error.user_guidance).info
    await _end(run, RunStatus.LIMIT_REACHED, error, limit=limit)


async def interrupted(run: Run) -> None:
    """Cancelled: close what is open, so that the trace and the conversation stay whole."""
    await _close_turn(run)
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
    failed = typed(response(run.id, run.state, status=RunStatus.FAILED, error=error), run.agent)
    labels = await end_labels(run, failed)
    failed = failed.with_labels(labels) if labels else failed
    await run.recorder.record(RunFailed(error=error, labels=labels, response=failed), sync=True)


async def _end(run: Run, status: RunStatus, error: ErrorInfo | None = None, *, limit: LimitName | None = None) -> None:
    # Synced: nothing looks after a run that has ended, so an end that is lost would not be noticed.
    gap = await missing_for(run, status)
    ended = typed(response(run.id, run.state, status=status, error=error, limit=limit, gap=gap), run.agent)
    labels = await end_labels(run, ended) if run.verify is not None or run.state.decisions else ()
    ended = ended.with_labels(labels) if labels else ended
    fact = RunFinished.unchecked(status=status, limit=limit, error=error, gap=gap, labels=labels, response=ended)
    await run.recorder.record(fact, sync=True)


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
    gap: ToolGapReport | None = None,
) -> AgentResponse:
    """What a run's facts amount to."""
    status = status or state.status
    error = error or state.error
    task = state.task
    assert task is not None
    answer = state.answer
    made: AgentResponse = AgentResponse.unchecked(
        task_id=task.task_id,
        run_id=run_id,
        status=status,
        answer=answer.text if answer else _words_left(state, status),
        output=answer.output if answer else None,
        reasoning=_reasoning(state, status, error),
        confidence=confidence(state, status),
        outcome=outcome(state, status),
        structured_trace=tuple(state.steps),
        limit_reached=limit or state.limit_reached,
        usage=state.usage,
        model=state.model,
        messages=tuple(state.messages),
        error=error,
        gap=gap or state.gap,
        metadata=dict(task.metadata),
    )
    return made.with_labels(state.labels) if state.labels else made


def _words_left(state: RunState, status: RunStatus) -> str:
    """What stands in the answer's place where there is none."""
    if state.output_problem:
        return written_in_vain(state)
    return _last_words(state) if status is RunStatus.LIMIT_REACHED else ""


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
    words = not state.wants_output and status is RunStatus.LIMIT_REACHED and _last_words(state)
    if state.answer is None and not words:
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
    if status is RunStatus.COMPLETED and any(steps) and all(call.success for calls in steps for call in calls):
        return "achieved"
    if not status.ended or any(_uncertain(call) for calls in steps for call in calls):
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


def _uncertain(call: ToolCallRecord) -> bool:
    return call.error is not None and call.error.code == "OUTCOME_UNKNOWN"


def _misnamed(call: ToolCallRecord) -> bool:
    """A call of a tool that is not there, or one too many: it says nothing about what was wanted."""
    return call.error is not None and call.error.code in ("UNKNOWN_TOOL", REPEATED)

"""The ReAct loop, whole: ask the model, carry out its calls, again, until there is an answer.

A run can be taken up at any point: every step looks at the state, which is nothing but the fold of the facts so far.
Nothing here knows who is listening, or whether the journal is a list or a database.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from journeyman.agent.answer import renderings
from journeyman.agent.ending import fail, finish, interrupted, stop
from journeyman.agent.output import MOST_INVALID, never_valid, output_nudge
from journeyman.agent.run import Run
from journeyman.agent.state import Turn
from journeyman.agent.turn import ask, composed_thought, nudge_for
from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import JournalConflictError, ModelError
from journeyman.core.events import Answered, RunSuspended, StepFinished
from journeyman.core.messages import ToolCall
from journeyman.core.runs import LimitName, RunStatus
from journeyman.execution.outcome import Suspended


@dataclass(frozen=True, slots=True)
class Again:
    """Another iteration."""


@dataclass(frozen=True, slots=True)
class Limit:
    """No further iteration is allowed."""

    name: LimitName


@dataclass(frozen=True, slots=True)
class Waiting:
    """Calls of this turn wait for a person: for approval, or because their outcome is unknown."""

    calls: tuple[Suspended, ...]


Next: TypeAlias = Again | Answered | Waiting | Limit


async def advance(run: Run) -> None:
    """Take a run to its end, to the person it must wait for, or to the next step if it is to be handed over."""
    if run.trace is None:
        return await _advance(run)
    with run.trace.current():
        return await _advance(run)


async def _advance(run: Run) -> None:
    try:
        while not run.leaving:
            match await step(run):
                case Again():
                    continue
                case Answered() as answer:
                    return await finish(run, answer)
                case Limit(name):
                    return await stop(run, name)
                case Waiting() as waiting:
                    return await suspend(run, waiting)
                case never:
                    assert_never(never)
    except ModelError as error:
        await fail(run, error.info)
    except asyncio.CancelledError:
        await interrupted(run)
        raise


async def step(run: Run) -> Next:
    """One iteration, or what is left of it."""
    state = run.state
    if state.conclusion is not None:
        return state.conclusion
    if state.turn is None:
        if limit := run.limits.reached(iterations=len(state.steps), usage=state.usage, remaining=run.remaining()):
            return Limit(limit)
        if state.invalid_outputs >= MOST_INVALID:
            raise never_valid(state)
        if not await ask(run):
            return Limit("seconds")
    turn = state.turn
    assert turn is not None
    if waiting := await carry_out(run, turn):
        return waiting
    nudge: str | None = None
    if not turn.calls:
        nudge = nudge_for(run, turn) if run.agent.output is None else await output_nudge(run, turn)
    await run.recorder.record(
        StepFinished.unchecked(
            iteration=turn.iteration,
            thought=turn.text.strip() or composed_thought(turn),
            duration_ms=max(0.0, (run.clock.time() - turn.asked_at) * 1000),
            nudge=nudge,
            rendered=await renderings(run, turn) if turn.calls else None,
        )
    )
    return state.conclusion or Again()


async def carry_out(run: Run, turn: Turn) -> Waiting | None:
    """Run the turn's calls that have no outcome yet, side by side; none can harm another."""
    open_calls = [call for call in turn.calls if call.id not in turn.records]
    if len(open_calls) == 1:
        outcomes = [await one_call(run, turn, open_calls[0])]
    else:
        tasks = [asyncio.ensure_future(one_call(run, turn, call)) for call in open_calls]
        try:
            outcomes = await asyncio.gather(*tasks)
        except JournalConflictError:
            # Another process has the run. What has begun here is brought to its end, which that process is told.
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
    waiting = tuple(outcome for outcome in outcomes if isinstance(outcome, Suspended))
    return Waiting(waiting) if waiting else None


async def one_call(run: Run, turn: Turn, call: ToolCall) -> ToolCallRecord | Suspended:
    """One call, unless it only repeats what has been answered already."""
    tool = run.offer.tools.get(call.tool_name)
    may_repeat = run.repeatable or (tool is not None and tool.repeatable)
    if not may_repeat and (refusal := run.state.guard.refusal(turn.iteration, call, reads=run.reads)):
        return await run.executor.refuse(call, run.scope, refusal)
    return await run.executor.execute(call, run.scope, turn.pasts.get(call.id))


async def suspend(run: Run, waiting: Waiting) -> None:
    """Let go of everything until a person has decided. An unknown outcome comes first: nothing else can settle it."""
    unknown = any(call.unknown for call in waiting.calls)
    status = RunStatus.AWAITING_RESOLUTION if unknown else RunStatus.AWAITING_APPROVAL
    waiting_for = tuple(call.waiting_for for call in waiting.calls)
    await run.recorder.record(RunSuspended(status=status, waiting_for=waiting_for), sync=True)

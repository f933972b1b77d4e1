"""One run with all its parts, the limits that hold for it, and the ReAct loop, whole.

Two objects hold a run: the executor, which all runs with a library share, and the ``Run`` itself. What it does next is
for its planner to say.

The loop asks the model, carries out its calls, and again, until there is an answer. A run can be taken up at any point:
every step looks at the state, which is nothing but the fold of the facts so far. Nothing here knows who is listening,
or whether the journal is a list or a database.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from journeyman.agent.agent import Agent, Verify
from journeyman.agent.ending import MOST_INVALID, fail, finish, interrupted, never_valid, output_nudge, stop
from journeyman.agent.offer import Offer
from journeyman.agent.state import RunState, Turn
from journeyman.agent.turn import finish_step, nudge_for
from journeyman.core.calls import SAID, Artifact, ArtifactStore, DataLabel, ToolCallRecord
from journeyman.core.data import unchecked
from journeyman.core.errors import JournalConflictError, ModelError
from journeyman.core.events import Answered, CallsPlanned, MessageReceived, RunSuspended
from journeyman.core.gaps import FindGap
from journeyman.core.policy import Policy, for_tool
from journeyman.core.protocols import Clock, ModelResponse
from journeyman.core.runs import LimitName, Limits, RunStatus, TaskInput, ToolCall
from journeyman.execution.checks import reads_label
from journeyman.execution.executor import CallScope, Executor
from journeyman.execution.outcome import Refusal, Suspended, own_words
from journeyman.provenance.flow import default_reads, label_for
from journeyman.provenance.ledger import Ledger

if TYPE_CHECKING:
    from journeyman.telemetry.spans import SpanListener

DEFAULT_ITERATIONS = 10
DEFAULT_HISTORY_MESSAGES = 100


class Planner(Protocol):
    """Says what a run does next: a model that is asked, or a chain that somebody has written."""

    async def plan(self, run: Run) -> ModelResponse | None:
        """The next calls, under ids that are unique in the run, or the answer; None when the time is over first."""

    def refusal(self, run: Run, turn: Turn, call: ToolCall) -> Refusal | None:
        """Why a call that it planned is not carried out, if it is not."""

    def ledger(self, run: Run) -> Ledger | None:
        """What the arguments of its calls may have come from; None where that is not asked."""


@dataclass(slots=True, kw_only=True, eq=False)
class Run(CallScope):
    """What belongs to one run. The loop reads it; facts change its state."""

    agent: Agent
    executor: Executor
    state: RunState
    limits: Limits
    """What holds: a field that is None is no limit."""
    offer: Offer
    planner: Planner
    wants_text: bool = False
    """Whether somebody listens to the model's text as it grows."""
    shown: list[str] = field(default_factory=list)
    """What they were told of the reply under way."""
    leaving: bool = False
    """Set from outside: stop after this step, another process goes on."""
    trace: SpanListener | None = None
    """Where the run is traced."""
    rules: Callable[[], Policy] | None = None
    """The policy as it is now; without it, the one that the run began with."""
    verify: Verify | None = None
    """Says of the run, when it has ended, whether it is right."""
    instruction: str = ""
    """What the model was told, once it was."""
    gaps: FindGap | None = None
    """Tells what is missing where the run ends without having done what was asked."""
    artifacts: ArtifactStore | None = None
    """Where the images and files of its messages are, if not where the executor keeps results."""
    _begun: bool = False

    @property
    def id(self) -> str:
        return self.run_id

    @property
    def clock(self) -> Clock:
        return self.executor.clock

    @property
    def iteration(self) -> int:
        """The iteration that comes next, or is under way."""
        return len(self.state.steps) + 1

    @property
    def scope(self) -> CallScope:
        """The same for its calls, with what only the first facts tell."""
        if not self._begun:
            self._begun = True
            self.ledger = self.planner.ledger(self)
            self.advice = [item for item in self.state.advice if not item.holdout]
        return self

    @property
    def said(self) -> list[str]:
        """What was said before, where the door that the run came through was told so."""
        said = () if self.state.task is None else self.state.task.metadata.get(SAID, ())
        return [text for text in said if isinstance(text, str)]

    def new_ledger(self) -> Ledger:
        """What arguments may have come from: besides what was said, the caller's own words to the model.

        What a playbook advises vouches for nothing.
        """
        task = self.state.task
        given = () if task is None else (*task.rules, *task.playbook_bullets)
        told = (self.instruction or self.agent.instruction, *given)
        return Ledger(self.state, system="\n".join(told), said=self.said, label_of=self._label_of)

    def _label_of(self, tool_name: str) -> DataLabel | None:
        """Whose words an earlier result of a tool holds, where nothing was kept with it."""
        if (tool := self.offer.tools.get(tool_name)) is None:
            return label_for(tool_name, default_reads(tool_name, elsewhere=False, reads_only=False))
        return reads_label(tool, for_tool(self.policy.reads, tool_name))

    @property
    def in_session(self) -> bool:
        return self.state.task is not None and self.state.task.session_id is not None

    @property
    def overdue(self) -> bool:
        return self.deadline is not None and self.clock.monotonic() >= self.deadline

    def remaining(self) -> float | None:
        return None if self.deadline is None else self.deadline - self.clock.monotonic()

    def postpone(self, seconds: float) -> None:
        """Move the deadline, for calls under way as well: the time a person takes is not the run's."""
        if self.deadline is not None:
            self.deadline += seconds

    def reads(self, tool_name: str) -> bool:
        """Whether a tool only reads; what does not exist changes nothing either."""
        tool = self.offer.tools.get(tool_name)
        return tool is None or tool.specification.read_only

    def refresh(self) -> None:
        """Take over what has changed since the last step: rules, tools, and whether there is something to read on."""
        if self.rules is not None and (policy := self.rules()) is not self.policy:
            self.policy = policy
            self.offer.limit_to(policy.max_offered_tools)
        if self.state.cut_results:
            limit = self.policy.max_result_chars
            self.offer.add_reader(self.state.cut_results, limit=limit, read=self._read_artifact)
        self.offer.refresh()

    async def _read_artifact(self, artifact: Artifact, offset: int, length: int) -> str | None:
        store = self.executor.artifacts
        return None if store is None else await store.read(self.id, artifact.id, offset=offset, length=length)


# --- limits


def limit_reached(run: Run) -> LimitName | None:
    """The limit that forbids another iteration, if one does."""
    limits, state, remaining = run.limits, run.state, run.remaining()
    if limits.iterations is not None and len(state.steps) >= limits.iterations:
        return "iterations"
    if limits.tokens is not None and state.usage.total_tokens >= limits.tokens:
        return "tokens"
    return "seconds" if remaining is not None and remaining <= 0 else None


NO_LIMITS = Limits()


def effective_limits(limits: Limits, task: TaskInput, agent: Agent, defaults: Limits = NO_LIMITS) -> Limits:
    """The caller's over the task's over the agent's over the defaults.

    A field left out of ``limits`` falls to the next in line; a field set to None is lifted.
    """
    given = limits.model_fields_set
    iterations = limits.iterations if "iterations" in given else (task.max_iterations or agent.max_iterations)
    if iterations is None and "iterations" not in given:
        iterations = defaults.iterations or DEFAULT_ITERATIONS
    messages = defaults.history_messages or DEFAULT_HISTORY_MESSAGES
    seconds = limits.seconds if "seconds" in given else defaults.seconds
    return Limits(
        iterations=iterations,
        history_messages=limits.history_messages if "history_messages" in given else messages,
        # Without end is no limit; as a deadline, it would be more than timers can count.
        seconds=seconds if seconds is not None and math.isfinite(seconds) else None,
        tokens=limits.tokens if "tokens" in given else defaults.tokens,
    )


# --- the loop


Next: TypeAlias = Answered | LimitName | tuple[Suspended, ...] | None
"""The answer, the limit that forbids another iteration, the calls that wait for a person, or None for another one."""


async def advance(run: Run) -> None:
    """Take a run to its end, to the person it must wait for, or to the next step if it is to be handed over."""
    try:
        with nullcontext() if run.trace is None else run.trace.current():
            return await _advance(run)
    finally:
        run.state.let_go()
        # It asks the run: an ended one is freed at once, and not by a collection that goes through everybody's objects.
        run.ledger, run.flow, run._begun = None, None, False


async def _advance(run: Run) -> None:
    try:
        while not run.leaving:
            match await step(run):
                case None:
                    continue
                case Answered() as answer:
                    return await finish(run, answer)
                case tuple() as waiting:
                    return await suspend(run, waiting)
                case limit:
                    return await stop(run, limit)
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
        if limit := limit_reached(run):
            return limit
        if state.invalid_outputs >= MOST_INVALID:
            raise never_valid(state)
        if not await plan(run):
            return "seconds"
    turn = state.turn
    assert turn is not None
    if waiting := await carry_out(run, turn):
        return waiting
    nudge: str | None = None
    if not turn.calls:
        nudge = nudge_for(run, turn) if run.agent.output is None else await output_nudge(run, turn)
    await finish_step(run, turn, nudge=nudge, rendered=await renderings(run, turn) if turn.calls else None)
    return state.conclusion


async def plan(run: Run) -> bool:
    """Have the next step planned, and record it; False when the run's time is over first."""
    iteration, asked_at = run.iteration, run.clock.time()
    run.refresh()
    run.shown.clear()
    planned = await run.planner.plan(run)
    if planned is None:
        return False
    run.shown.clear()
    fields = {
        "iteration": iteration,
        "text": planned.text,
        "calls": planned.calls,
        "usage": planned.usage,
        "confidence": planned.confidence,
        "model": planned.model,
        "started": asked_at,
        "finish": planned.finish,
        "returned": planned.returned if planned.calls else None,
    }
    message = unchecked(MessageReceived, fields)
    if planned.calls:
        await run.recorder.record(message, unchecked(CallsPlanned, {"iteration": iteration, "calls": planned.calls}))
    else:
        await run.recorder.record(message)
    return True


async def carry_out(run: Run, turn: Turn) -> tuple[Suspended, ...]:
    """Run the turn's calls that have no outcome yet, side by side; none can harm another. Returns those that wait."""
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
    return tuple(outcome for outcome in outcomes if isinstance(outcome, Suspended))


async def one_call(run: Run, turn: Turn, call: ToolCall) -> ToolCallRecord | Suspended:
    """One call, unless it only repeats what has been answered already."""
    if (refusal := run.planner.refusal(run, turn, call)) is not None:
        return await run.executor.refuse(call, run.scope, refusal)
    return await run.executor.execute(call, run.scope, turn.pasts.get(call.id))


async def renderings(run: Run, turn: Turn) -> dict[str, str] | None:
    """By call: what the tools of a turn say of their calls; None where none of them has a ``render``."""
    tools = run.offer.tools
    asked = [call for call in turn.calls if (tool := tools.get(call.tool_name)) is not None and tool.render is not None]
    if not asked:
        return None
    said = await asyncio.gather(
        *(
            own_words(tools.get(call.tool_name), turn.records[call.id], run.executor.invoker, run_id=run.id)
            for call in asked
        )
    )
    return {call.id: words for call, words in zip(asked, said, strict=True) if words} or None


async def suspend(run: Run, waiting: tuple[Suspended, ...]) -> None:
    """Let go of everything until a person has decided. An unknown outcome comes first: nothing else can settle it."""
    unknown = any(call.unknown for call in waiting)
    status = RunStatus.AWAITING_RESOLUTION if unknown else RunStatus.AWAITING_APPROVAL
    waiting_for = tuple(call.waiting_for for call in waiting)
    await run.recorder.record(RunSuspended(status=status, waiting_for=waiting_for), sync=True)

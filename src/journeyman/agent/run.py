"""One run with all its parts, as the loop sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from journeyman.agent.agent import Agent, Verify
from journeyman.agent.guide import Hint, look_up, next_step, stopped, untried
from journeyman.agent.limits import EffectiveLimits
from journeyman.agent.offer import Offer
from journeyman.agent.state import RunState
from journeyman.agent.window import window
from journeyman.core.calls import Artifact
from journeyman.core.gaps import FindGap
from journeyman.core.grounding import SAID
from journeyman.core.messages import Message, Role
from journeyman.core.playbook import ADVICE, DEMONSTRATION, Advice
from journeyman.core.principals import Principal
from journeyman.core.protocols import Clock, Model, ModelRequest
from journeyman.execution.executor import Around, CallScope, Executor
from journeyman.execution.grounding import Ledger
from journeyman.execution.recorder import Recorder


class Trace(Protocol):
    """The span of a run."""

    def begin(self, run_id: str, now: float) -> str | None:
        """Begin it; returns the text by which other processes find it."""

    def current(self) -> AbstractContextManager[None]:
        """Makes it the current one."""


@dataclass(slots=True)
class Run:
    """Parts, limits and state of one run. The loop reads it; facts change its state."""

    id: str
    agent: Agent
    model: Model
    executor: Executor
    recorder: Recorder
    state: RunState
    limits: EffectiveLimits
    offer: Offer
    clock: Clock
    deadline: float | None = None
    """By the clock's monotonic time."""
    wants_text: bool = False
    """Whether somebody listens to the model's text as it grows."""
    repeatable: bool = False
    """Whether every call is meant, also one that was made before: then no call is refused as repeated."""
    leaving: bool = False
    """Set from outside: stop after this step, another process goes on."""
    memo: dict[Any, Any] = field(default_factory=dict)
    call_ids: dict[str, str] = field(default_factory=dict)
    """What the model's server calls our calls; only its adapter is told."""
    around: Around | None = None
    """Entered around each tool's run."""
    trace: Trace | None = None
    """Where the run is traced."""
    now: Callable[[Principal], Principal | None] | None = None
    """Who the principal is by now."""
    before_step: Callable[[Run], None] | None = None
    """Called before each question to the model, when no call is under way: rules may have changed."""
    verify: Verify | None = None
    """Says of the run, when it has ended, whether it is right."""
    gaps: FindGap | None = None
    """Tells what is missing where the run ends without having done what was asked."""
    seen_steps: int = 0
    """How many steps the choice of tools has taken into account."""
    found: dict[str, int] = field(default_factory=dict)
    """At which iteration tools were found last, by ``find_tools`` or as a fallback."""
    fallbacks: set[str] = field(default_factory=set)
    """Tools that failed for good."""
    system: Message | None = None
    turns: tuple[Message, ...] = ()
    """Demonstrations, which stand in the conversation before the task."""
    _scope: CallScope | None = None

    @property
    def iteration(self) -> int:
        """The iteration that comes next, or is under way."""
        return len(self.state.steps) + 1

    @property
    def scope(self) -> CallScope:
        if self._scope is None:
            self._scope = CallScope(
                run_id=self.id,
                recorder=self.recorder,
                tools=self.offer.tools,
                principal=self.state.principal,
                correlation_id=self.id,
                deadline=self.deadline,
                around=self.around,
                now=self.now,
                ledger=self._ledger(),
                demonstrated=any(item.demonstrates and not item.holdout for item in self.state.advice),
            )
        return self._scope

    def _ledger(self) -> Ledger | None:
        """What arguments may have come from: besides what was said, the caller's own words to the model.

        What a playbook advises vouches for nothing. Whoever wrote a chain has said what is in it, unless the door
        that it came through was told what was said before.
        """
        task = self.state.task
        said = () if task is None else task.metadata.get(SAID, ())
        if self.repeatable and not said:
            return None
        told = (self.agent.instruction, *(() if task is None else task.playbook_bullets))
        return Ledger(self.state, system="\n".join(told), said=[text for text in said if isinstance(text, str)])

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
            self.scope.deadline = self.deadline

    def reads(self, tool_name: str) -> bool:
        """Whether a tool only reads; what does not exist changes nothing either."""
        tool = self.offer.tools.get(tool_name)
        return tool is None or tool.specification.read_only

    def refresh(self) -> None:
        """Take over what has changed since the last step: rules, tools, and whether there is something to read on."""
        if self.before_step is not None:
            self.before_step(self)
        if self.state.cut_results:
            limit = self.executor.policy.max_result_chars
            self.offer.add_reader(self.state.cut_results, limit=limit, read=self._read_artifact)
        self.offer.refresh()

    def request(self) -> ModelRequest:
        """The next question to the model."""
        state = self.state
        if self.system is None:
            given = [advice for advice in state.advice if not advice.holdout]
            self.system = Message.system(instruction(self.agent, given))
            self.turns = tuple(_marked(turn) for advice in given for turn in advice.turns)
        recent = window(
            state.messages, limit=self.limits.history_messages, task_at=state.task_at, before_task=self.turns
        )
        if (hint := self._hint()) is not None:
            recent = [*recent, hint.message]
        return ModelRequest(
            messages=[self.system, *recent],
            tools=self.offer.offered,
            step=self.iteration,
            run_id=self.id,
            timeout=self.remaining(),
            memo=self.memo,
            call_ids=self.call_ids,
            suggested=None if hint is None else hint.call,
            output=None if self.agent.output is None else self.agent.expected.parameters,
        )

    def _hint(self) -> Hint | None:
        """The step of the nearest demonstration that comes next, said last, so that all before it stays as it was."""
        if not self.state.advice:
            return None
        if not self.state.advice or stopped(self.state.steps):
            return None
        guide = next((item for item in reversed(self.state.advice) if item.steps and not item.holdout), None)
        request = "" if self.state.task is None else self.state.task.description
        if guide is not None:
            return untried(next_step(guide, self.state.steps, self.offer.offered, request), self.state.steps)
        lookups = [lookup for item in self.state.advice if not item.holdout for lookup in item.lookups]
        hint = look_up(lookups, self.state.steps, self.offer.offered, request) if lookups else None
        return None if hint is None else untried(hint, self.state.steps)

    async def _read_artifact(self, artifact: Artifact, offset: int, length: int) -> str | None:
        store = self.executor.artifacts
        return None if store is None else await store.read(self.id, artifact.id, offset=offset, length=length)


def _marked(turn: Message) -> Message:
    return turn.model_copy(update={"name": DEMONSTRATION}) if turn.role is Role.USER else turn


def instruction(agent: Agent, advice: list[Advice]) -> str:
    """The system message: the agent's instruction, then the advice that is given in this form."""
    parts = [agent.instruction]
    if lines := [item.text for item in advice if item.form in ("system", "steps")]:
        listed = "\n".join(f"- {line}" for line in lines)
        parts.append(f"{ADVICE}\n{listed}")
    if agent.output is not None:
        # In words that hold for both ways in which adapters ask for it: by ``finish``, or by a schema for the text.
        parts.append("The final answer is data: give it in the form that is asked for, with nothing around it.")
    elif agent.finish:
        parts.append("When the task is done, call finish with your answer.")
    return "\n\n".join(parts)

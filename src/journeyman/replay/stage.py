"""Where recorded runs are set up again, under today's tools and rules, with nothing behind the tools.

The loop and the pipeline are the real ones. What would run a tool's code has a recording in its place, what waits or
counts over time has nothing, and facts go to a list: so a replay has no effect, whatever is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from journeyman.agent.agent import Agent
from journeyman.agent.offer import Offer
from journeyman.agent.run import Planner, Run, effective_limits
from journeyman.agent.state import RunState, Turn, decision_of
from journeyman.agent.turn import ModelPlanner, NoModel
from journeyman.core.approvals import Approval, Decision
from journeyman.core.calls import ArtifactStore, CallStatus, ToolCallRecord, ToolContext
from journeyman.core.data import Latest, canonical_json
from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.events import ApprovalDecided, Fact, RunStarted, StrategiesInjected
from journeyman.core.playbook import StrategySource
from journeyman.core.policy import Policy, RateLimit
from journeyman.core.protocols import ModelResponse, SystemClock
from journeyman.core.runs import TaskInput, ToolCall
from journeyman.core.specification import FIND_TOOLS, RESERVED_NAMES, ToolSpecification
from journeyman.execution.checks import LocalBreaker, ResultCache
from journeyman.execution.executor import Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.outcome import Refusal, Success, refuse
from journeyman.execution.recorder import MemoryJournal, Recorder
from journeyman.execution.results import MOST_BYTES
from journeyman.execution.threads import default_pool
from journeyman.provenance.ledger import Ledger
from journeyman.replay.recording import Recording, call_key
from journeyman.tools.library import AnyTool, ToolLibrary
from journeyman.tools.tool import FrozenArguments, Tool

NOT_RECORDED = "NOT_RECORDED"
MOST_BOUND = 100
"""Agents whose tools are kept ready for further runs."""


NOT_ASKED = NoModel(
    ModelError("NO_MODEL", "a replay of recorded calls asks no model", category=ErrorCategory.SYSTEM_ERROR)
)


class RecordedPlanner(ModelPlanner):
    """Says again what the model has said, step by step; of a chain, whoever wrote it."""

    def __init__(self, recording: Recording) -> None:
        super().__init__(NOT_ASKED)
        self._chain = recording.is_chain
        self._messages = {step.message.iteration: step.message for step in recording.steps}

    async def plan(self, run: Run) -> ModelResponse | None:
        said = self._messages.get(run.iteration)
        if said is None:
            raise ModelError(
                "RECORDING_ENDED",
                f"the recording has no step {run.iteration}: the run goes on after what was recorded",
            )
        return ModelResponse(
            text=said.text,
            calls=said.calls,
            usage=said.usage,
            confidence=said.confidence,
            model=said.model,
            finish=said.finish,
        )

    def refusal(self, run: Run, turn: Turn, call: ToolCall) -> Refusal | None:
        return None if self._chain else super().refusal(run, turn, call)

    def ledger(self, run: Run) -> Ledger | None:
        return None if self._chain else super().ledger(run)


class RecordedInvoker(Invoker):
    """Answers calls with what the recording has for the same tool and arguments, the n-th one with the n-th result.

    A read that is made more often than it was recorded gets its latest result again. What the recording does not hold
    is ``NOT_RECORDED`` and counted; those of the ``live`` tools that only read are called then.
    """

    def __init__(self, recording: Recording, *, live: Container[str] = ()) -> None:
        super().__init__(threads=default_pool())
        self._live = live
        self._recorded: dict[str, list[ToolCallRecord]] = {}
        self.not_recorded: list[str] = []
        """The tools of calls that the recording does not hold."""
        self.left: Callable[[], object] = list
        """Called when one is asked for."""
        for item in recording.calls:
            if item.ran and item.record is not None:
                self._recorded.setdefault(call_key(item.record.tool_name, item.record.arguments), []).append(
                    item.record
                )

    async def attempt(
        self,
        tool: AnyTool,
        frozen: FrozenArguments,
        context: ToolContext,
        timeout: float,
        *,
        limit: int = MOST_BYTES,
        capture_content: bool = False,
    ) -> Success | Refusal:
        recorded = self._recorded.get(call_key(tool.name, frozen.arguments), [])
        own = tool.name in RESERVED_NAMES and not (tool.name == FIND_TOOLS and recorded)
        if own or (not recorded and tool.name in self._live and tool.specification.read_only):
            return await super().attempt(tool, frozen, context, timeout, limit=limit, capture_content=capture_content)
        if not recorded:
            self.not_recorded.append(tool.name)
            self.left()
            return refuse(
                CallStatus.ERROR,
                NOT_RECORDED,
                f"the recording has no call of {tool.name!r} with these arguments",
                "Answer with what you have",
            )
        last_read = tool.specification.read_only and len(recorded) == 1
        record = recorded[0] if last_read else recorded.pop(0)
        if record.error is not None:
            return Refusal(record.status, record.error)
        return Success(record.result, cached=record.cached, artifact=record.artifact, media=record.media)

    async def words(self, *given: Any, **about: Any) -> str:
        return ""  # a tool's own code, which may look things up


class RecordedGate:
    """Answers questions as they were answered in the recording, or all alike; what nobody was asked then stays open."""

    def __init__(self, recording: Recording, decision: Decision | None = None) -> None:
        self.asked: list[Approval] = []
        self._decision = decision
        self._decided: dict[str, list[ApprovalDecided]] = {}
        for item in recording.calls:
            if item.approval is not None and item.decision is not None:
                key = call_key(item.approval.tool_name, item.approval.arguments)
                self._decided.setdefault(key, []).append(item.decision)

    async def ask(self, approval: Approval) -> Decision | None:
        self.asked.append(approval)
        if self._decision is not None:
            return self._decision
        decided = self._decided.get(call_key(approval.tool_name, approval.arguments))
        return decision_of(decided.pop(0)) if decided else None


class _NoLimits:
    """A replay has no time: nothing waits for its turn."""

    async def take(self, tool_name: str, limits: Mapping[str, RateLimit]) -> float:
        return 0.0

    async def pause(self, tool_name: str, seconds: float) -> None:
        pass


@dataclass(slots=True)
class Bound:
    """An agent with today's tools."""

    agent: Agent
    library: ToolLibrary
    recorded: frozenset[str]
    """Tools that are not here today: their specifications are the recording's."""


@dataclass
class Today:
    """The tools and rules that recorded runs are replayed under."""

    library: ToolLibrary = field(default_factory=ToolLibrary)
    policy: Policy = field(default_factory=Policy)
    govern: Callable[[ToolLibrary], ToolLibrary] = lambda library: library
    """Puts tools under the rules of a configuration file."""
    rules: Callable[[TaskInput, ToolLibrary], tuple[ToolLibrary, Policy]] | None = None
    """What holds for a task that names its environment."""
    agent: Agent | None = None
    """In the place of the recorded one, with tools of the library."""
    instruction: str | None = None
    """Wins over that of the agent."""
    playbook: StrategySource | None = None
    """Advises in the place of what a run was advised by."""
    artifacts: ArtifactStore | None = None
    """Where the images and files of recorded messages are read."""
    _bound: Latest[str, Bound] = field(default_factory=lambda: Latest(MOST_BOUND))

    def bind(self, snapshot: dict[str, Any]) -> Bound:
        """The recorded agent with the tools of today under their names, and for those that are gone what they were."""
        text = canonical_json(snapshot)
        if (bound := self._bound.get(text)) is None:
            bound = self._bound[text] = self._made(snapshot)
        return bound

    def _made(self, snapshot: dict[str, Any]) -> Bound:
        agent = self.agent or Agent.stored(snapshot)
        gone = [item for item in agent.tools if item.name not in self.library]
        library = self.govern(ToolLibrary(map(_without_code, gone))) if gone else ToolLibrary()
        library = ToolLibrary([*library, *(item for item in self.library if item.name not in library)])
        tools = tuple(library[item.name].specification for item in agent.tools)
        changes: dict[str, Any] = {"tools": tools}
        if self.instruction is not None:
            changes["instruction"] = self.instruction
        return Bound(agent.model_copy(update=changes), library, frozenset(item.name for item in gone))

    async def advised(self, recording: Recording, run: Run) -> Sequence[Fact]:
        """The facts of a recording, with the advice of another playbook in the place of the recorded one."""
        if self.playbook is None:
            return recording.facts
        started = recording.started
        advice = await self.playbook.advise(
            started.task.description, tools=run.offer.names, principal=started.principal or started.task.principal
        )
        given = StrategiesInjected(advice=tuple(item for item in advice if not item.spare))
        return [given if isinstance(fact, StrategiesInjected) else fact for fact in _with_advice(recording.facts)]

    def stage(
        self,
        recording: Recording,
        *,
        planner: Callable[[], Planner] | None = None,
        gate: RecordedGate | None = None,
        invoker: Invoker | None = None,
        journal: MemoryJournal | None = None,
    ) -> Run:
        """The run before its first fact. Unless told otherwise it goes by the recording in everything."""
        started = recording.started
        bound = self.bind(started.agent)
        library, policy = bound.library, self.policy
        if self.rules is not None:
            library, policy = self.rules(started.task, library)
        state = RunState(result_limit=policy.max_result_chars)
        clock = SystemClock()
        offer = Offer(bound.agent, library, started.task, started.principal, most=policy.max_offered_tools)
        offer.begin(missing="skip", descriptions=False)
        executor = Executor(
            clock=clock,
            invoker=invoker or RecordedInvoker(recording),
            limiter=_NoLimits(),
            breaker=LocalBreaker(clock=clock),
            cache=ResultCache(clock=clock),
        )
        return Run(
            agent=bound.agent,
            executor=executor,
            run_id=recording.run_id,
            recorder=Recorder(recording.run_id, journal or MemoryJournal(), clock=clock, fold=state.apply),
            tools=offer.tools,
            policy=policy,
            gate=gate or RecordedGate(recording),
            principal=started.principal,
            state=state,
            limits=effective_limits(started.limits, started.task, bound.agent),
            offer=offer,
            planner=RecordedPlanner(recording) if planner is None else planner(),
            artifacts=self.artifacts,
        )


def _with_advice(facts: Sequence[Fact]) -> Sequence[Fact]:
    """The facts with a place for advice, which a run that was given none does not have."""
    if any(isinstance(fact, StrategiesInjected) for fact in facts):
        return facts
    at = next(at for at, fact in enumerate(facts, start=1) if isinstance(fact, RunStarted))
    return [*facts[:at], StrategiesInjected(), *facts[at:]]


def _without_code(specification: ToolSpecification) -> AnyTool:
    def not_here(**_: Any) -> None:
        raise RuntimeError("a replay runs no tool")

    return Tool.from_specification(specification, not_here)

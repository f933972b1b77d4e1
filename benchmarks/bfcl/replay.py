"""Every ground-truth call twice: directly on one object, and through our executor on its twin.

The tools are the corpus's methods as they are. A call that the executor refuses before it runs, because its arguments
violate the method's own annotations, is counted and listed; it is then made directly on the twin as well, so that
one refusal does not make every later result of the scenario differ.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.bfcl import corpus
from journeyman import Policy, RiskLevel, ToolLibrary, tool
from journeyman.core.calls import ToolCallRecord
from journeyman.core.protocols import SystemClock
from journeyman.core.runs import ToolCall
from journeyman.execution.approval import NoApprover
from journeyman.execution.checks import LocalBreaker, LocalLimiter, ResultCache
from journeyman.execution.executor import CallScope, Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.recorder import MemoryJournal, Recorder
from journeyman.execution.threads import ThreadPool

EVERYTHING_CAN_BE_UNDONE = Policy(default_risk=RiskLevel.REVERSIBLE)
"""The corpus's objects live and die in this process, so nobody need be asked. No tool declares a risk of its own."""


@dataclass(frozen=True)
class Difference:
    scenario: str
    call: str
    direct: Any
    governed: Any


@dataclass
class Outcome:
    """What a replay found."""

    tools: int = 0
    scenarios: int = 0
    calls: int = 0
    equal: int = 0
    refusals: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(call, reason) → the scenarios it happened in."""
    differences: list[Difference] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    """Scenarios after which the two objects' states differ."""
    direct_seconds: float = 0.0
    governed_seconds: float = 0.0


class Stage:
    """The objects and their twins, and the executor that stands before the twins."""

    def __init__(self, classes: Iterable[str]) -> None:
        names = sorted(classes)
        self.objects = corpus.instances(names)
        self.twins = corpus.instances(names)
        self.direct = {name: call for actor in self.objects.values() for name, call in corpus.methods(actor).items()}
        self.governed = {name: call for actor in self.twins.values() for name, call in corpus.methods(actor).items()}
        self.library = ToolLibrary(tool(method) for method in self.governed.values())
        self.clock = SystemClock()
        self.executor = Executor(
            invoker=Invoker(threads=ThreadPool()),
            limiter=LocalLimiter(clock=self.clock),
            breaker=LocalBreaker(clock=self.clock),
            cache=ResultCache(clock=self.clock),
            clock=self.clock,
        )

    def set(self, scenario: corpus.Scenario) -> CallScope:
        corpus.set_stage(self.objects, scenario)
        corpus.set_stage(self.twins, scenario)
        recorder = Recorder(scenario.id, MemoryJournal(), clock=self.clock)
        return CallScope(
            run_id=scenario.id,
            recorder=recorder,
            tools={item.name: item for item in self.library},
            policy=EVERYTHING_CAN_BE_UNDONE,
            gate=NoApprover(),
        )

    async def execute(self, name: str, arguments: dict[str, Any], scope: CallScope, number: int) -> ToolCallRecord:
        record = await self.executor.execute(ToolCall(id=f"call_{number}", tool_name=name, arguments=arguments), scope)
        assert isinstance(record, ToolCallRecord), f"{name!r} waits for a person, under a policy that asks nobody"
        return record


async def replay(scenarios: list[corpus.Scenario]) -> Outcome:
    """Play the scenarios one after another."""
    stage = Stage({name for scenario in scenarios for name in scenario.classes})
    outcome = Outcome(tools=len(stage.library), scenarios=len(scenarios))
    for scenario in scenarios:
        await _play(stage, scenario, outcome)
    return outcome


async def _play(stage: Stage, scenario: corpus.Scenario, outcome: Outcome) -> None:
    scope = stage.set(scenario)
    for number, call in enumerate(scenario.calls):
        arguments = corpus.arguments(stage.direct[call.tool], call)
        start = time.perf_counter()
        direct = corpus.as_json(stage.direct[call.tool](**arguments))
        middle = time.perf_counter()
        record = await stage.execute(call.tool, arguments, scope, number)
        outcome.direct_seconds += middle - start
        outcome.governed_seconds += time.perf_counter() - middle
        outcome.calls += 1
        if record.error is not None and record.attempts == 0:
            reason = f"{record.error.code}: {record.error.message}"
            outcome.refusals.setdefault((call.text, reason), []).append(scenario.id)
            stage.governed[call.tool](**arguments)
            continue
        governed = (
            corpus.as_json(record.result) if record.error is None else f"{record.error.code}: {record.error.message}"
        )
        if governed == direct:
            outcome.equal += 1
        else:
            outcome.differences.append(Difference(scenario.id, call.text, direct, governed))
    if any(corpus.state(stage.objects[name]) != corpus.state(stage.twins[name]) for name in scenario.classes):
        outcome.states.append(scenario.id)

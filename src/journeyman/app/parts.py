"""How the concrete parts are put together, for runs of either kind."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from journeyman.agent.run import Run
from journeyman.core.events import CallFinished, Event, StrategiesInjected
from journeyman.core.policy import Policy
from journeyman.core.protocols import (
    ApprovalGate,
    CircuitBreaker,
    Clock,
    Listener,
    Model,
    RateLimiter,
    StrategySource,
    SystemClock,
)
from journeyman.core.runs import TaskInput
from journeyman.execution.breaker import LocalBreaker
from journeyman.execution.cache import ResultCache
from journeyman.execution.executor import Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.processes import ProcessPool
from journeyman.execution.rate import TokenBuckets
from journeyman.execution.threads import default_pool
from journeyman.telemetry.logs import LogListener
from journeyman.tools.library import ToolLibrary


class Shared:
    """What all runs with one library share: pools, buckets, breakers, cached answers.

    Tied to the library, because two libraries may hold different tools under one name.
    """

    def __init__(
        self, clock: Clock, *, limiter: RateLimiter | None = None, breaker: CircuitBreaker | None = None
    ) -> None:
        self.clock = clock
        self.invoker = Invoker(threads=default_pool(), processes=ProcessPool())
        self.limiter = limiter or TokenBuckets(clock=clock)
        self.breaker = breaker or LocalBreaker(clock=clock)
        self.cache = ResultCache(clock=clock)

    def executor(self, policy: Policy, gate: ApprovalGate) -> Executor:
        return Executor(
            policy=policy,
            gate=gate,
            invoker=self.invoker,
            limiter=self.limiter,
            breaker=self.breaker,
            cache=self.cache,
            clock=self.clock,
        )


_shared: WeakKeyDictionary[ToolLibrary, Shared] = WeakKeyDictionary()


def shared_by(library: ToolLibrary) -> Shared:
    """The parts that runs of this process with this library have in common."""
    found = _shared.get(library)
    if found is None:
        found = _shared[library] = Shared(SystemClock())
    return found


def listeners_for(library: ToolLibrary, policy: Policy, agent: str, listener: Listener | None) -> list[Listener]:
    """Who hears a run's events: the library's counters, logs, spans if anybody traces, and whoever asked."""
    from journeyman.telemetry.spans import SpanListener, tracing

    def count(event: Event) -> None:
        if isinstance(event, CallFinished) and event.record.attempts:
            library.count(event.record.tool_name, success=event.record.success)

    content = policy.capture_content
    found: list[Listener] = [count, LogListener(capture_content=content)]
    if tracing():
        found.append(SpanListener(agent, capture_content=content))
    return found if listener is None else [*found, listener]


def model_named(name: str) -> Model:
    from journeyman.models.resolve import model_from_name

    return model_from_name(name)


async def close_model(model: Model) -> None:
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()


async def advise(prepared: Run, task: TaskInput, playbook: StrategySource | None) -> None:
    """Record the advice a run begins with: the caller's own, then the playbook's."""
    advice = list(task.playbook_bullets)
    if playbook is not None:
        advice += await playbook.advise(task.description, tools=[item.name for item in prepared.offered])
    if advice:
        await prepared.recorder.record(StrategiesInjected(strategies=tuple(advice)))

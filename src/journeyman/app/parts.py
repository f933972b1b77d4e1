"""How the concrete parts are put together, for runs of either kind."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from journeyman.agent.run import Run
from journeyman.core.data import LOG_FIELDS
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
from journeyman.core.specification import ToolSpecification
from journeyman.execution.breaker import LocalBreaker
from journeyman.execution.cache import ResultCache
from journeyman.execution.executor import Around, Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.processes import ProcessPool
from journeyman.execution.rate import TokenBuckets
from journeyman.execution.threads import default_pool
from journeyman.retrieval.bm25 import BM25
from journeyman.telemetry.logs import LogListener
from journeyman.tools.library import ToolLibrary, searchable

logger = logging.getLogger("journeyman.app")


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


class Audience:
    """Who hears a run's events: the library's counters, logs, spans if anybody traces, and whoever asked."""

    def __init__(self, library: ToolLibrary, policy: Policy, agent: str, listener: Listener | None) -> None:
        from journeyman.telemetry.spans import SpanListener, tracing

        self._library = library
        content = policy.capture_content
        self.listeners: list[Listener] = [self._count, LogListener(capture_content=content)]
        self.around: Around | None = None
        if tracing():
            spans = SpanListener(agent, capture_content=content)
            self.listeners.append(spans)
            self.around = spans.running
        if listener is not None:
            self.listeners.append(listener)

    def _count(self, event: Event) -> None:
        if isinstance(event, CallFinished) and event.record.attempts:
            self._library.count(event.record.tool_name, success=event.record.success)


def model_named(name: str) -> Model:
    from journeyman.models.resolve import model_from_name

    return model_from_name(name, rank=nearest_tools)


def nearest_tools(text: str, tools: Sequence[ToolSpecification], k: int) -> list[ToolSpecification]:
    """The tools that share most words with a text, then the others; for models that can weigh only a few."""
    named = {tool.name: tool for tool in tools}
    ranked = BM25({name: searchable(tool) for name, tool in named.items()}).rank(text, k=k)
    return [named[name] for name in dict.fromkeys((*(name for name, _ in ranked), *named))][:k]


async def close_model(model: Model) -> None:
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()


async def advise(prepared: Run, task: TaskInput, playbook: StrategySource | None) -> None:
    """Record the advice a run begins with: the caller's own, then the playbook's."""
    advice = list(task.playbook_bullets)
    if playbook is not None:
        try:
            advice += await playbook.advise(task.description, tools=[item.name for item in prepared.offered])
        except Exception:
            # Advice is a help, never a condition.
            told = {LOG_FIELDS: {"run_id": prepared.id}}
            logger.exception("the playbook failed; the run begins without it", extra=told)
    if advice:
        await prepared.recorder.record(StrategiesInjected(strategies=tuple(advice)))

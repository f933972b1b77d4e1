"""The one place where a ``Run`` is put together from concrete parts, for direct and for durable runs alike."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from journeyman.agent.agent import Agent, Verify
from journeyman.agent.limits import NO_LIMITS, effective_limits
from journeyman.agent.offer import Offer
from journeyman.agent.run import Run
from journeyman.agent.state import RunState
from journeyman.core.calls import ArtifactStore, speaks_for_tool
from journeyman.core.data import FORMAT, LOG_FIELDS
from journeyman.core.events import CallFinished, Event, RunStarted, StrategiesInjected
from journeyman.core.gaps import FindGap
from journeyman.core.playbook import Advice, StrategySource
from journeyman.core.policy import Policy
from journeyman.core.principals import Principal
from journeyman.core.protocols import (
    ApprovalGate,
    CircuitBreaker,
    Clock,
    Journal,
    Listener,
    Model,
    RateLimiter,
    SystemClock,
    ToolRanker,
    Witness,
)
from journeyman.core.runs import Limits, TaskInput
from journeyman.core.specification import ToolSpecification
from journeyman.execution.executor import Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.limits import LocalBreaker, ResultCache, TokenBuckets
from journeyman.execution.recorder import Recorder
from journeyman.execution.threads import default_pool
from journeyman.telemetry import metering, tracing
from journeyman.telemetry.logs import LogListener
from journeyman.tools.library import ToolLibrary, searchable

if TYPE_CHECKING:
    from journeyman.telemetry.spans import SpanListener

logger = logging.getLogger("journeyman.app")


class Resources:
    """What all runs with one library share: pools, rate limits, circuit breakers, cached results.

    Bound to the library, because two libraries may hold different tools under one name.
    """

    def __init__(
        self, clock: Clock, *, limiter: RateLimiter | None = None, breaker: CircuitBreaker | None = None
    ) -> None:
        self.clock = clock
        self.invoker = Invoker(threads=default_pool())
        self.limiter = limiter or TokenBuckets(clock=clock)
        self.breaker = breaker or LocalBreaker(clock=clock)
        self.cache = ResultCache(clock=clock)

    def executor(
        self,
        policy: Policy,
        gate: ApprovalGate,
        *,
        artifacts: ArtifactStore | None = None,
        approval_seconds: float | None = None,
        witness: Witness | None = None,
        durable: bool = False,
    ) -> Executor:
        return Executor(
            durable=durable,
            policy=policy,
            gate=gate,
            witness=witness,
            invoker=self.invoker,
            limiter=self.limiter,
            breaker=self.breaker,
            cache=self.cache,
            clock=self.clock,
            approval_seconds=approval_seconds,
            artifacts=artifacts,
        )


_resources: WeakKeyDictionary[ToolLibrary, Resources] = WeakKeyDictionary()


def resources_of(library: ToolLibrary) -> Resources:
    """What direct runs of this process with this library share."""
    found = _resources.get(library)
    if found is None:
        found = _resources[library] = Resources(SystemClock())
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """Everything a run is put together from. Direct and durable runs fill it in differently, and differ in no more."""

    run_id: str
    agent: Agent
    task: TaskInput
    principal: Principal | None
    limits: Limits
    library: ToolLibrary
    policy: Policy
    resources: Resources
    gate: ApprovalGate
    journal: Journal
    model: Callable[[RunState], Model]
    artifacts: ArtifactStore | None = None
    """Where large results are kept; None leaves them in their records."""
    witness: Witness | None = None
    """Knows of calls that another process has begun."""
    listener: Listener | None = None
    state: RunState | None = None
    """The fold of what the journal holds of the run already; None for a new one."""
    seq: int = 0
    """How many facts that are."""
    format: Callable[[], int] = lambda: FORMAT
    """The format version that every program at work on the journal can read."""
    approval_seconds: float | None = None
    """How long a question stays open; None leaves it to the policy's word for runs that wait in this process."""
    now: Callable[[Principal], Principal | None] | None = None
    """Who a principal is by now; see ``CallScope``."""
    durable: bool = False
    """Whether the run waits in a store where a person must act."""
    defaults: Limits = NO_LIMITS
    """What holds where neither the caller nor the task nor the agent says anything."""
    before_step: Callable[[Run], None] | None = None
    verify: Verify | None = None
    """Says of the run, when it has ended, whether it is right; wins over the agent's."""
    gaps: FindGap | None = None
    ranker: ToolRanker | None = None
    """Which tools are offered where there are too many; None for the library's own search."""
    trace_parent: str | None = None
    """The span of whoever ordered the run."""
    system: str | None = None
    """The database that keeps the journal; None where it is kept nowhere."""
    tools: Literal["bind", "all", "none"] = "bind"
    """Without tools a run can be settled and cancelled, but not advanced. With ``all``, one that is resumed needs each
    of them, as a new one does; else it goes on without those that are gone."""

    def build(self) -> Run:
        """The run as its facts leave it. Raises BindingError where a new run's tools are missing."""
        clock = self.resources.clock
        state = self.state or RunState(result_limit=self.policy.max_result_chars)
        offer = Offer(self.agent, self.library, self.task, self.principal, most=self.policy.max_offered_tools)
        if self.tools != "none":
            # A resumed run goes on under the descriptions it began with.
            skips = self.seq and self.tools == "bind"
            offer.begin(missing="skip" if skips else "refuse", descriptions=not self.seq)
        limits = effective_limits(self.limits, self.task, self.agent, self.defaults)
        listeners, spans = self._listeners(state)
        journal = self.journal
        if spans is not None and self.system is not None:
            from journeyman.telemetry.spans import TracedJournal

            journal = TracedJournal(journal, self.system)
        return Run(
            id=self.run_id,
            agent=self.agent,
            model=self.model(state),
            executor=self.resources.executor(
                self.policy,
                self.gate,
                artifacts=self.artifacts,
                approval_seconds=self.approval_seconds,
                witness=self.witness,
                durable=self.durable,
            ),
            recorder=Recorder(
                self.run_id,
                journal,
                clock=clock,
                fold=state.apply,
                listeners=listeners,
                seq=self.seq,
                format=self.format,
            ),
            state=state,
            limits=limits,
            offer=offer,
            clock=clock,
            deadline=None if limits.seconds is None else clock.monotonic() + limits.seconds - state.active_seconds,
            around=None if spans is None else spans.running,
            trace=spans,
            now=self.now,
            before_step=self.before_step,
            verify=self.verify or self.agent.verify,
            gaps=self.gaps,
            wants_text=self.listener is not None,
        )

    def _listeners(self, state: RunState) -> tuple[list[Listener], SpanListener | None]:
        """The library's counters, logs, spans and metrics if they are configured, and the caller's listener."""
        content, library = self.policy.capture_content, self.library

        def count(event: Event) -> None:
            if isinstance(event, CallFinished):
                record = event.record
                success = speaks_for_tool(record.status, attempts=record.attempts)
                if success is not None:
                    library.count(record.tool_name, success=success)

        listeners: list[Listener] = [count, LogListener(capture_content=content)]
        spans: SpanListener | None = None
        if tracing():
            from journeyman.telemetry.spans import SpanListener

            pasts = () if state.turn is None else state.turn.pasts.values()
            asked = [past.approval for past in pasts if past.approval is not None and past.decision is None]
            parent = state.trace_parent or self.trace_parent
            spans = SpanListener(self.agent.name, parent=parent, asked=asked, capture_content=content)
            listeners.append(spans)
        if metering():
            from journeyman.telemetry.metrics import MetricListener

            listeners.append(MetricListener(self.agent.name))
        if self.listener is not None:
            listeners.append(self.listener)
        return listeners, spans


async def begin(run: Run, started: RunStarted, playbook: StrategySource | None) -> None:
    """Record a new run's first facts: what it was asked, and the advice it is given."""
    if run.trace is not None:
        parent = run.trace.begin(run.id, run.clock.time())
        started = started.model_copy(update={"trace_parent": parent})
    await run.recorder.record(started)
    advice = [Advice(text=text) for text in started.task.playbook_bullets if text.strip()]
    if playbook is not None:
        try:
            found = await playbook.advise(
                started.task.description,
                tools=[item.name for item in run.offer.offered],
                principal=run.state.principal or started.task.principal,
                previous=next((call.tool_name for said in reversed(started.history) for call in said.calls[-1:]), None),
                run_id=run.id,
            )
            advice += StrategiesInjected(advice=tuple(found)).advice
        except Exception:
            # A run is as good without advice as it was before there was a playbook.
            logger.exception("the playbook failed; the run begins without it", extra={LOG_FIELDS: {"run_id": run.id}})
    if advice:
        await run.recorder.record(StrategiesInjected(advice=tuple(advice)))


# --- models


def model_named(name: str) -> Model:
    from journeyman.models.resolve import model_from_name

    return model_from_name(name, rank=nearest_tools)


def nearest_tools(text: str, tools: Sequence[ToolSpecification], k: int) -> list[ToolSpecification]:
    """The tools that share most words with a text, then the others; for models that can weigh only a few."""
    from journeyman.retrieval.bm25 import BM25

    named = {tool.name: tool for tool in tools}
    ranked = BM25({name: searchable(tool) for name, tool in named.items()}).rank(text, k=k)
    return [named[name] for name in dict.fromkeys((*(name for name, _ in ranked), *named))][:k]


async def close_model(model: Model) -> None:
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()

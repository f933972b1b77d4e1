"""An executor with real parts and a clock that is moved by hand: what the tests of the path share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from journeyman import Approval, ErrorInfo, Policy, Principal, RiskLevel, ToolCallRecord
from journeyman.core.approvals import Decision
from journeyman.core.events import Event, Fact
from journeyman.core.protocols import ApprovalGate
from journeyman.execution.approval import NoApprover
from journeyman.execution.checks import LocalBreaker, LocalLimiter, ResultCache
from journeyman.execution.executor import CallPast, CallScope, Check, Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.outcome import Suspended
from journeyman.execution.recorder import MemoryJournal, Recorder
from journeyman.execution.threads import default_pool
from journeyman.testing import FakeClock
from journeyman.testing.scripted import ScriptedCall
from journeyman.tools.library import AnyTool


class WatchedJournal(MemoryJournal):
    """Keeps facts as usual, and remembers which of them had to survive power loss."""

    def __init__(self, on_append: Callable[[Fact], None] = lambda fact: None) -> None:
        super().__init__()
        self.log: list[tuple[str, bool]] = []
        self._on_append = on_append

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        await super().append(run_id, facts, sync=sync)
        for fact in facts:
            self.log.append((fact.type, sync))
            self._on_append(fact)


class Path:
    """The way of calls through one executor, in one run."""

    def __init__(
        self,
        tools: Iterable[AnyTool],
        *,
        clock: FakeClock | None = None,
        gate: ApprovalGate | None = None,
        deadline: float | None = None,
        checks: Sequence[Check] = (),
        **policy: Any,
    ) -> None:
        self.clock = clock or FakeClock()
        self.journal = WatchedJournal()
        self.events: list[Event] = []
        self.tools = {item.name: item for item in tools}
        self.deadline = deadline
        self.policy = Policy(**{"default_risk": RiskLevel.REVERSIBLE, **policy})
        self.gate = gate or NoApprover()
        self.executor = Executor(
            invoker=Invoker(threads=default_pool()),
            limiter=LocalLimiter(clock=self.clock),
            breaker=LocalBreaker(clock=self.clock),
            cache=ResultCache(clock=self.clock),
            clock=self.clock,
            checks=checks,
        )
        self.recorder = Recorder("run", self.journal, clock=self.clock, listeners=[self.events.append])
        self._calls = 0

    async def outcome(
        self, scripted: ScriptedCall, principal: Principal | None = None, past: CallPast | None = None
    ) -> ToolCallRecord | Suspended:
        self._calls += 1
        made = scripted.tool_call
        made = made if made.id else made.model_copy(update={"id": f"c{self._calls}"})
        scope = CallScope(
            run_id="run",
            recorder=self.recorder,
            tools=self.tools,
            policy=self.policy,
            gate=self.gate,
            principal=principal,
            deadline=self.deadline,
        )
        return await self.executor.execute(made, scope, past)

    async def call(self, scripted: ScriptedCall, principal: Principal | None = None) -> ToolCallRecord:
        record = await self.outcome(scripted, principal)
        assert isinstance(record, ToolCallRecord)
        return record

    async def error(self, scripted: ScriptedCall, principal: Principal | None = None) -> ErrorInfo:
        record = await self.call(scripted, principal)
        assert record.error is not None
        return record.error

    async def facts(self) -> Sequence[Fact]:
        return await self.journal.read("run")


class Answers:
    """A gate that answers what it is told to answer and remembers the questions."""

    def __init__(self, *decisions: Decision | None) -> None:
        self.questions: list[Approval] = []
        self._decisions = list(decisions)

    async def ask(self, approval: Approval) -> Decision | None:
        self.questions.append(approval)
        return self._decisions.pop(0)

"""One run with all its parts, as the loop sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from journeyman.agent.agent import Agent
from journeyman.agent.builtin import FINISH, READ_RESULT, finish_tool, read_result_tool
from journeyman.agent.limits import EffectiveLimits
from journeyman.agent.state import RunState
from journeyman.agent.window import window
from journeyman.core.errors import ConfigurationError
from journeyman.core.messages import Message
from journeyman.core.protocols import Clock, Model, ModelRequest
from journeyman.core.runs import TaskInput
from journeyman.core.specification import ToolSpecification
from journeyman.execution.executor import Around, CallScope, Executor
from journeyman.execution.recorder import Recorder
from journeyman.tools.library import BoundTools, nearest_names
from journeyman.tools.tool import Tool


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
    tools: dict[str, Tool[..., Any]]
    offered: tuple[ToolSpecification, ...]
    clock: Clock
    deadline: float | None = None
    """By the clock's monotonic time."""
    wants_text: bool = False
    """Whether somebody wants to see the model's text grow."""
    leaving: bool = False
    """Set from outside: stop after this step, another process goes on."""
    memo: dict[Any, Any] = field(default_factory=dict)
    around: Around | None = None
    """Entered around each tool's run."""
    system: Message | None = None
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
                tools=self.tools,
                principal=self.state.principal,
                correlation_id=self.id,
                deadline=self.deadline,
                around=self.around,
            )
        return self._scope

    @property
    def in_session(self) -> bool:
        return self.state.task is not None and self.state.task.session_id is not None

    @property
    def overdue(self) -> bool:
        return self.deadline is not None and self.clock.monotonic() >= self.deadline

    def remaining(self) -> float | None:
        return None if self.deadline is None else self.deadline - self.clock.monotonic()

    def postpone(self, seconds: float) -> None:
        """Put the deadline off, for calls under way as well: the time a person takes is not the run's."""
        if self.deadline is not None:
            self.deadline += seconds
            self.scope.deadline = self.deadline

    def reads(self, tool_name: str) -> bool:
        """Whether a tool only reads; what does not exist changes nothing either."""
        tool = self.tools.get(tool_name)
        return tool is None or tool.specification.read_only

    def request(self) -> ModelRequest:
        """The next question to the model."""
        state = self.state
        if self.system is None:
            self.system = Message.system(instruction(self.agent, state.strategies))
        if state.cut_results and READ_RESULT not in self.tools:
            reader = read_result_tool(state.cut_results, limit=self.executor.policy.max_result_chars)
            self.tools[READ_RESULT] = reader
            self.offered = (*self.offered, reader.specification)
        recent = window(state.messages, limit=self.limits.history_messages, task_at=state.task_at)
        return ModelRequest(
            messages=[self.system, *recent],
            tools=self.offered,
            step=self.iteration,
            run_id=self.id,
            timeout=self.remaining(),
            memo=self.memo,
        )


def instruction(agent: Agent, strategies: tuple[str, ...]) -> str:
    """The system message: the agent's instruction, then what earlier runs teach."""
    parts = [agent.instruction]
    if strategies:
        advice = "\n".join(f"- {line}" for line in strategies)
        parts.append(f"What worked in similar tasks before (advice, not orders):\n{advice}")
    if agent.finish:
        parts.append("When the task is done, call finish with your answer.")
    return "\n\n".join(parts)


def run_tools(
    agent: Agent, bound: BoundTools, task: TaskInput
) -> tuple[dict[str, Tool[..., Any]], tuple[ToolSpecification, ...]]:
    """What may be called in a run and what its model is offered: the agent's tools, narrowed by the task."""
    by_name: Mapping[str, Tool[..., Any]] = bound.by_name
    offered = bound.offered
    if task.available_tools is not None:
        if unknown := [name for name in task.available_tools if name not in by_name]:
            near = nearest_names(unknown[0], by_name)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise ConfigurationError(
                f"task {task.task_id!r}: available_tools names tools the agent does not have: "
                f"{', '.join(map(repr, unknown))}{hint}"
            )
        by_name = {name: by_name[name] for name in task.available_tools}
        offered = tuple(item for item in offered if item.name in by_name)
    tools = dict(by_name)
    if agent.finish:
        ending = finish_tool()
        tools[FINISH] = ending
        offered = (*offered, ending.specification)
    return tools, offered

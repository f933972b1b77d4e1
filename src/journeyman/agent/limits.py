"""Which limits hold for a run: the caller's over the task's over the agent's over the defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass

from journeyman.agent.agent import Agent
from journeyman.core.messages import Usage
from journeyman.core.runs import LimitName, Limits, TaskInput

DEFAULT_ITERATIONS = 10
DEFAULT_HISTORY_MESSAGES = 100


@dataclass(frozen=True, slots=True)
class EffectiveLimits:
    """What holds; None means no limit."""

    iterations: int | None
    history_messages: int | None
    seconds: float | None
    tokens: int | None

    def reached(self, *, iterations: int, usage: Usage, remaining: float | None) -> LimitName | None:
        """The limit that forbids another iteration, if one does."""
        if self.iterations is not None and iterations >= self.iterations:
            return "iterations"
        if self.tokens is not None and usage.total_tokens >= self.tokens:
            return "tokens"
        if remaining is not None and remaining <= 0:
            return "seconds"
        return None


NO_LIMITS = Limits()


def effective_limits(limits: Limits, task: TaskInput, agent: Agent, defaults: Limits = NO_LIMITS) -> EffectiveLimits:
    """A field left out of ``limits`` falls to the next in line; a field set to None is lifted."""
    given = limits.model_fields_set
    iterations = limits.iterations if "iterations" in given else (task.max_iterations or agent.max_iterations)
    if iterations is None and "iterations" not in given:
        iterations = defaults.iterations or DEFAULT_ITERATIONS
    messages = defaults.history_messages or DEFAULT_HISTORY_MESSAGES
    seconds = limits.seconds if "seconds" in given else defaults.seconds
    return EffectiveLimits(
        iterations=iterations,
        history_messages=limits.history_messages if "history_messages" in given else messages,
        # Without end is no limit; as a deadline, it would be more than timers can count.
        seconds=seconds if seconds is not None and math.isfinite(seconds) else None,
        tokens=limits.tokens if "tokens" in given else defaults.tokens,
    )

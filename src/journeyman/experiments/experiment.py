"""Runs the arms over the inputs, measures each run, and compares."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Literal, TypeAlias

from journeyman.agent.agent import Agent
from journeyman.core.data import new_id
from journeyman.core.errors import ConfigurationError
from journeyman.core.runs import AgentResponse, Price, TaskInput, cost_of, list_prices
from journeyman.experiments.report import Look, Observation, Report, compare
from journeyman.experiments.statistics import alpha_at, assign

Runner: TypeAlias = Callable[..., Awaitable[AgentResponse]]
Score: TypeAlias = Callable[[AgentResponse, Any], float | bool]
Input: TypeAlias = str | TaskInput

LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment has come."""

    done: int
    total: int
    observation: Observation


@dataclass(kw_only=True, eq=False)
class Experiment:
    """The same agent in several arms.

    An arm is a library, or a mapping of keywords for the runner: ``{"library": …, "model": …, "playbook": …}``.
    ``score(response, input)`` gives a bool or a number from 0 to 1. By default every arm runs every input, and the
    comparison is paired; with ``assignment="sticky"`` every input (its ``unit(input)``, e.g. a user) gets one arm.
    ``looks`` plans interim analyses: the experiment may stop early, and each look is held to a stricter alpha.
    ``prices`` adds to the list prices by which runs are charged, or replaces some: ``{"my-model": Price(input=…)}``.
    """

    agent: Agent = field(kw_only=False)
    arms: Mapping[str, Any] = field(kw_only=False)
    inputs: Sequence[Input] = field(kw_only=False)
    score: Score
    runner: Runner
    name: str = ""
    assignment: Literal["paired", "sticky"] = "paired"
    unit: Callable[[Input], str] | None = None
    order: Literal["interleaved", "sequential"] = "interleaved"
    looks: int = 1
    alpha: float = 0.05
    concurrency: int = 1
    seed: int = 0
    prices: Mapping[str, Price] = field(default_factory=dict)
    id: str = field(init=False, default_factory=partial(new_id, "exp"))

    def __post_init__(self) -> None:
        if len(self.arms) < 2:
            raise ConfigurationError(f"an experiment compares at least two arms, got {sorted(self.arms)}")
        if not self.inputs:
            raise ConfigurationError("an experiment needs inputs")
        if self.looks < 1 or not 0 < self.alpha < 1 or self.concurrency < 1:
            raise ConfigurationError("looks and concurrency are 1 or more, alpha is between 0 and 1")
        arms = self.arms.items()
        self.arms = {arm: dict(given) if isinstance(given, Mapping) else {"library": given} for arm, given in arms}
        self.name = self.name or f"{self.agent.name}: {' / '.join(self.arms)}"
        self.looks = min(self.looks, len(self.inputs))
        self.prices = {**list_prices(), **self.prices}

    async def run(self, progress: Callable[[Progress], None] | None = None) -> Report:
        """Run to the end, or to the first look with a winner. ``progress`` is called after every run."""
        total = sum(len(self._arms_of(index)) for index in range(len(self.inputs)))
        observations: list[Observation] = []
        numbers = count(1)

        def measured(item: Observation) -> None:
            if progress is not None:
                progress(Progress(next(numbers), total, item))

        size, parts = len(self.inputs), self.looks
        batches = (range(size * part // parts, size * (part + 1) // parts) for part in range(parts))
        for look, batch in enumerate(batches, start=1):
            observations += await self._observe(batch, measured)
            report = compare(observations, self._look(look), arms=list(self.arms), seed=self.seed)
            if report.winner is not None:
                break
        return report

    def _look(self, number: int) -> Look:
        return Look(
            experiment_id=self.id,
            name=self.name,
            paired=self.assignment == "paired",
            alpha=self.alpha if self.looks == 1 else alpha_at(number, self.looks, alpha=self.alpha),
            look=number,
            looks=self.looks,
        )

    def _unit_of(self, index: int) -> str:
        given = self.inputs[index]
        if self.unit is not None:
            return self.unit(given)
        return f"{index:06d}" if isinstance(given, str) else given.task_id

    def _arms_of(self, index: int) -> list[str]:
        if self.assignment == "sticky":
            return [assign(self._unit_of(index), list(self.arms), experiment=self.name)]
        return list(self.arms)

    async def _observe(self, batch: Sequence[int], measured: Callable[[Observation], None]) -> list[Observation]:
        # Shuffled, so that whatever drifts over time (caches, load, the model) affects all arms alike.
        rng = random.Random(f"{self.seed}/{batch[0] if batch else 0}")
        work = []
        for index in batch:
            arms = self._arms_of(index)
            rng.shuffle(arms)
            work += [(arm, index) for arm in arms]
        if self.order == "sequential":
            ranks = list(self.arms)
            work.sort(key=lambda item: (ranks.index(item[0]), item[1]))
        slots = asyncio.Semaphore(self.concurrency)

        async def one(arm: str, index: int) -> Observation:
            async with slots:
                observation = await self._measure(arm, index)
            measured(observation)
            return observation

        return list(await asyncio.gather(*(one(arm, index) for arm, index in work)))

    async def _measure(self, arm: str, index: int) -> Observation:
        given, unit = self.inputs[index], self._unit_of(index)
        start = time.perf_counter()
        try:
            response = await self.runner(self.agent, given, **self.arms[arm])
            score = float(self.score(response, given))
        except Exception as error:  # a failing run counts against its arm and does not end the experiment
            seconds = time.perf_counter() - start
            reason = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
            return Observation(arm=arm, unit=unit, score=0.0, seconds=seconds, error=reason)
        if not 0 <= score <= 1:
            raise ConfigurationError(f"score() must give a bool or a number from 0 to 1, got {score} for {unit!r}")
        failed = response.error  # why a run did not complete, code first
        return Observation(
            arm=arm,
            unit=unit,
            score=score,
            iterations=response.total_iterations,
            calls=len(response.tool_calls),
            seconds=time.perf_counter() - start,
            tokens=response.usage.total_tokens,
            cost=cost_of(response.model, response.usage, self.prices),
            model=response.model,
            status=response.status.value,
            error=None if failed is None else f"{failed.code}: {failed.message}"[:LONGEST_REASON],
        )

"""The crash harness: kill a program at every boundary of its journal and see whether it still ends right.

A crash here is SIGKILL to the process itself: no exception, no clean-up, nothing flushed. Wrap the store of the program
under test with ``crashing(store)`` and run the program with ``crash_and_recover``, once for every ``CrashPoint``.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal, TypeVar, cast

from journeyman.core.events import Fact
from journeyman.core.protocols import Journal

AnyStore = TypeVar("AnyStore")
VARIABLE = "JOURNEYMAN_CRASH"


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """Just before or just after the n-th fact this process writes is on disk."""

    when: Literal["before", "after"]
    fact: int

    def __str__(self) -> str:
        return f"{self.when}:{self.fact}"

    @classmethod
    def from_environment(cls) -> CrashPoint | None:
        text = os.environ.get(VARIABLE)
        if not text:
            return None
        when, _, number = text.partition(":")
        if when not in ("before", "after") or not number.isdigit():
            raise ValueError(f"{VARIABLE}={text!r}: write it like 'before:3' or 'after:3'")
        return cls(cast('Literal["before", "after"]', when), int(number))


def crash_points(facts: int) -> Iterator[CrashPoint]:
    """Every boundary of a journal with so many facts."""
    for number in range(1, facts + 1):
        yield CrashPoint("before", number)
        yield CrashPoint("after", number)


def crashing(store: AnyStore, point: CrashPoint | None = None) -> AnyStore:
    """The store, which from now on kills this process at the given point, or at the one in the environment, if any."""
    if (point := point or CrashPoint.from_environment()) is not None:
        runs: Any = store.runs  # type: ignore[attr-defined]  # any store has them
        opened, written = runs.journal, count(1)

        def journal(run_id: str, *, epoch: int) -> Journal:
            return _CrashingJournal(opened(run_id, epoch=epoch), store, point, written)

        runs.journal = journal
    return store


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a program recovered from a crash."""

    crashed: bool
    """Whether the point was reached at all."""
    attempts: int
    output: str


def crash_and_recover(
    command: Sequence[str],
    point: CrashPoint,
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    most_attempts: int = 5,
) -> Recovery:
    """Run a program until it kills itself at the point, then again without, until it exits with 0.

    Raises AssertionError when it fails in another way, or does not succeed in ``most_attempts``.
    """
    variables = {**os.environ, **(environment or {}), VARIABLE: str(point)}
    crashed = False
    for attempt in range(1, most_attempts + 1):
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode == 0:
            return Recovery(crashed, attempt, done.stdout)
        crashed = crashed or done.returncode == -signal.SIGKILL
        if not crashed:
            break
        variables.pop(VARIABLE, None)
    raise AssertionError(f"at {point}: exit {done.returncode} in attempt {attempt}\n{done.stdout}{done.stderr}")


class _CrashingJournal:
    """Counts the facts of all runs; ``written`` gives their numbers."""

    def __init__(self, journal: Journal, store: Any, point: CrashPoint, written: Iterator[int]) -> None:
        self._journal, self._store, self._point, self._written = journal, store, point, written

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        # Facts that are written together have no boundary between them; parallel calls go on counting meanwhile.
        numbers = [next(self._written) for _ in facts]
        await self._boundary("before", numbers)
        await self._journal.append(run_id, facts, sync=sync)
        await self._boundary("after", numbers)

    async def _boundary(self, when: Literal["before", "after"], facts: Sequence[int]) -> None:
        if self._point.when == when and self._point.fact in facts:
            await self._store.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    async def read(self, run_id: str, *, after: int = 0) -> Sequence[Fact]:
        return await self._journal.read(run_id, after=after)

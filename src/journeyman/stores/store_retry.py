"""Waiting for a database that is unreachable, full or locked: runs pause where they are and lose nothing."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from journeyman.core.approvals import Approval, Decision
from journeyman.core.calls import ArtifactStore
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import JournalConflictError, StoreClosedError, StoreError
from journeyman.core.events import CallFinished, CallStarted, Fact
from journeyman.core.policy import BreakerRule, RateLimit
from journeyman.core.protocols import ApprovalGate, CircuitBreaker, Clock, Journal, RateLimiter
from journeyman.core.storing import RunStore
from journeyman.stores.connection import pauses

logger = logging.getLogger("journeyman.store")

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


async def retry_store_faults(work: Callable[[], Awaitable[T]], *, clock: Clock, run_id: str = "") -> T:
    """Do it, again and again, until the store takes it."""
    for pause in pauses(FIRST_PAUSE, LONGEST_PAUSE):
        try:
            return await work()
        except StoreClosedError:
            raise
        except StoreError as error:
            fields = {"run_id": run_id, "pause_seconds": pause}
            logger.warning("the run pauses: %s", error, extra={LOG_FIELDS: fields})
        await clock.sleep(pause)
    raise AssertionError("pauses do not end")


class RetryingJournal:
    """A journal that waits for its store. It knows which facts may have been lost on the way and writes them again.

    Where the run was taken over meanwhile, it reports what became of the calls that were begun here.
    """

    def __init__(self, run_id: str, runs: RunStore, *, epoch: int, clock: Clock) -> None:
        self._run_id = run_id
        self._runs = runs
        self._epoch = epoch
        self._clock = clock
        self._journal: Journal = runs.journal(run_id, epoch=epoch)
        self._unsure: list[Fact] = []
        """Facts that may be lost when the database crashes: none after them is known to be synced."""
        self._begun: dict[str, list[CallStarted]] = {}
        """The attempts at calls that have no outcome yet, by execution."""

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        self._unsure.extend(facts)
        for fact in facts:
            if isinstance(fact, CallStarted):
                self._begun.setdefault(fact.execution_id, []).append(fact)
        try:
            await self._journal.append(run_id, facts, sync=sync)
        except (StoreError, JournalConflictError):
            # A conflict, too, may only mean that a database which crashed has lost what was committed but not synced.
            try:
                await retry_store_faults(self._catch_up, clock=self._clock, run_id=run_id)
            except JournalConflictError:
                await self._report(facts)
                raise
        else:
            if sync:
                self._sure_of(facts)
        for fact in facts:
            if isinstance(fact, CallFinished):
                self._begun.pop(fact.record.execution_id, None)

    async def _report(self, facts: Sequence[Fact]) -> None:
        """Tell whoever has the run now how a call ended, or that it did not begin: these facts were refused."""
        for fact in facts:
            if isinstance(fact, CallStarted):
                begun, record = self._begun.pop(fact.execution_id, []), None
            elif isinstance(fact, CallFinished):
                begun, record = self._begun.pop(fact.record.execution_id, []), fact.record
            else:
                continue
            for started in begun:
                told = partial(self._runs.report, started, record)
                await retry_store_faults(told, clock=self._clock, run_id=self._run_id)

    async def read(self, run_id: str, *, after: int = 0) -> Sequence[Fact]:
        return await retry_store_faults(lambda: self._runs.facts(run_id, after=after), clock=self._clock, run_id=run_id)

    async def _catch_up(self) -> None:
        """Write whatever the store does not have yet: a commit whose answer was lost must not be written twice."""
        row = await self._runs.get(self._run_id)
        if row is None or row.epoch != self._epoch:
            raise JournalConflictError(f"run {self._run_id!r} was taken over by another process")
        self._journal = self._runs.journal(self._run_id, epoch=self._epoch)  # one that knows of no conflict
        missing = [fact for fact in self._unsure if (fact.seq or 0) > row.last_seq]
        if missing:
            await self._journal.append(self._run_id, missing, sync=True)
            self._sure_of(missing)

    def _sure_of(self, facts: Sequence[Fact]) -> None:
        """These are committed, and so is everything before them; what a sibling appended meanwhile may not be."""
        last = max(fact.seq or 0 for fact in facts)
        self._unsure = [fact for fact in self._unsure if (fact.seq or 0) > last]


class RetryingGate:
    """An approval gate that waits for its store."""

    def __init__(self, gate: ApprovalGate, *, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock

    async def ask(self, approval: Approval) -> Decision | None:
        return await retry_store_faults(lambda: self._gate.ask(approval), clock=self._clock, run_id=approval.run_id)


class RetryingArtifacts:
    """An artifact store that waits for its database."""

    def __init__(self, artifacts: ArtifactStore, *, clock: Clock) -> None:
        self._artifacts = artifacts
        self._clock = clock

    async def put(self, run_id: str, text: str) -> str:
        return await retry_store_faults(lambda: self._artifacts.put(run_id, text), clock=self._clock, run_id=run_id)

    async def read(self, run_id: str, artifact_id: str, *, offset: int = 0, length: int | None = None) -> str | None:
        read = partial(self._artifacts.read, run_id, artifact_id, offset=offset, length=length)
        return await retry_store_faults(read, clock=self._clock, run_id=run_id)


class RetryingLimiter:
    """A rate limiter that waits for its store."""

    def __init__(self, limiter: RateLimiter, *, clock: Clock) -> None:
        self._limiter = limiter
        self._clock = clock

    async def take(self, tool_name: str, limits: Mapping[str, RateLimit]) -> float:
        return await retry_store_faults(lambda: self._limiter.take(tool_name, limits), clock=self._clock)

    async def pause(self, tool_name: str, seconds: float) -> None:
        await retry_store_faults(lambda: self._limiter.pause(tool_name, seconds), clock=self._clock)


class RetryingBreaker:
    """A circuit breaker that waits for its store."""

    def __init__(self, breaker: CircuitBreaker, *, clock: Clock) -> None:
        self._breaker = breaker
        self._clock = clock

    async def blocked(self, tool_name: str, rule: BreakerRule) -> float:
        return await retry_store_faults(lambda: self._breaker.blocked(tool_name, rule), clock=self._clock)

    async def report(self, tool_name: str, rule: BreakerRule, *, healthy: bool) -> None:
        await retry_store_faults(lambda: self._breaker.report(tool_name, rule, healthy=healthy), clock=self._clock)

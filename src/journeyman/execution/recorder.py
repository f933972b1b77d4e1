"""Numbers facts, writes them to the journal, then notifies listeners. The only way to record a fact.

Also the journal that lives as long as its process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from journeyman.core.data import FORMAT, LOG_FIELDS
from journeyman.core.errors import JournalConflictError
from journeyman.core.events import FIRST_FACTS, Fact, Signal, StepRestarted
from journeyman.core.protocols import Clock, Journal, Listener

logger = logging.getLogger("journeyman.recorder")


class Recorder:
    """One per run and process. Listeners get a fact only after it is in the journal, and in order.

    ``fold`` applies every fact to the run's state, before any listener. Unlike a listener's, its exceptions propagate:
    a loop whose state does not follow its facts would never end. ``format`` is the version that every program at work
    on the journal can read; newer types of facts are not recorded until all of them can.
    """

    def __init__(
        self,
        run_id: str,
        journal: Journal,
        *,
        clock: Clock,
        fold: Listener | None = None,
        listeners: Sequence[Listener] = (),
        seq: int = 0,
        format: Callable[[], int] = lambda: FORMAT,
    ) -> None:
        self.run_id = run_id
        self._journal = journal
        self._clock = clock
        self._fold = fold
        self._listeners = tuple(listeners)
        self._seq = seq
        self._format = format
        self._published = seq
        self._out_of_order: dict[int, Fact] = {}
        self._closed = False

    async def record(self, *facts: Fact, sync: bool = False) -> None:
        """Write facts, all or none. With ``sync`` they survive power loss when this returns."""
        if self._closed:
            raise JournalConflictError(f"run {self.run_id!r} was handed over; this process records nothing more")
        now, run_id, seq = self._clock.time(), self.run_id, self._seq
        for fact in facts:
            if type(fact) not in FIRST_FACTS:
                # An older program at work on this journal could not read it.
                facts = tuple(fact for fact in facts if fact.since <= self._format())
                break
        if not facts:
            return
        for fact in facts:
            seq += 1
            fact.stamp(run_id, seq, now)
        self._seq = seq
        try:
            await self._journal.append(self.run_id, facts, sync=sync)
        except asyncio.CancelledError:
            # The journal writes them all the same, and the facts that close the run are derived from them.
            self._publish(facts)
            raise
        self._publish(facts)

    def _publish(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if fact.seq != self._published + 1:
                # Parallel calls record concurrently, and a journal may return from a later append first.
                self._out_of_order[fact.seq or 0] = fact
                continue
            ready: Fact | None = fact
            while ready is not None:
                self._published += 1
                if self._fold is not None:
                    self._fold(ready)
                self._notify(ready)
                if not self._out_of_order:
                    break
                ready = self._out_of_order.pop(self._published + 1, None)

    def close(self) -> None:
        """Refuse further facts: another process owns the run now."""
        self._closed = True

    def signal(self, event: Signal | StepRestarted) -> None:
        """Notify listeners of an event that is not journalled."""
        event.stamp(self.run_id, None, self._clock.time())
        self._notify(event)

    def _notify(self, event: Fact | Signal) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                logger.exception("a listener failed", extra={LOG_FIELDS: {"run_id": self.run_id, "type": event.type}})


class MemoryJournal:
    """Facts in lists. Keeps the same promises as a database, except surviving."""

    def __init__(self) -> None:
        self._runs: dict[str, list[Fact]] = {}

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        kept = self._runs.setdefault(run_id, [])
        for fact in facts:
            if fact.seq != len(kept) + 1:
                raise JournalConflictError(
                    f"run {run_id!r}: fact {fact.seq} cannot be written, the next is {len(kept) + 1}; "
                    "another process is working on this run"
                )
            kept.append(fact)

    async def read(self, run_id: str, *, after: int = 0) -> Sequence[Fact]:
        return tuple(self._runs.get(run_id, ())[after:])

    def runs(self) -> list[str]:
        """Ids of all runs, oldest first."""
        return list(self._runs)

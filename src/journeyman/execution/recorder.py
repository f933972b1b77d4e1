"""Gives facts their numbers, writes them to the journal, then tells whoever listens. The only way to record a fact."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from journeyman.core.events import Fact, Signal, StepRestarted
from journeyman.core.protocols import Clock, Journal, Listener

logger = logging.getLogger("journeyman.recorder")


class Recorder:
    """One per run and process. Listeners hear a fact only after the journal has taken it, and in order."""

    def __init__(
        self, run_id: str, journal: Journal, *, clock: Clock, listeners: Sequence[Listener] = (), seq: int = 0
    ) -> None:
        self.run_id = run_id
        self._journal = journal
        self._clock = clock
        self._listeners = tuple(listeners)
        self._seq = seq
        self._published = seq
        self._early: dict[int, Fact] = {}

    async def record(self, fact: Fact, *, sync: bool = False) -> None:
        """Write one fact. With ``sync`` it survives power loss when this returns."""
        self._seq += 1
        fact.stamp(self.run_id, self._seq, self._clock.time())
        await self._journal.append(self.run_id, (fact,), sync=sync)
        # Siblings record at the same time, and a journal may take a later fact before an earlier one is synced.
        self._early[fact.seq or 0] = fact
        while self._published + 1 in self._early:
            self._published += 1
            self._tell(self._early.pop(self._published))

    def signal(self, event: Signal | StepRestarted) -> None:
        """Tell listeners something that is not worth keeping."""
        event.stamp(self.run_id, None, self._clock.time())
        self._tell(event)

    def _tell(self, event: Fact | Signal) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:
                logger.exception("a listener failed", extra={"run_id": self.run_id, "event": event.type})

"""Signals (deltas, progress) between processes: one works on a run, another shows it to somebody.

Facts reach every process through the journal. Signals are kept for a moment where the run is worked on, and sent
through the store only while somebody elsewhere reads them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from journeyman.core.errors import StoreError
from journeyman.core.events import CallProgress, Event, StepRestarted, TextDelta
from journeyman.core.storing import RunRow, SignalBatch

if TYPE_CHECKING:
    from journeyman.app.runner import Runner

logger = logging.getLogger("journeyman.app")

RELAY_SECONDS = 0.25
"""How often signals are sent while they are read elsewhere."""
READING_SECONDS = 30.0
"""How long a reader counts as one who reads after it has said so."""
KEPT_SECONDS = 3600.0
"""After which time signals are thrown away that nobody has: their process died."""
MOST_KEPT = 10_000
"""Signals after one fact. What is lost is in the facts that follow."""


class Outbox:
    """The signals of one run since its latest fact."""

    __slots__ = ("_after", "_events", "_number", "_sent")

    def __init__(self) -> None:
        self._after = 0
        self._events: list[Event] = []
        self._sent = 0
        self._number = 0

    def hear(self, event: Event) -> None:
        if event.seq is not None:
            # The fact says all that the signals before it did.
            self._after = event.seq
            if self._events:
                self._events, self._sent, self._number = [], 0, 0
        elif len(self._events) < MOST_KEPT:
            self._events.append(event)

    def take(self, run_id: str, *, now: float) -> SignalBatch | None:
        """What was not sent yet."""
        new = self._events[self._sent :]
        if not new:
            return None
        self._sent, self._number = len(self._events), self._number + 1
        content = _signals().dump_json(_joined(new)).decode()
        return SignalBatch(run_id=run_id, after_seq=self._after, number=self._number, written_at=now, content=content)


async def send_signals(runner: Runner) -> None:
    """Send the signals of the runs worked on here to the processes that show them, for as long as this one lives."""
    while True:
        await asyncio.sleep(RELAY_SECONDS)
        if not runner.busy:
            continue
        try:
            now = runner.clock.time()
            read = {run_id: runner.outbox(run_id) for run_id in await runner.store.signals.readers(now=now)}
            taken = (outbox.take(run_id, now=now) for run_id, outbox in read.items() if outbox is not None)
            if batches := [batch for batch in taken if batch is not None]:
                await runner.store.signals.put(batches)
        except StoreError as error:
            logger.debug("signals were lost: %s", error)  # facts are not
        except Exception:
            logger.exception("sending signals failed; it goes on")


class Inbox:
    """The signals of a run that another process works on."""

    def __init__(self, runner: Runner, run_id: str, *, after: int) -> None:
        self._runner = runner
        self._run_id = run_id
        self._latest = (after, 0)
        self._said_until = 0.0

    async def read(self, row: RunRow, after: int) -> list[tuple[int, Event]]:
        """What has come since, each with the number of the fact before it; nothing of before the fact ``after``."""
        runner = self._runner
        if row.owner is None or row.owner == runner.factory.owner:
            return []
        now = runner.clock.time()
        if now > self._said_until - READING_SECONDS / 2:
            self._said_until = now + READING_SECONDS
            await runner.store.signals.read_until(self._run_id, self._said_until)
        self._latest = max(self._latest, (after, 0))
        found: list[tuple[int, Event]] = []
        for batch in await runner.store.signals.after(self._run_id, *self._latest):
            self._latest = (batch.after_seq, batch.number)
            found += [(batch.after_seq, event) for event in _read(batch.content)]
        return found


def _joined(events: Sequence[Event]) -> list[Event]:
    """The same, with the pieces of one text put together."""
    joined: list[Event] = []
    pieces: list[str] = []
    for number, event in enumerate(events):
        following = events[number + 1] if number + 1 < len(events) else None
        if not isinstance(event, TextDelta):
            joined.append(event)
            continue
        pieces.append(event.text)
        if not isinstance(following, TextDelta) or following.iteration != event.iteration:
            joined.append(event.model_copy(update={"text": "".join(pieces)}))
            pieces = []
    return joined


def _read(content: str) -> list[Event]:
    try:
        return list(_signals().validate_json(content, extra="ignore"))
    except ValidationError:  # of a newer version: whoever watches gets the facts
        return []


@cache
def _signals() -> TypeAdapter[Any]:
    return TypeAdapter(list[TextDelta | CallProgress | StepRestarted])

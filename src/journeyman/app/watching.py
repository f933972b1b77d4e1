"""How a run is watched: who is told that it has got further, and the signals (deltas, progress) between its facts.

Facts reach every process through the journal. Signals are kept for a moment where the run is worked on, and sent
through the store only while somebody elsewhere reads them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from journeyman.core.errors import JourneymanError, StoreError
from journeyman.core.events import (
    CallFinished,
    CallProgress,
    Event,
    RunFailed,
    RunFinished,
    StepRestarted,
    TextDelta,
)
from journeyman.core.runs import AgentResponse
from journeyman.core.storing import RunRow, SignalBatch

if TYPE_CHECKING:
    from journeyman.app.handles import Handle
    from journeyman.app.runner import Runner

logger = logging.getLogger("journeyman.app")

RELAY_SECONDS = 0.25
"""How often signals are sent while they are read elsewhere."""
READING_SECONDS = 30.0
"""How long a reader counts as one who reads after it has said so."""
KEPT_SECONDS = 3600.0
"""After which time signals are thrown away that nobody has: their process died."""
MOST_KEPT = 10_000
"""Signals after one fact that wait to be sent. What is lost is in the facts that follow."""
MOST_SIGNALS = 1_000
"""Kept for a listener that is slow to take them. What is lost is in the facts that follow."""
MOST_WAITING = 32
"""Batches of events kept for a reader who is slow; then the runs are read no further until it takes some."""

Missed: TypeAlias = tuple[int, list[Event]]
"""What signals have told of the step under way, and the number of the fact before them."""


# --- here


class Watch:
    """For whoever looks at one run: when to look again, and what the run amounts to once it has ended here."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self.response: AgentResponse | None = None
        """Set when the run ends while it is watched. The store knows of the end by then."""

    def tell(self) -> None:
        self._news.set()

    def clear(self) -> None:
        self._news.clear()

    async def wait(self, seconds: float) -> None:
        """Until there is news, but no longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()


class Watches:
    """All of them, by run."""

    def __init__(self) -> None:
        self._by_run: dict[str, list[Watch]] = {}

    @contextlib.contextmanager
    def on(self, run_id: str) -> Iterator[Watch]:
        watch = Watch()
        watching = self._by_run.setdefault(run_id, [])
        watching.append(watch)
        try:
            yield watch
        finally:
            watching.remove(watch)
            if not watching:
                self._by_run.pop(run_id, None)

    def watched(self, run_id: str) -> bool:
        return run_id in self._by_run

    def hear(self, event: Event) -> None:
        """A fact about a run that is worked on here."""
        for watch in self._by_run.get(event.run_id, ()):
            if isinstance(event, RunFinished | RunFailed):
                watch.response = event.response
            watch.tell()

    def tell(self, run_id: str) -> None:
        """Something else happened to a run."""
        for watch in self._by_run.get(run_id, ()):
            watch.tell()


class UnderWay:
    """What signals have told of the step under way, kept where the run is worked on: who joins later reads a text
    from its beginning, and sees how far calls have come. And what of it was not sent to other processes yet."""

    __slots__ = ("_after", "_batches", "_progress", "_text", "_unsent")

    def __init__(self) -> None:
        self._after = 0
        self._text: list[TextDelta] = []
        self._progress: dict[str, CallProgress] = {}
        self._unsent: list[Event] = []
        self._batches = 0

    def hear(self, event: Event) -> None:
        if event.seq is not None:
            # The fact says all that the signals before it did.
            self._after = event.seq
            if self._unsent or self._batches:
                self._unsent, self._batches = [], 0
        elif len(self._unsent) < MOST_KEPT:
            self._unsent.append(event)
        if isinstance(event, TextDelta):
            self._text.append(event)
        elif isinstance(event, CallProgress):
            self._progress[event.call_id] = event
        else:
            if self._text:  # it is a fact now, or is begun anew
                self._text.clear()
            if self._progress and isinstance(event, CallFinished):
                self._progress.pop(event.record.call_id, None)

    def missed(self) -> Missed | None:
        """For somebody who joins now."""
        found = [*self._progress.values(), *_joined(self._text)]
        return (self._after, found) if found else None

    def unsent(self, run_id: str) -> SignalBatch | None:
        """For those who watch the run from another process, each once."""
        if not self._unsent:
            return None
        content = _batch().dump_json(_joined(self._unsent)).decode()
        self._unsent, self._batches = [], self._batches + 1
        return SignalBatch(run_id=run_id, after_seq=self._after, number=self._batches, content=content)


class Signals:
    """Signals that were heard and not handed on yet, each with the number of the fact before it."""

    def __init__(self, after: int) -> None:
        self._waiting: deque[tuple[int, Event]] = deque()
        self._heard = after
        self._lossy = False

    def begin(self, missed: Missed) -> None:
        """What was told before anybody listened here."""
        self._heard, events = missed
        self._waiting.extend((self._heard, event) for event in events)

    def take(self, event: Event) -> bool:
        """Whether it was kept. One that is lost takes the rest of its step with it: half a text helps nobody."""
        if event.seq is not None:
            self._heard, self._lossy = event.seq, False
            return False
        self._lossy = self._lossy or len(self._waiting) >= MOST_SIGNALS
        if not self._lossy:
            self._waiting.append((self._heard, event))
        return not self._lossy

    def add(self, seq: int, event: Event) -> None:
        """One that another process has sent, after the fact of this number."""
        self._waiting.append((seq, event))

    def up_to(self, seq: int) -> Iterator[Event]:
        """Those that came before the fact after this one."""
        while self._waiting and self._waiting[0][0] <= seq:
            yield self._waiting.popleft()[1]


# --- between processes


async def send_signals(runner: Runner) -> None:
    """Send the signals of the runs worked on here to the processes that show them, for as long as this one lives."""
    while True:
        await asyncio.sleep(RELAY_SECONDS)
        if not runner.busy:
            continue
        try:
            read = {run_id: runner.under_way(run_id) for run_id in await runner.store.signals.readers()}
            taken = (signals.unsent(run_id) for run_id, signals in read.items() if signals is not None)
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
        self._said_until = float("-inf")

    async def read(self, row: RunRow, after: int) -> list[tuple[int, Event]]:
        """What has come since, each with the number of the fact before it; nothing of before the fact ``after``."""
        runner = self._runner
        if row.owner is None or row.owner == runner.shared.owner:
            return []
        now = runner.clock.monotonic()
        if now > self._said_until - READING_SECONDS / 2:
            self._said_until = now + READING_SECONDS
            await runner.store.signals.read(self._run_id, seconds=READING_SECONDS)
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
        return list(_batch().validate_json(content, extra="ignore"))
    except ValidationError:  # of a newer version: whoever watches gets the facts
        return []


@cache
def _batch() -> TypeAdapter[Any]:
    return TypeAdapter(list[TextDelta | CallProgress | StepRestarted])


# --- several runs at once, for a client that has one connection for all of them


@dataclass(frozen=True, slots=True)
class News:
    """What one of the runs has to tell: events, or its end, or why it cannot go on here (which ends it too)."""

    run_id: str
    events: list[Event]
    ended: bool = False
    error: JourneymanError | None = None


async def follow(runs: Mapping[Handle, int]) -> AsyncGenerator[News, None]:
    """What happens in these runs after a fact of each, to the end of the last. Of each run all in order."""
    queue: asyncio.Queue[News | Exception] = asyncio.Queue(MOST_WAITING)

    async def read(handle: Handle, after: int) -> None:
        try:
            async with contextlib.aclosing(handle.batches(after=after)) as batches:
                async for batch in batches:
                    await queue.put(News(handle.run_id, batch))
            await queue.put(News(handle.run_id, [], ended=True))
        except JourneymanError as error:
            await queue.put(News(handle.run_id, [], ended=True, error=error))
        except Exception as error:  # a fault of ours must not leave the reader waiting for ever
            await queue.put(error)

    readers = [asyncio.create_task(read(handle, after)) for handle, after in runs.items()]
    try:
        left = len(readers)
        while left:
            news = await queue.get()
            if isinstance(news, Exception):
                raise news
            left -= news.ended
            yield news
    finally:
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)

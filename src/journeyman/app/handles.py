"""What a caller holds: a handle on one run, a session of several. Both are names; everything is in the store.

Also how a call whose outcome is unknown is settled, and how a run is watched: who is told that it has got further, and
the signals (deltas, progress) between its facts. Facts reach every process through the journal. Signals are kept for a
moment where the run is worked on, and sent through the store only while somebody elsewhere reads them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack, overload

from pydantic import TypeAdapter, ValidationError

from journeyman.agent.ending import response_of, typed
from journeyman.agent.state import RunState
from journeyman.app.owners import in_words
from journeyman.core.approvals import LONGEST_NOTE, ApprovalStatus, Label, LabelSource, Rating
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.errors import ConfigurationError, JourneymanError, SessionTakenError, StoreError
from journeyman.core.events import (
    CallFinished,
    CallProgress,
    CallResolved,
    Event,
    Fact,
    RunFailed,
    RunFinished,
    RunQueued,
    StepRestarted,
    TextDelta,
)
from journeyman.core.policy import ANY_PRINCIPAL, WRITE_ALL, PrincipalFilter
from journeyman.core.protocols import beside
from journeyman.core.runs import AgentResponse, Message, OutputT, RunStatus, Wait, Wanted
from journeyman.core.storing import RunRow, SignalBatch
from journeyman.execution.outcome import Refusal, whole
from journeyman.execution.results import UnserialisableResultError, measured

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent
    from journeyman.app.journeyman import Journeyman
    from journeyman.app.runner import Runner
    from journeyman.core.policy import Principal
    from journeyman.core.runs import Limits

logger = logging.getLogger("journeyman.app")

T = TypeVar("T")

RELAY_SECONDS = 0.25
"""How often signals are sent while they are read elsewhere."""
GATHER_SECONDS = 0.05
"""How long what happens gathers, after it was sent, where readers can be told of it."""
READING_SECONDS = 30.0
"""How long a reader counts as one who reads after it has said so."""
KEPT_SECONDS = 3600.0
"""After which time signals are thrown away that nobody has: their process died."""
MOST_KEPT = 10_000
"""Signals after one fact that wait to be sent. What is lost is in the facts that follow."""
MOST_SIGNALS = 1_000
"""Kept for a listener that is slow to take them. What is lost is in the facts that follow."""
MOST_BATCHES = 32
"""Batches of events kept for a reader who is slow; then the runs are read no further until it takes some."""
_POLL_SECONDS = 0.25
"""How often a run that another process works on is looked at."""
_TOLD_SECONDS = 2.0
"""The same where the database tells of it."""
_IDLE_SECONDS = 5.0
"""How often a run is looked at that waits for a person, or that is worked on here: of those one is told."""
_SECONDS_A_PLACE = 0.01
"""How much later a run is looked at for each that is begun before it: a thousand that wait must not keep the store busy
with questions how long."""
_AWAY_SECONDS = 1.0
"""How long to wait before a store is tried again that was away."""
_FACTS_AT_ONCE = 500
_TELL_SECONDS = 1.0
"""How often it is looked what a run waits for, for whoever wants to be told."""


# --- watching a run here


class Watch(asyncio.Event):
    """For whoever looks at one run: set when to look again, with the signals that were heard and not handed on yet.

    Signals are heard where somebody wants them ``after`` a fact; each is kept with the number of the fact before it.
    """

    def __init__(self, after: int | None) -> None:
        super().__init__()
        self.response: AgentResponse | None = None
        """Set when the run ends while it is watched. The store knows of the end by then."""
        self.newest: int | None = None
        """The number of the fact heard last; None where there may be others that were not heard."""
        self._after = after
        self._signals: deque[tuple[int, Event]] = deque()
        self._lossy = False

    async def wait_for(self, seconds: float) -> None:
        """Until there is news, but no longer than this."""
        try:
            async with asyncio.timeout(seconds):
                await self.wait()
        except TimeoutError:
            self.newest = None

    def hear(self, event: Event) -> None:
        """Something that happened to a run that is worked on here."""
        if event.seq is not None:
            self._lossy, self.newest = False, event.seq
            self._after = None if self._after is None else event.seq
            if type(event) is RunFinished or type(event) is RunFailed:
                self.response = event.response
        elif self._after is None:
            return
        else:
            # One that is lost takes the rest of its step with it: half a text helps nobody.
            self._lossy = self._lossy or len(self._signals) >= MOST_SIGNALS
            if self._lossy:
                return
            self._signals.append((self._after, event))
        self.set()

    def add(self, after: int, events: Iterable[Event]) -> None:
        """Signals that came after the fact of this number, and were told before or elsewhere."""
        self._after = max(self._after or 0, after)
        self._signals.extend((after, event) for event in events)

    def up_to(self, seq: int) -> Iterator[Event]:
        """Signals that came before the fact after this one."""
        while self._signals and self._signals[0][0] <= seq:
            yield self._signals.popleft()[1]


class Watches:
    """All of them, by run."""

    def __init__(self) -> None:
        self._by_run: dict[str, list[Watch]] = {}

    @contextlib.contextmanager
    def on(self, run_id: str, *, after: int | None = None) -> Iterator[Watch]:
        watch = Watch(after)
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
        for watch in self._by_run.get(event.run_id, ()):
            watch.hear(event)

    def tell(self, run_id: str) -> None:
        """Something happened to a run of which there is no event here."""
        for watch in self._by_run.get(run_id, ()):
            watch.set()


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
        if type(event) is TextDelta:
            self._text.append(event)
        elif type(event) is CallProgress:
            self._progress[event.call_id] = event
        else:
            if self._text:  # it is a fact now, or is begun anew
                self._text.clear()
            if self._progress and type(event) is CallFinished:
                self._progress.pop(event.record.call_id, None)

    def missed(self) -> tuple[int, list[Event]]:
        """For somebody who joins now, and the number of the fact before it."""
        return self._after, [*self._progress.values(), *_joined(self._text)]

    def unsent(self, run_id: str) -> SignalBatch | None:
        """For those who watch the run from another process, each once."""
        if not self._unsent:
            return None
        content = _batch().dump_json(_joined(self._unsent)).decode()
        self._unsent, self._batches = [], self._batches + 1
        return SignalBatch(run_id=run_id, after_seq=self._after, number=self._batches, content=content)


# --- between processes


async def send_signals(runner: Runner) -> None:
    """Send the signals of the runs worked on here to the processes that show them, for as long as this one lives.

    And tell them of facts, where the database can tell anybody of anything.
    """
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RELAY_SECONDS):
                await runner.news.wait()
        runner.news.clear()
        changed, runner.changed = runner.changed, set()
        if not (runner.busy or changed):
            continue
        try:
            read = {run_id: runner.under_way(run_id) for run_id in await runner.store.signals.readers()}
            taken = (signals.unsent(run_id) for run_id, signals in read.items() if signals is not None)
            batches = [batch for batch in taken if batch is not None]
            if batches or changed & read.keys():
                await runner.store.signals.put(batches, changed=changed & read.keys())
            await asyncio.sleep(GATHER_SECONDS)
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

    async def read(self, row: RunRow, after: int) -> list[tuple[int, list[Event]]]:
        """What has come since, each with the number of the fact before it; nothing of before the fact ``after``."""
        runner = self._runner
        if (row.owner is None and runner.queue is None) or row.owner == runner.shared.owner:
            return []
        await self.announce()
        self._latest = max(self._latest, (after, 0))
        batches: list[tuple[int, list[Event]]] = []
        for batch in await runner.store.signals.after(self._run_id, *self._latest):
            self._latest = (batch.after_seq, batch.number)
            batches.append((batch.after_seq, _read(batch.content)))
        return batches

    async def announce(self) -> None:
        """Say to whoever works on the run that it is watched from here."""
        now = self._runner.clock.monotonic()
        if now > self._said_until - READING_SECONDS / 2:
            self._said_until = now + READING_SECONDS
            await self._runner.store.signals.read(self._run_id, seconds=READING_SECONDS)


def _joined(events: Sequence[Event]) -> list[Event]:
    """The same, with the pieces of one text put together."""
    joined: list[Event] = []
    for iteration, pieces in groupby(
        events, key=lambda event: event.iteration if isinstance(event, TextDelta) else None
    ):
        together = list(pieces)
        if iteration is None:
            joined += together
        else:
            text = "".join(event.text for event in together if isinstance(event, TextDelta))
            joined.append(together[-1].model_copy(update={"text": text}))
    return joined


def _read(content: str) -> list[Event]:
    try:
        return list(_batch().validate_json(content, extra="ignore"))
    except ValidationError:  # of a newer version: whoever watches gets the facts
        return []


@cache
def _batch() -> TypeAdapter[Any]:
    return TypeAdapter(list[TextDelta | CallProgress | StepRestarted])


# --- one run


class Handle(Generic[OutputT]):
    """One run of the store, wherever it is worked on."""

    def __init__(self, runner: Runner, run_id: str, *, agent: Agent | None = None) -> None:
        self._runner = runner
        self.run_id = run_id
        self._agent = agent
        """Who was asked, where this process did: a store knows nothing of the type of its output."""

    def __repr__(self) -> str:
        return f"<Handle {self.run_id!r}>"

    async def status(self) -> RunStatus:
        """Where the run stands now."""
        return (await self._row()).status

    async def _row(self) -> RunRow:
        row = await self._runner.store.runs.get(self.run_id)
        if row is None:
            raise ConfigurationError(f"there is no run {self.run_id!r}: it was never started, or purged since")
        return row

    async def wait(self, *, told: Callable[[Sequence[Wait]], None] | None = None) -> RunStatus:
        """Return when the run has ended or needs a person.

        Meanwhile ``told`` is called with what the run ``waits`` for, whenever that has changed.
        """
        async with beside(*([] if told is None else [self._tell(told)])):
            return (await self._rest())[0]

    async def _tell(self, told: Callable[[Sequence[Wait]], None]) -> None:
        before: Sequence[Wait] = ()
        while True:
            with contextlib.suppress(StoreError):
                # The time up to which a process is waited for moves whenever it is heard of.
                now = await self.waits()
                if [wait.whom for wait in now] != [wait.whom for wait in before]:
                    told(now)
                before = now
            await asyncio.sleep(_TELL_SECONDS)

    async def waits(self) -> Sequence[Wait]:
        """What the run waits for, for whom, and until when; nothing where it is worked on, or has ended."""
        runner, row = self._runner, await self._row()
        match row.status:
            case RunStatus.AWAITING_APPROVAL:
                asked = await runner.store.approvals.list(run_id=row.id, status=ApprovalStatus.PENDING)
                about = (
                    (f"a decision on {item.tool_name!r} ({item.id})", item.expires_at.timestamp()) for item in asked
                )
                return [Wait(reason="approval", whom="a person", until=until, text=text) for text, until in about]
            case RunStatus.AWAITING_RESOLUTION:
                told = (
                    f"a word on what became of {item.tool_name!r} ({item.call_id})" for item in await self.unknown()
                )
                return [Wait(reason="resolution", whom="a person", text=text) for text in told]
            case RunStatus.STUCK:
                return [Wait(reason="stuck", whom="a person", text="a word that it may be tried again")]
            case RunStatus.QUEUED if (ahead := await runner.store.runs.ahead_of(row.id)) is not None:
                text = f"its end; it comes first in their session, and is {ahead.status.value.replace('_', ' ')}"
                return [Wait(reason="turn", whom=f"run {ahead.id}", text=text)]
            case RunStatus.QUEUED if row.owner is None:
                place = await self.position()
                text = "a free place" if place is None else f"a free place, as number {place} of those that wait"
                return [Wait(reason="place", whom="a process", text=text)]
            case RunStatus.RUNNING if row.owner is None and row.trouble is not None:
                until = row.retry_at or None
                return [Wait(reason="retry", whom="a process", until=until, text=f"another try ({row.trouble})")]
            case RunStatus.RUNNING if row.owner is None:
                return [Wait(reason="process", whom="a process", text="one that takes it up")]
            case RunStatus.RUNNING if row.epoch > 1:
                return await self._waits_for_calls()
        return ()

    async def _waits_for_calls(self) -> Sequence[Wait]:
        """Calls that another process has begun, and whose outcome it alone can tell."""
        turn, waits = (await self._state()).turn, list[Wait]()
        if turn is None:
            return waits
        for call in turn.calls:
            past = turn.pasts.get(call.id)
            if past is None or past.started is None or past.unknown is not None or call.id in turn.records:
                continue
            for awaited in await self._runner.claims.awaited(past.started):
                until = await self._runner.store.now() + awaited.seconds_left
                text = f"its report on {call.tool_name!r} ({call.id}), which it began; unknown if it stays silent"
                waits.append(Wait(reason="call", whom=in_words(awaited.owner), until=until, text=text))
        return waits

    async def _rest(self) -> tuple[RunStatus, AgentResponse | None]:
        """Where the run came to rest, and what it amounts to if it ended here just now."""
        inbox = Inbox(self._runner, self.run_id, after=0)
        with self._runner.watches.on(self.run_id) as watch:
            while True:
                if self._runner.queue is not None:
                    await inbox.announce()
                await self._runner.at_rest(self.run_id)
                if (trouble := self._runner.trouble(self.run_id)) is not None:
                    raise trouble
                if watch.response is not None:
                    return watch.response.status, watch.response
                watch.clear()
                row = await self._row()
                if (trouble := self._runner.trouble(self.run_id, row)) is not None:
                    raise trouble
                status = row.status
                if status.ended or (status.waiting and await self._waits(row)):
                    return status, None
                await watch.wait_for(self._poll_seconds)

    @property
    def _poll_seconds(self) -> float:
        queue = self._runner.queue
        return _TOLD_SECONDS if queue is not None and queue.listening else _POLL_SECONDS

    async def _waits(self, row: RunRow) -> bool:
        """Whether a waiting run has not been given what it waits for, nor taken up by somebody who knows of it."""
        if self._runner.claims.held(row) or [run async for run, _ in self._runner.due([self.run_id])]:
            return False
        return (await self._row()).epoch == row.epoch  # else it was taken up since the row was read

    async def result(self) -> AgentResponse[OutputT]:
        """Wait as ``wait()`` does, then give what the run amounts to, whatever its status."""
        status, ended = await self._rest()
        return self._typed(
            ended or await self._labelled(await response_of(self.run_id, await self._state(), status=status))
        )

    async def so_far(self) -> AgentResponse[OutputT] | None:
        """What the run amounts to as it stands, without waiting; None before it has begun."""
        status, state = await self.status(), await self._state()
        if state.task is None:
            return None
        return self._typed(await self._labelled(await response_of(self.run_id, state, status=status)))

    async def _labelled(self, given: AgentResponse) -> AgentResponse:
        """With what people have said about the run since it ended."""
        labels = await self.labels() if given.status.ended else ()
        return given.with_labels(labels) if labels else given

    async def labels(self) -> Sequence[Label]:
        """What people and the verifier say about the run, the most reliable first."""
        return await self._runner.store.labels.of(self.run_id)

    async def rate(self, rating: Rating, *, by: str | None = None, note: str = "") -> Label:
        """Say whether the run did what was asked. A second rating by the same person replaces the first.

        Raises ConfigurationError for a run that has not ended.
        """
        if rating not in ("good", "bad"):
            raise ConfigurationError(f"a run is rated 'good' or 'bad', not {rating!r}")
        if len(note) > LONGEST_NOTE:
            raise ConfigurationError(f"the note has {len(note):,} characters, at most {LONGEST_NOTE:,} are kept")
        if not (status := await self.status()).ended:
            raise ConfigurationError(f"run {self.run_id!r} is {status.value}: it can be rated when it has ended")
        label = Label(source=LabelSource.RATING, value=rating, by=by, note=note, time=self._runner.clock.time())
        if await self._runner.store.labels.put(self.run_id, label) and self._runner.rated is not None:
            await self._runner.rated(self.run_id, label)
        return label

    def _typed(self, given: AgentResponse) -> AgentResponse[OutputT]:
        return given if self._agent is None else typed(given, self._agent)

    async def unknown(self) -> tuple[ToolCallRecord, ...]:
        """Calls that were under way when their process died, and whose outcome a person must ``resolve``."""
        turn = (await self._state()).turn
        pasts = () if turn is None else turn.pasts.values()
        return tuple(past.unknown for past in pasts if past.unknown is not None)

    async def whole(self, record: ToolCallRecord) -> Any:
        """The result of one of the run's calls, also where it was too large for its record."""
        return await whole(record, self.run_id, self._runner.store.artifacts)

    async def _state(self) -> RunState:
        state, _ = await self._runner.shared.fold(self.run_id)
        return state

    async def events(self, *, after: int = 0) -> AsyncIterator[Event]:
        """Facts from the store, in order and each once, and signals while the run is worked on here; to the end.

        Raises what keeps the run from going on here, if anything does.
        """
        async with contextlib.aclosing(self.batches(after=after)) as batches:
            async for batch in batches:
                for event in batch:
                    yield event

    async def batches(self, *, after: int = 0) -> AsyncGenerator[list[Event], None]:
        """The same events, together as they are found: for whoever sends them on at a price for each time."""
        inbox, place = Inbox(self._runner, self.run_id, after=after), None
        with self._runner.watches.on(self.run_id, after=after) as watch:
            self._runner.stream_text(self.run_id)
            if (under_way := self._runner.under_way(self.run_id)) is not None:
                watch.add(*under_way.missed())
            while True:
                watch.clear()
                here = self._runner.at_work(self.run_id)
                try:
                    newest = watch.newest
                    if newest is None or not here:  # else every fact was heard, and nothing else is asked of the row
                        row = await self._row()
                        newest = row.last_seq
                    for seq, signals in () if here else await inbox.read(row, after):
                        watch.add(seq, signals)
                    facts: Sequence[Fact] = ()
                    if newest > after:  # a slow reader holds no more than these in memory
                        facts = await self._runner.store.runs.facts(self.run_id, after=after, limit=_FACTS_AT_ONCE)
                    position = None if here or row.status is not RunStatus.QUEUED else await self.position()
                except StoreError:
                    # Whoever follows a run is not told of a database that is away for a while; it only takes longer.
                    await watch.wait_for(_AWAY_SECONDS)
                    watch.newest = None
                    continue
                batch: list[Event] = []
                if position is not None and position != place:
                    queued = RunQueued(position=position)
                    queued.stamp(self.run_id, None, self._runner.clock.time())
                    batch.append(queued)
                    place = position
                for fact in facts:
                    # Each signal in its place: after the fact that came before it.
                    batch += [*watch.up_to(after), fact]
                    after = fact.seq or after
                batch += watch.up_to(after)
                if batch:
                    yield batch
                if facts:
                    continue
                if row.status.ended and not here:
                    return
                if not here and (trouble := self._runner.trouble(self.run_id, row)) is not None:
                    raise trouble
                if here or row.status.waiting:
                    await watch.wait_for(_IDLE_SECONDS)
                else:
                    await watch.wait_for(self._poll_seconds + min(_IDLE_SECONDS, (position or 0) * _SECONDS_A_PLACE))

    async def position(self) -> int | None:
        """Its place among the runs that wait to be begun, 1 being the next; None once it has begun."""
        return await self._runner.position(self.run_id)

    def stream_text(self) -> None:
        """Have the model stream its text before anybody listens. Who joins later gets the text so far first."""
        self._runner.stream_text(self.run_id)

    async def cancel(self) -> None:
        """Cancel the run; what is under way is interrupted and recorded as such."""
        await self._runner.cancel(self.run_id)

    async def resolve(
        self, call_id: str, action: Literal["rerun", "done", "skip"], *, result: Any = None, by: str | None = None
    ) -> None:
        """Settle a call whose outcome is unknown: run it again, take it as done with a result, or leave it out."""
        if action not in ("rerun", "done", "skip"):
            raise ConfigurationError(f"an unknown call is settled by 'rerun', 'done' or 'skip', not by {action!r}")
        try:
            value, _ = measured(result)
        except UnserialisableResultError as error:
            raise ConfigurationError(f"the result for call {call_id!r} cannot be kept: {error}") from error
        # Checked before the run is claimed: a mistyped id leaves it as it is.
        if (await self.status()).ended:
            raise ConfigurationError(f"run {self.run_id!r} has ended; there is nothing left to settle")
        unknown = [record.call_id for record in await self.unknown()]
        if call_id not in unknown:
            known = ", ".join(map(repr, unknown)) or "none"
            where = f"call {call_id!r} of run {self.run_id!r}"
            raise ConfigurationError(f"{where} has no unknown outcome (those that do: {known})")
        # The decision is recorded, then the run goes on.
        async with self._runner.held(self.run_id) as run:
            if run is None:
                raise ConfigurationError(
                    f"run {self.run_id!r} cannot be settled now: it has ended, or is being worked on"
                )
            past = None if run.state.turn is None else run.state.turn.pasts.get(call_id)
            if past is None or past.unknown is None:
                raise ConfigurationError(
                    f"call {call_id!r} of run {self.run_id!r} was settled by somebody else meanwhile"
                )
            facts: list[Fact] = [CallResolved(call_id=call_id, action=action, by=by, result=value)]
            if action != "rerun":  # together: a decision without its effect would be asked for again
                left_out = Refusal.skipped(past.unknown.tool_name)
                effect = {"status": left_out.status, "error": left_out.error}
                if action == "done":
                    effect = {"status": CallStatus.SUCCESS, "result": value, "error": None}
                facts.append(CallFinished(record=past.unknown.model_copy(update=effect)))
            await run.recorder.record(*facts, sync=True)
        self._runner.wake(self.run_id)


class SendOptions(TypedDict, total=False):
    """What a session's ``send`` takes besides the agent, the task and the output."""

    principal: Principal | None
    limits: Limits | None
    priority: int
    run_id: str | None


class Session:
    """A stored conversation. It belongs to the principal who says something first."""

    def __init__(self, app: Journeyman, session_id: str) -> None:
        self._app = app
        self.id = session_id

    @overload
    async def send(
        self, agent: Agent, task: Wanted, *, output: type[T], **options: Unpack[SendOptions]
    ) -> Handle[T]: ...

    @overload
    async def send(
        self, agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[SendOptions]
    ) -> Handle: ...

    async def send(self, agent: Agent, task: Wanted, *, output: Any = None, **options: Unpack[SendOptions]) -> Handle:
        """Say something. The run begins when the session's earlier ones have ended, with all that was said by then.

        ``output`` as for ``start``. A ``run_id`` of the caller's makes saying it twice harmless.
        """
        return await self._app.start(agent, task, output=output, session_id=self.id, **options)

    async def messages(
        self, *, last: int | None = None, principal_id: PrincipalFilter = ANY_PRINCIPAL
    ) -> Sequence[Message]:
        """What was said; with a ``principal_id``, only where the session is theirs."""
        return await self._app.store.conversations.messages(self.id, last=last, principal_id=principal_id)

    async def must_be_open_to(self, principal: Principal | None) -> None:
        """Raise SessionTakenError where another principal has begun it, as ``send`` would."""
        row = await self._app.store.conversations.get(self.id)
        own_id = None if principal is None else principal.id
        if row is not None and row.principal_id != own_id and (principal is None or not principal.may(WRITE_ALL)):
            raise SessionTakenError(self.id)


# --- several runs at once, for a client that has one connection for all of them


@dataclass(frozen=True, slots=True)
class News:
    """What one of the runs has to tell: events, or its end, or why it cannot go on here (which ends it too)."""

    run_id: str
    events: list[Event]
    ended: bool = False
    error: JourneymanError | None = None


async def news_of(runs: Mapping[Handle, int]) -> AsyncGenerator[News, None]:
    """What happens in these runs after a fact of each, to the end of the last. Of each run all in order."""
    queue: asyncio.Queue[News | Exception] = asyncio.Queue(MOST_BATCHES)

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

    async with beside(*(read(handle, after) for handle, after in runs.items())) as readers:
        left = len(readers)
        while left:
            news = await queue.get()
            if isinstance(news, Exception):
                raise news
            left -= news.ended
            yield news

"""The journal of one run for the holder of one epoch: gathers facts, writes them behind the fence, keeps their order.

Also what a fact changes beside the journal, in the same transaction: calls, audit, approvals, gaps, the conversation.
And how runs wait for a database that is unreachable, full or locked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import JournalConflictError, StoreClosedError, StoreError
from journeyman.core.events import (
    ApprovalDecided,
    CallFinished,
    CallResolved,
    CallsPlanned,
    CallStarted,
    Fact,
    MessageReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    RunSuspended,
    StepFinished,
    read_fact,
)
from journeyman.core.protocols import Clock, Journal
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.stores.approvals import put_label, supersede, withdraw
from journeyman.stores.audit import add_audit
from journeyman.stores.connection import EVERY, Connection, Row, json_text, storable
from journeyman.stores.conversations import add_messages, read_history, touch_session
from journeyman.stores.database import RUN_LEASES, Database, pauses, settle_future
from journeyman.stores.gaps import add_gap
from journeyman.stores.processes import drop_reports

if TYPE_CHECKING:
    from journeyman.stores.runs import SqlRuns

logger = logging.getLogger("journeyman.store")

T = TypeVar("T")


def status_after(fact: Fact) -> RunStatus:
    """Where a run stands whose latest fact this is."""
    match fact:
        case RunSuspended() | RunFinished():
            return fact.status
        case RunFailed():
            return RunStatus.FAILED
        case _:
            return RunStatus.RUNNING


def audited(fact: Fact, *, effect: bool) -> tuple[str, str, dict[str, Any]] | None:
    """What the audit says of a call's fact: the kind of its row, the call, and details. None for most facts."""
    match fact:
        case CallStarted() if effect:
            details = {"tool": fact.tool_name, "execution_id": fact.execution_id, "attempt": fact.attempt}
            return "call_started", fact.call_id, details
        case CallFinished(record=record) if record.status is CallStatus.DENIED:
            details = {"tool": record.tool_name, "execution_id": record.execution_id}
            if record.error is not None:
                details["code"] = record.error.code
            if record.flow is not None:
                details["flow"] = record.flow.decision
            return "call_refused", record.call_id, details
        case CallFinished(record=record) if record.flow is not None:
            return "flow_decided", record.call_id, {"tool": record.tool_name, "flow": record.flow.decision}
        case _:
            return None


def project(connection: Connection, run_id: str, fact: Fact, *, effect: bool = False) -> None:
    """Do what follows from a fact that has just been written; ``effect``: it is the start of a call that has one."""
    if (noted := audited(fact, effect=effect)) is not None:
        # Before the effect: nothing is done that is not in the audit.
        kind, call_id, details = noted
        [(actor,)] = connection.query("SELECT principal_id FROM runs WHERE id = ?", run_id)
        add_audit(
            connection, kind, actor=actor, run_id=run_id, subject=call_id, details=details, now=fact.time, often=effect
        )
    match fact:
        case CallFinished(record=record):
            _log_call(connection, run_id, record)
        case CallResolved():
            drop_reports(connection, run_id, fact.call_id)
            about: dict[str, Any] = {"actor": fact.by, "details": {"action": fact.action}, "now": fact.time}
            add_audit(connection, "resolved", run_id=run_id, subject=fact.call_id, **about)
        case ApprovalDecided(status=ApprovalStatus.SUPERSEDED):
            supersede(connection, fact.approval_id)
        case ApprovalDecided():
            connection.execute("UPDATE approvals SET consumed = 1 WHERE id = ?", fact.approval_id)
        case RunStarted(history=history) if history:
            connection.execute("UPDATE runs SET history_length = ? WHERE id = ?", len(history), run_id)
        case RunSuspended():
            # Who wanted the run cancelled before this transaction is found here, since the fence has locked the row;
            # who does after it finds the run waiting. So nobody is asked about a run that is to be cancelled.
            wanted = connection.query(
                f"UPDATE runs SET status = '{RunStatus.RUNNING.value}' "
                "WHERE id = ? AND status = ? AND cancel_wanted = 1 RETURNING id",
                *(run_id, fact.status.value),
            )
            withdraw(connection, run_id, keep=() if wanted else fact.waiting_for)
        case RunFinished() | RunFailed():
            principal_id, cancelled_by, session_id, history = _keep_end(connection, run_id, fact.response)
            for label in fact.labels:
                put_label(connection, run_id, label)
            if status_after(fact) is RunStatus.CANCELLED:
                add_audit(connection, "run_cancelled", actor=cancelled_by, run_id=run_id, subject=run_id, now=fact.time)
            if isinstance(fact, RunFinished) and fact.gap is not None:
                add_gap(connection, fact.gap, now=fact.time, run_id=run_id, principal_id=principal_id)
            if session_id is not None and fact.response is not None:
                touch_session(connection, session_id, principal_id=principal_id, now=fact.time, anybodys=True)
                add_messages(connection, session_id, run_id, fact.response.messages[history:])
            if connection.query("SELECT 1 FROM approvals WHERE run_id = ? LIMIT 1", run_id):
                withdraw(connection, run_id)
        case _:
            pass


def _log_call(connection: Connection, run_id: str, record: ToolCallRecord) -> None:
    """Note how a call ended; a call whose outcome was unknown gets its later one."""
    call = {name: getattr(record, name) for name in ("execution_id", "call_id", "tool_name")}
    outcome = {
        "status": record.status.value,
        "attempts": record.attempts,
        "cached": int(record.cached),
        "error_code": None if record.error is None else record.error.code,
        "started_at": record.start_time.timestamp(),
        "duration_ms": record.duration_ms,
    }
    row = {**call, "run_id": run_id, "risk": None if record.risk is None else record.risk.value, **outcome}
    connection.put("calls", row, key="execution_id", replaced=outcome)


def _keep_end(connection: Connection, run_id: str, response: AgentResponse | None) -> Row:
    """Give a run that ends in this transaction its place among all ends, and its row what it came to.

    The update locks the counter until the commit, so numbers are visible in order: a reader that has seen one has seen
    all before it. Returns whose the run was, who has cancelled it, its session, and how many messages it began with.
    """
    [(number,)] = connection.query("UPDATE run_ends SET number = number + 1 WHERE id = 1 RETURNING number")
    kept: dict[str, Any] = {"end_number": number}
    if response is not None:
        tokens = {"input_tokens": response.usage.input_tokens, "output_tokens": response.usage.output_tokens}
        kept |= {"outcome": response.outcome, "model": storable(response.model), **tokens}
    settings = ", ".join(f"{name} = ?" for name in kept)
    sql = f"UPDATE runs SET {settings} WHERE id = ? RETURNING principal_id, cancelled_by, session_id, history_length"
    [row] = connection.query(sql, *kept.values(), run_id)
    return row


AWAITED = frozenset((CallStarted, CallResolved, RunSuspended, RunFinished, RunFailed))
"""Facts that are committed when ``append`` returns, whether synced or not.

Nothing starts before the fence has let its ``started`` pass; and whoever is told that a run waits or has ended finds
it so in the database.
"""
_PLAIN = frozenset((MessageReceived, CallsPlanned, StepFinished))
"""Facts of every step from which nothing follows: a pattern that does not match costs as much as writing them."""
ROWS_AT_ONCE = 500


@dataclass(slots=True)  # not frozen, which takes three times as long to make
class Entry:
    """A fact on its way into the database."""

    seq: int
    fact: Fact
    body: str
    effect: bool = False
    """Whether it is the start of a call that has effects: nobody else waits for a start to be synced."""


class _GapError(JournalConflictError):
    """An earlier fact is not there."""


class SqlJournal:
    """Behind ``SqlRuns.journal``.

    A fact that is not awaited is accepted at once and committed in a moment. Where that fails, it is kept and tried
    again with the next append, which then waits and raises StoreError if it fails as well. The facts of an append that
    raised StoreError were not accepted: append them again. Appending what is there already, word by word, does no
    harm, so that a commit of uncertain fate can be repeated.
    """

    def __init__(self, database: Database, run_id: str, epoch: int) -> None:
        self._database = database
        self._run_id = run_id
        self._epoch = epoch
        self._accepted: dict[int, Entry] = {}
        self._effects: set[str] = set()
        """Executions whose start was synced: their ends are awaited, lest they are forgotten."""
        self._running = False
        self._failing = False
        self._conflict: JournalConflictError | None = None

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        self._check_run(run_id)
        if self._conflict is not None:
            raise JournalConflictError(*self._conflict.args)
        entries: dict[int, Entry] = {}
        awaited = sync or self._failing
        for fact in facts:
            seq = fact.seq or 0
            effect = sync and type(fact) is CallStarted
            entries[seq] = Entry(seq, fact, json_text(fact), effect)
            if type(fact) is CallStarted and effect:
                self._effects.add(fact.execution_id)
            elif type(fact) is CallFinished:
                awaited = awaited or fact.record.execution_id in self._effects
            awaited = awaited or type(fact) in AWAITED
        if not awaited:
            self._accept(entries)
            self._database.soon(self.submit_pending)
            return
        try:
            with self._database.observed("append"):
                await self._write(entries, sync=sync)
        except _GapError as gap:
            if self._failing:
                raise StoreError(f"run {run_id!r}: facts before {min(entries)} could not be written yet") from gap
            raise

    async def read(self, run_id: str, *, after: int = 0) -> Sequence[Fact]:
        self._check_run(run_id)
        return await self._database.read(partial(read_facts, run_id=run_id, after=after))

    def submit_pending(self) -> asyncio.Future[None] | None:
        """Queue the accepted facts."""
        return self._write({}, sync=False) if self._accepted else None

    def _accept(self, entries: dict[int, Entry]) -> None:
        for seq, entry in entries.items():
            if self._accepted.setdefault(seq, entry).body != entry.body:
                raise JournalConflictError(f"run {self._run_id!r}: fact {seq} was appended before, with other content")

    def _write(self, entries: dict[int, Entry], *, sync: bool) -> asyncio.Future[None]:
        self._accept(entries)
        together = [self._accepted[seq] for seq in sorted(self._accepted)]
        self._accepted = {}
        status = status_after(together[-1].fact)
        new_status = None if self._running and status is RunStatus.RUNNING else status
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(result: None, error: BaseException | None) -> None:
            if error is None:
                self._failing = False
                self._running = status is RunStatus.RUNNING
            elif isinstance(error, StoreError) or (isinstance(error, _GapError) and self._failing):
                self._failing = True
                # Whoever waits will append again what it was told has failed. If nobody does any longer, it is on us.
                dropped = {} if written.cancelled() else entries
                self._accepted.update((entry.seq, entry) for entry in together if entry.seq not in dropped)
            elif isinstance(error, JournalConflictError):
                self._conflict = error
            settle_future(written, result, error)

        self._database.submit(
            partial(write_facts, run_id=self._run_id, epoch=self._epoch, entries=together, status=new_status),
            sync=sync,
            done=settle,
        )
        return written

    def _check_run(self, run_id: str) -> None:
        if run_id != self._run_id:
            raise ValueError(f"this is the journal of run {self._run_id!r}, not of {run_id!r}")


def read_facts(connection: Connection, *, run_id: str, after: int = 0, limit: int = EVERY) -> Sequence[Fact]:
    sql = "SELECT seq, body FROM facts WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
    rows = connection.query(sql, run_id, after, limit)
    if not rows or rows[0][0] > after + 1:  # the rest may be the past of another run, which this one shares
        parents = connection.query(
            "SELECT parent_id, parent_seq FROM runs WHERE id = ? AND parent_seq > ?", run_id, after
        )
        for parent_id, shared in parents:
            past = read_facts(connection, run_id=parent_id, after=after, limit=min(limit, shared - after))
            return (*past, *(read_fact(body) for _, body in rows[: max(0, limit - len(past))]))
    facts = [read_fact(body) for _, body in rows]
    if facts and isinstance(facts[0], RunStarted) and (span := facts[0].session_history) is not None:
        facts[0] = facts[0].model_copy(update={"history": read_history(connection, span)})
    return tuple(facts)


def write_facts(
    connection: Connection, *, run_id: str, epoch: int, entries: Sequence[Entry], status: RunStatus | None
) -> None:
    """Pass the fence, write the facts, and do what follows from them. ``status`` is None where it stays."""
    first, last = entries[0].seq, entries[-1].seq
    if last - first + 1 != len(entries):
        raise _GapError(f"run {run_id!r}: between facts {first} and {last} some are missing")
    if not _advance(connection, run_id, epoch, entries, status):
        entries = _not_yet_written(connection, run_id, epoch, entries)
        if not entries:
            return
        _advance(connection, run_id, epoch, entries, status)
    rows = [(run_id, entry.seq, entry.fact.type, entry.body) for entry in entries]
    connection.insert("facts (run_id, seq, type, body)", rows, at_once=ROWS_AT_ONCE)
    for entry in entries:
        if type(entry.fact) not in _PLAIN:
            project(connection, run_id, entry.fact, effect=entry.effect)


def _advance(
    connection: Connection, run_id: str, epoch: int, entries: Sequence[Entry], status: RunStatus | None
) -> bool:
    """The fence: a write that happens only for the holder of the current epoch, and only after the fact before.

    Leases first, as whoever claims a run has them: two that wait for each other's rows would wait for ever.
    """
    last = entries[-1]
    changes, values = "last_seq = ?, updated_at = ?", [last.seq, last.fact.time]
    if status is not None:
        changes += f", status = '{status.value}'"
        if status.ended:
            # Not when its process takes it to have ended: how long it is kept is the same for all.
            changes += ", ended_at = @now"
            RUN_LEASES.end(connection, run_id, epoch=epoch)
        elif status.waiting:
            RUN_LEASES.release(connection, run_id, epoch=epoch)
    sql = f"UPDATE runs SET {changes} WHERE id = ? AND epoch = ? AND last_seq = ?"
    return connection.execute(sql, *values, run_id, epoch, entries[0].seq - 1) == 1


def _not_yet_written(connection: Connection, run_id: str, epoch: int, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Why the fence refused; where a commit of uncertain fate did happen, what is left to write."""
    rows = connection.query("SELECT epoch, last_seq FROM runs WHERE id = ?", run_id)
    if not rows:
        raise JournalConflictError(f"run {run_id!r} is not in this database: create it before writing its facts")
    current, last = rows[0]
    first = entries[0].seq
    if current != epoch:
        raise JournalConflictError(
            f"run {run_id!r}: fact {first} was refused, since epoch {epoch} is over and {current} has begun: "
            "another process has taken the run over"
        )
    if last < first - 1:
        raise _GapError(f"run {run_id!r}: fact {first} cannot be written, the next is {last + 1}")
    sql = "SELECT seq, body FROM facts WHERE run_id = ? AND seq BETWEEN ? AND ?"
    known: dict[int, str] = dict(connection.query(sql, run_id, first, last))
    for entry in entries:
        if entry.seq <= last and known.get(entry.seq) != entry.body:
            raise JournalConflictError(
                f"run {run_id!r}: fact {entry.seq} is there already, with other content; the next is {last + 1}"
            )
    return [entry for entry in entries if entry.seq > last]


# --- waiting for a database that is unreachable, full or locked: runs pause where they are and lose nothing

FIRST_RUN_PAUSE, LONGEST_RUN_PAUSE = 0.2, 5.0


async def retry_store_faults(work: Callable[[], Awaitable[T]], *, clock: Clock, run_id: str = "") -> T:
    """Do it, again and again, until the store takes it."""
    for pause in pauses(FIRST_RUN_PAUSE, LONGEST_RUN_PAUSE):
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

    def __init__(self, run_id: str, runs: SqlRuns, *, epoch: int, clock: Clock) -> None:
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
            if type(fact) is CallStarted:
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
            if type(fact) is CallFinished:
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


class _Retrying:
    def __init__(self, part: Any, clock: Clock, run_id: str) -> None:
        self._part, self._clock, self._run_id = part, clock, run_id

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._part, name)

        async def retried(*values: Any, **named: Any) -> Any:
            return await retry_store_faults(partial(method, *values, **named), clock=self._clock, run_id=self._run_id)

        return retried


def retrying(part: T, *, clock: Clock, run_id: str = "") -> T:
    """The same part of a store (a gate, artifacts, limits), but each of its methods waits for its database."""
    return cast("T", _Retrying(part, clock, run_id))

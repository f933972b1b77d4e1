"""A line to a database: one connection in one thread, made when needed and again after a fault.

Aggregates are plain functions over a ``Connection``, written once in SQL that SQLite and PostgreSQL both understand:
JSON as TEXT, times as DOUBLE PRECISION seconds, ``?`` for values. What differs between the two is in a ``Driver``.

And how runs wait for a database that is unreachable, full or locked.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from journeyman.core.data import FORMAT, LOG_FIELDS, Entity
from journeyman.core.errors import JournalConflictError, StoreClosedError, StoreError
from journeyman.core.events import CallFinished, CallStarted, Fact
from journeyman.core.policy import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.protocols import Clock, Journal

if TYPE_CHECKING:
    from journeyman.stores.audit import AuditKeys
    from journeyman.stores.runs import SqlRuns


logger = logging.getLogger("journeyman.store")

T = TypeVar("T")
E = TypeVar("E", bound=Entity)
Row: TypeAlias = tuple[Any, ...]
AtEnd: TypeAlias = Callable[["Connection", list[Any]], Any]

MOST_WORDS = 20
"""Of a text that is looked for; each is a condition of its own."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class Connection(Protocol):
    """One connection in one thread. Values go in with ``?``. Who connects sets the attributes."""

    audit_keys: AuditKeys
    """With which rows of the audit get their macs."""
    for_update: str
    """What a SELECT ends with that must lock its rows."""
    at_end: dict[AtEnd, list[Any]]
    """What is to be done last in the transaction, and with what: the place for a lock that everybody wants. So it is
    held for a short time, and nobody who has it waits for another."""

    dialect: Literal["sqlite", "postgresql"]
    """Whose SQL it takes, for the few statements that the two do not share."""
    clock: str
    """SQL for the time by the database's own clock, which all its programs share: seconds since 1970.

    Whatever processes have to agree on goes by it: leases, expiry, retention, limits. What a process takes for the
    time only says when something happened there.
    """

    def query(self, sql: str, *values: Any) -> Sequence[Row]:
        """The rows of a SELECT, or of a write with RETURNING."""

    def execute(self, sql: str, *values: Any) -> int:
        """Run a statement that gives no rows; returns how many it changed."""

    def begin(self, *, sync: bool) -> None:
        """Start a transaction that writes. With ``sync`` its commit survives power loss."""

    def begin_reading(self) -> None:
        """Start a transaction that sees one unchanging state of the database."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None:
        """From any thread: end the statement under way, with an error in its own thread."""

    def lock(self, name: str) -> None:
        """Let nobody else hold the lock of this name until the transaction ends."""

    def lock_schema(self) -> None:
        """Let nobody else change the schema until the transaction ends."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the database itself."""

    message: str
    passing: bool = False
    """Whether it may be over in a moment: a lock, a restart."""
    broken: bool = False
    """Whether the connection is of no further use."""


class Driver(Protocol):
    """What is different from one database to the next."""

    shared: bool
    """Whether several processes are expected to work on it at once."""
    audit_keys: AuditKeys
    pool_size: int
    """How many connections one process may have."""
    read_only: bool
    """Whether it can be read here and not be written, as the first connection has found."""
    now: Callable[[], float] | None
    """What tells the time instead of the database's clock: tests move it. None otherwise."""

    def connect(self, *, writes: bool) -> Connection: ...

    def size(self) -> int:
        """How many bytes the database takes up on its disk."""

    def shrink(self) -> None:
        """Give back the room of what was deleted, in small steps where that can be done."""

    def file(self) -> Path | None:
        """The file it is in; None for one on a server."""

    def fault(self, error: Exception) -> Fault | None:
        """What an exception says about the database; None when it is not the database's fault."""


class TransactionRunner:
    """Runs work in transactions. Passing faults are retried for ``retry_seconds``, others raise StoreError."""

    def __init__(self, driver: Driver, *, writes: bool, retry_seconds: float) -> None:
        self._driver = driver
        self._writes = writes
        self._retry_seconds = retry_seconds
        self._connection: Connection | None = None
        self._hurried: float | None = None

    def hurry(self, seconds: float) -> None:
        """From any thread: the program is about to end, so retry for no longer than this, from now on."""
        self._hurried = time.monotonic() + seconds

    def abort(self) -> None:
        """From any thread: end what is under way with an error."""
        self._hurried = 0.0
        if (connection := self._connection) is not None:
            connection.abort()

    def run(self, begin: Callable[[Connection], None], work: Callable[[Connection], T]) -> T:
        """Begin, work, commit. ``work`` may run more than once; nothing remains of the runs before."""
        deadline = time.monotonic() + self._retry_seconds
        for pause in pauses(FIRST_PAUSE, LONGEST_PAUSE):
            committing = False
            try:
                if self._connection is None:
                    self._connection = self._driver.connect(writes=self._writes)
                    self._connection.audit_keys = self._driver.audit_keys
                self._connection.at_end = {}
                if self._driver.now is not None:
                    self._connection.clock = f"CAST({self._driver.now()!r} AS DOUBLE PRECISION)"
                begin(self._connection)
                result = work(self._connection)
                for act, items in self._connection.at_end.items():
                    act(self._connection, items)
                committing = self._writes
                self._connection.commit()
                return result
            except Exception as error:
                fault = self._driver.fault(error)
                self._undo(broken=fault is not None and fault.broken)
                if fault is None:
                    raise
                # A commit that was cut off may have succeeded: doing it all again is for the caller to decide.
                until = deadline if self._hurried is None else min(deadline, self._hurried)
                if committing or not fault.passing or time.monotonic() + pause > until:
                    raise StoreError(fault.message) from error
            time.sleep(pause)
        raise AssertionError("pauses do not end")

    def _undo(self, *, broken: bool) -> None:
        connection = self._connection
        if connection is None:
            return
        if not broken:
            try:
                connection.rollback()
                return
            except Exception as error:
                if self._driver.fault(error) is None:
                    raise
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def pauses(first: float, longest: float) -> Iterator[float]:
    """How long to wait before each further try: twice as long every time, up to a limit; without end."""
    while True:
        yield first
        first = min(first * 2, longest)


def entities(kind: type[E], rows: Iterable[Row]) -> tuple[E, ...]:
    """Rows whose columns are an entity's fields, in order, as those entities."""
    names = tuple(kind.model_fields)
    return tuple(kind.model_validate(dict(zip(names, row, strict=True))) for row in rows)


def columns(kind: type[Entity]) -> str:
    """An entity's fields as the columns of a SELECT."""
    return ", ".join(kind.model_fields)


def marks(values: Sequence[Any]) -> str:
    """``?, ?, ?``: as many as there are values."""
    return ", ".join("?" * len(values))


def where(*tests: tuple[str, Sequence[Any]] | None) -> tuple[str, list[Any]]:
    """A WHERE clause and its values from tests as ``equals`` and ``belongs_to`` give them; None tests nothing."""
    given = [test for test in tests if test is not None]
    clause = f"WHERE {' AND '.join(sql for sql, _ in given)}" if given else ""
    return clause, [value for _, values in given for value in values]


def equals(column: str, value: Any) -> tuple[str, Sequence[Any]] | None:
    return None if value is None else (f"{column} = ?", (value,))


def belongs_to(principal_id: PrincipalFilter) -> tuple[str, Sequence[Any]] | None:
    if principal_id is ANY_PRINCIPAL:
        return None
    return equals("principal_id", principal_id) or ("principal_id IS NULL", ())


def follows(
    table: str, order: str, after: str | None, *, newest_first: bool = False
) -> tuple[str, Sequence[Any]] | None:
    """What comes after the row of this id in a list that goes by these columns."""
    sign = "<" if newest_first else ">"
    return None if after is None else (f"({order}) {sign} (SELECT {order} FROM {table} WHERE id = ?)", (after,))


_FORMAT = f'{{"format":{FORMAT}'


def each_word(column: str, text: str) -> list[tuple[str, Sequence[Any]]]:
    """A condition for each word of a text that is looked for in a column of casefolded text."""
    words = list(dict.fromkeys(text.casefold().split()))[:MOST_WORDS]
    return [(f"{column} LIKE ? ESCAPE '!'", [f"%{_literally(word)}%"]) for word in words]


def _literally(word: str) -> str:
    for special in "!%_":
        word = word.replace(special, f"!{special}")
    return word


def json_text(data: BaseModel) -> str:
    """Data as JSON text that every database takes, with the version of its format. ``Entity.stored`` reads it."""
    try:
        text = data.model_dump_json()
    except PydanticSerializationError:
        # Models write halves of characters, for which UTF-8 has no place.
        text = json.dumps(data.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":"))
        text = text.encode("utf-8", "replace").decode()
    return f"{_FORMAT},{text[1:]}" if text != "{}" else f"{_FORMAT}}}"


def json_text_over(before: str, data: BaseModel) -> str:
    """The text of data that takes the place of an earlier text. Fields that a newer version put there stay."""
    kept: dict[str, Any] = {
        name: value
        for name, value in json.loads(before).items()
        if name != "format" and name not in type(data).model_fields and name not in type(data).model_computed_fields
    }
    text = json_text(data)
    return f"{text[:-1]},{json.dumps(kept, ensure_ascii=False)[1:]}" if kept else text


def storable(value: Any) -> Any:
    """Text without what no database takes: halves of characters and NUL."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


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

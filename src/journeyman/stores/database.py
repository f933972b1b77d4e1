"""A database as the event loop sees it: writes are queued and committed many at a time, reads run beside them.

All writes of a process go through one thread, with group commit; reads have threads of their own. The work itself is
done by functions over a ``Connection``; see ``connection``. And leases on what is in it, which all aggregates share.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, ClassVar, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar

from journeyman.core.errors import StoreClosedError, StoreError
from journeyman.core.storing import LONGEST_LEASE, checked_lease
from journeyman.stores.connection import Connection, Driver, Row, Where, marks

logger = logging.getLogger("journeyman.store")

T = TypeVar("T")
P = ParamSpec("P")
AggregateT = TypeVar("AggregateT", bound="Aggregate")
Work: TypeAlias = Callable[Concatenate[AggregateT, Connection, P], T]
Method: TypeAlias = Callable[Concatenate[AggregateT, P], Coroutine[Any, Any, T]]

CLOSED = "the store is closed: open a new one"
UNOPENED = "the store is not open: 'await store.open()' before anything is written to it"
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between tries, while a fault may be over in a moment."""
LINGER_SECONDS = 0.01
"""How long facts that nobody waits for may gather before they are committed together."""
CLOSE_SECONDS = 5.0
"""How long closing waits for what is under way before it is cut off."""
CLOSE_RETRY_SECONDS = 2.0
"""How long a lock or a restart is waited out while closing."""
MOST_TOGETHER = 200
"""Jobs to a transaction: enough to share a commit, few enough to be over soon."""

Outcome: TypeAlias = tuple["Job", Any, BaseException | None]
Submit: TypeAlias = Callable[[], asyncio.Future[None] | None]
"""Queues what somebody has gathered; the future is done when that is committed or could not be."""
Observe: TypeAlias = Callable[[str, str], AbstractContextManager[None]]
_UNOBSERVED = contextlib.nullcontext()


class TransactionRunner:
    """Runs work in transactions. Passing faults are retried for ``retry_seconds``, others raise StoreError."""

    def __init__(self, driver: Driver, *, writes: bool, retry_seconds: float) -> None:
        self._driver = driver
        self._writes = writes
        self.retry_seconds = retry_seconds
        self.away: tuple[float, StoreError] | None = None
        """When the database was found away last, and how that was told."""
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
        deadline = time.monotonic() + self.retry_seconds
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
                    told = StoreError(fault.message)
                    if fault.passing and fault.broken:
                        self.away = time.monotonic(), told
                    raise told from error
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


class Readers:
    """Threads that read, each on a connection of its own."""

    def __init__(self, driver: Driver, *, count: int, retry_seconds: float) -> None:
        self.count = count
        self.runners: list[TransactionRunner] = []
        self._driver = driver
        self.retry_seconds = retry_seconds
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="journeyman-read")
        self._own = threading.local()

    def submit(self, work: Callable[[Connection], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(self._threads, self._read, work, time.monotonic())

    def _read(self, work: Callable[[Connection], T], since: float) -> T:
        for other in self.runners:
            if other.away is not None and other.away[0] > since:
                # It was found away while this one waited for a thread: to wait for that once more helps nobody.
                raise StoreError(*other.away[1].args)
        runner: TransactionRunner | None = getattr(self._own, "runner", None)
        if runner is None:
            runner = self._own.runner = TransactionRunner(self._driver, writes=False, retry_seconds=self.retry_seconds)
            self.runners.append(runner)
        return runner.run(lambda connection: connection.begin_reading(), work)

    def close(self) -> None:
        """Finish what is under way and let go of the connections."""
        self._threads.shutdown()
        for runner in self.runners:
            runner.close()


class Database:
    """All writes of a process go through one thread, in the order they were queued."""

    observe: ClassVar[Observe | None] = None
    """Entered around each operation, with the name of the system and of the operation; None while nobody watches."""

    def __init__(self, driver: Driver, *, retry_seconds: float, connections: int | None = None) -> None:
        self._driver = driver
        self._retry_seconds = retry_seconds
        self._writer_runner = TransactionRunner(driver, writes=True, retry_seconds=retry_seconds)
        self._writer = Writer(self._writer_runner)
        self._readers = self._new_readers(connections or driver.pool_size)
        self._pending: dict[Submit, None] = {}
        self._submitted: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def _new_readers(self, connections: int) -> Readers:
        # One connection writes, the others read.
        return Readers(self._driver, count=max(1, connections - 1), retry_seconds=self._retry_seconds)

    def start(self) -> None:
        self._writer.start()

    def retry_for(self, seconds: float) -> None:
        """From now on give up after so long where the database is away."""
        self._retry_seconds = self._readers.retry_seconds = seconds
        for runner in (self._writer_runner, *self._readers.runners):
            runner.retry_seconds = seconds

    @property
    def read_only(self) -> bool:
        return self._driver.read_only

    async def limit(self, connections: int) -> None:
        """Have no more connections than these from now on."""
        if self._readers.count >= connections:
            former, self._readers = self._readers, self._new_readers(connections)
            await asyncio.to_thread(former.close)

    async def close(self) -> None:
        """Commit what is queued and let go of every connection. Returns, whatever the database does."""
        self._submit_pending()
        if self._timer is not None:
            self._timer.cancel()
        for runner in (self._writer_runner, *self._readers.runners):
            runner.hurry(CLOSE_RETRY_SECONDS)
        if self._submitted:
            await asyncio.wait(set(self._submitted), timeout=CLOSE_SECONDS)
        # In a thread of its own: those of the event loop may all be taken by something that hangs.
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        threading.Thread(target=self._shut, args=(loop, ended), name="journeyman-close", daemon=True).start()
        for _ in range(2):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await ended.wait()
                    return
            for runner in (self._writer_runner, *self._readers.runners):
                runner.abort()
        logger.warning("the database does not answer: its connections are left behind")

    def _shut(self, loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
        self._writer.stop()
        self._readers.close()
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(ended.set)

    # --- writing

    async def write(self, work: Callable[[Connection], T], *, sync: bool = True) -> T:
        """Run ``work`` in a transaction; when this returns it is committed, and with ``sync`` survives power loss.

        Whoever stops waiting does not undo it.
        ``work`` may run more than once, each time in a transaction in which nothing of the time before remains.
        """
        with self.observed("write"):
            self._submit_pending()
            future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            self.submit(work, sync=sync, done=partial(settle_future, future))
            return await future

    def observed(self, operation: str) -> AbstractContextManager[None]:
        """Around an operation that is waited for."""
        if Database.observe is None:
            return _UNOBSERVED
        return Database.observe("postgresql" if self._driver.shared else "sqlite", operation)

    def submit(
        self, work: Callable[[Connection], T], *, sync: bool, done: Callable[[T, BaseException | None], None]
    ) -> None:
        """Queue ``work`` and return at once; ``done`` is told the result or the error."""
        self._writer.put(Job(work, sync, asyncio.get_running_loop(), done))

    def soon(self, submit: Submit) -> None:
        """Have gathered writes committed in a moment, or with whatever is written or read before."""
        self._pending[submit] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._linger_ended)

    def _linger_ended(self) -> None:
        self._timer = None
        self._submit_pending()

    def _submit_pending(self) -> None:
        gathered = list(self._pending)
        self._pending.clear()
        for submit in gathered:
            if (future := submit()) is not None:
                self._submitted.add(future)
                future.add_done_callback(self._submitted.discard)

    async def flush(self) -> None:
        """Return when everything written so far is committed; raises what kept it from being so."""
        self._submit_pending()
        await asyncio.gather(*self._submitted, self.write(lambda connection: None, sync=False))

    # --- reading

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` on one state of the database, in which everything written here before is to be seen."""
        with self.observed("read"):
            self._submit_pending()
            if self._submitted:
                await asyncio.wait(set(self._submitted))
            try:
                reading = self._readers.submit(work)
            except RuntimeError as error:
                raise StoreClosedError(CLOSED) from error
            return await reading


class Aggregate:
    """What is kept of one kind. Its statements are in the class of that kind, and in functions over a connection."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def _query(self, sql: str, *values: Any) -> Sequence[Row]:
        """The rows of one statement that only reads."""
        return await self._database.read(lambda connection: connection.query(sql, *values))

    async def _count(self, source: str, where: Where, *, what: str = "*") -> int:
        """How many rows of a table, or of several that are joined, are wanted."""
        [(count,)] = await self._query(f"SELECT COUNT({what}) FROM {source} {where.clause}", *where.values)
        return int(count)


def reads(work: Work[AggregateT, P, T]) -> Method[AggregateT, P, T]:
    """A method of an aggregate that sees one state of the database. Its body runs in a thread that reads."""

    async def method(self: AggregateT, *values: P.args, **named: P.kwargs) -> T:
        return await self._database.read(lambda connection: work(self, connection, *values, **named))

    return wraps(work)(method)  # type: ignore[return-value]


def writes(*, sync: bool) -> Callable[[Work[AggregateT, P, T]], Method[AggregateT, P, T]]:
    """A method of an aggregate that is one transaction, and may run more than once; see ``Database.write``."""

    def decorated(work: Work[AggregateT, P, T]) -> Method[AggregateT, P, T]:
        async def method(self: AggregateT, *values: P.args, **named: P.kwargs) -> T:
            return await self._database.write(lambda connection: work(self, connection, *values, **named), sync=sync)

        return wraps(work)(method)  # type: ignore[return-value]

    return decorated


# --- the writing thread


@dataclass(slots=True)
class Job:
    """One piece of work and who waits for it."""

    work: Callable[[Connection], Any]
    sync: bool
    loop: asyncio.AbstractEventLoop
    done: Callable[[Any, BaseException | None], None]
    """Is told the result or the error, on the loop, in the jobs' order. A future would cost a turn of the loop."""
    since: float = field(default_factory=time.monotonic)


class Writer:
    """Takes everything queued, does it in one transaction, and tells the waiters in order.

    A job that fails on its own account harms no other: then each is given a transaction of its own. A fault of the
    database fails all jobs of the transaction with StoreError, and none of them was reported as committed.
    """

    def __init__(self, runner: TransactionRunner) -> None:
        self._runner = runner
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._stopped = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="journeyman-write", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish what is queued, then end. Blocks."""
        with self._lock:
            self._stopped = True
            self._jobs.put(None)
        self._thread.join()

    def put(self, job: Job) -> None:
        with self._lock:
            opened = self._thread.ident is not None
            if opened and not self._stopped:
                self._jobs.put(job)
                return
        job.done(None, StoreClosedError(CLOSED if opened else UNOPENED))  # nobody would take it out

    def _work(self) -> None:
        following = self._jobs.get()
        while following is not None:
            batch = [following]
            # Only this thread takes jobs out: where there is one, get() returns at once.
            while len(batch) < MOST_TOGETHER and not self._jobs.empty():
                if (following := self._jobs.get()) is None:
                    break
                batch.append(following)
            _deliver(self._commit(batch))
            if following is not None:
                following = self._jobs.get()
        self._runner.close()

    def _commit(self, batch: Sequence[Job]) -> list[Outcome]:
        if (away := self._runner.away) is not None and batch[0].since < away[0]:
            # What was queued while the database was found away is not tried for as long once more.
            late = [job for job in batch if job.since < away[0]]
            rest = batch[len(late) :]
            told = StoreError(*away[1].args)
            return [(job, None, told) for job in late] + (self._commit(rest) if rest else [])
        sync = any(job.sync for job in batch)
        try:
            results = self._runner.run(
                lambda connection: connection.begin(sync=sync),
                lambda connection: [job.work(connection) for job in batch],
            )
        except StoreError as error:
            return [(job, None, error) for job in batch]
        except BaseException as error:
            if len(batch) == 1:
                return [(batch[0], None, error)]
            return [outcome for job in batch for outcome in self._commit([job])]
        return [(job, result, None) for job, result in zip(batch, results, strict=True)]


def _deliver(outcomes: Sequence[Outcome]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[Outcome]] = {}
    for outcome in outcomes:
        by_loop.setdefault(outcome[0].loop, []).append(outcome)
    for loop, theirs in by_loop.items():
        # A loop that is closed has nobody left who could wait.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, theirs)


def _settle(outcomes: Sequence[Outcome]) -> None:
    for job, result, error in outcomes:
        job.done(result, error)


def settle_future(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Give a future its end, unless whoever waited has stopped waiting."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        # Looked at, as far as asyncio is concerned: not everybody who may wait does.
        future.exception()


# --- leases: what one process at a time may do, who does it, and until when by the database's clock
#
# One table for all of them: working on a run, reading with a cursor, showing the runs of Slack. Each taking begins
# a new epoch, which whoever writes under a lease has to name: a process that has lost it, is refused.

_STALE_AFTER = 2 * LONGEST_LEASE
"""A lease that ends later than that was not given by the clock as it is now: it was set back since."""


class TakenLease(NamedTuple):
    """A lease that its owner has now."""

    epoch: int
    taken_from: str | None
    """Who had it before; None where it was given back."""
    taken_until: float
    """Until when they had it."""


class Leases:
    """Those of one kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def take(
        self,
        connection: Connection,
        name: str,
        *,
        owner: str,
        seconds: float,
        dead: Collection[str] = (),
        only: tuple[str, Sequence[Any]] = ("SELECT 1", ()),
    ) -> TakenLease | None:
        """Take a lease that nobody has, that is over, or that the taker itself or somebody ``dead`` has; else None.

        ``only`` is a SELECT, with its values, that has a row where the lease may be taken at all.
        """
        takeable = (owner, *dead)
        select, values = only
        rows = connection.query(
            "INSERT INTO leases (kind, name, epoch, owner, until) "
            f"SELECT CAST(? AS TEXT), CAST(? AS TEXT), 1, CAST(? AS TEXT), @now + ? WHERE EXISTS ({select}) "
            "ON CONFLICT (kind, name) DO UPDATE SET epoch = leases.epoch + 1, taken_from = leases.owner, "
            "taken_until = leases.until, owner = excluded.owner, until = excluded.until "
            f"WHERE {lease_is_free('leases', takeable)} RETURNING epoch, taken_from, COALESCE(taken_until, 0)",
            *(self._kind, name, owner, checked_lease(seconds), *values, *takeable),
        )
        return TakenLease(*rows[0]) if rows else None

    def renew(self, connection: Connection, *, owner: str, seconds: float, returning: str) -> Sequence[Row]:
        """Prolong all that an owner has, whatever the time; ``returning`` is SQL for each of them."""
        return connection.query(
            f"UPDATE leases SET until = @now + ? WHERE kind = ? AND owner = ? RETURNING {returning}",
            *(checked_lease(seconds), self._kind, owner),
        )

    def release(self, connection: Connection, name: str, *, epoch: int) -> bool:
        """Give a lease back; False where it was taken by somebody since."""
        sql = "UPDATE leases SET owner = NULL, until = 0 WHERE kind = ? AND name = ? AND epoch = ?"
        return connection.execute(sql, self._kind, name, epoch) == 1

    def end(self, connection: Connection, name: str, *, epoch: int) -> None:
        """Forget a lease that nobody will take again."""
        connection.execute("DELETE FROM leases WHERE kind = ? AND name = ? AND epoch = ?", self._kind, name, epoch)


def lease_is_free(table: str, takeable: Sequence[str] = ()) -> str:
    """The condition that nobody has a lease, or one of these does; wants their names."""
    condition = f"{table}.owner IS NULL OR {table}.until <= @now OR {table}.until > @now + {_STALE_AFTER}"
    if takeable:
        condition += f" OR {table}.owner IN ({marks(takeable)})"
    return f"({condition})"


RUN_LEASES, CURSOR_LEASES, DUTY_LEASES = Leases("run"), Leases("cursor"), Leases("duty")

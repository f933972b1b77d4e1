"""Many workers on one PostgreSQL: a run is a job, its id the job's lock. Procrastinate brings the jobs to the workers.

The queue only says who should look at a run. Who may write to it is decided by the lease in the store, so that a
worker which wakes up after it was given up can neither write nor start a call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, TypeAlias, cast

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Status
from psycopg import AsyncConnection
from psycopg import Error as PsycopgError

from journeyman.app.journeyman import Journeyman
from journeyman.app.runner import Runner
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ConfigurationError, StoreError
from journeyman.stores.postgres import conninfo, split_pool_size
from journeyman.stores.processes import RUN_CHANNEL
from journeyman.stores.store import SqlStore

logger = logging.getLogger("journeyman.worker")

QUEUE = "journeyman"
TASK = "journeyman.advance"
MOST_PLACES = 10_000
"""Places told apart within one priority."""
GOODBYE_SECONDS = 1.0
"""How long the queue may take to be left."""
POOL_SECONDS = 10.0
"""How long to wait for a connection to the queue."""
RECONNECT_SECONDS = 5.0


class JobQueue:
    """Runs as jobs. Clients put them in, workers take them out."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ConfigurationError("workers need PostgreSQL; give a store such as postgresql://user@host/name")
        plain, _ = split_pool_size(url)
        self._conninfo = conninfo(plain)
        connector = PsycopgConnector(
            conninfo=self._conninfo,
            min_size=1,
            max_size=1,
            # After a long outage the pool would try again after ever longer pauses: it gives up, and is asked again.
            timeout=POOL_SECONDS,
            reconnect_timeout=RECONNECT_SECONDS,
            # Nothing is prepared: behind a pooler the next transaction may be on another session of the server.
            kwargs={"prepare_threshold": None},
        )
        self.app = App(connector=connector)
        self.pooled = False
        """Whether a pooler stands before the server. Then nobody can be told of new jobs, and they are looked for."""
        self.listening = False
        """Whether this process is told when a run that it shows goes on elsewhere."""
        self._opened = contextlib.AsyncExitStack()

    async def open(self) -> None:
        await self._opened.enter_async_context(self.app.open_async())
        async with cast("PsycopgConnector", self.app.connector).pool.connection() as connection:
            row = await (await connection.execute("SELECT pg_backend_pid()")).fetchone()
            self.pooled = row is None or row[0] != connection.info.backend_pid
        if not await self._has_schema():
            # Two processes may get here at once; the loser finds the tables made.
            with contextlib.suppress(ConnectorException):
                await self.app.schema_manager.apply_schema_async()
            if not await self._has_schema():
                raise StoreError("the job queue's tables could not be made; see the database's log")

    async def _has_schema(self) -> bool:
        row = await self.app.connector.execute_query_one_async(
            "SELECT to_regclass('procrastinate_jobs') IS NOT NULL AS there"
        )
        return bool(row["there"])

    async def close(self, *, seconds: float = GOODBYE_SECONDS) -> None:
        """Let go of the database, as far as that is possible in so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, 0.1)):
                await self._opened.aclose()

    async def listen(self, heard: Callable[[str], None]) -> None:
        """Tell of runs that go on in other processes, for as long as this one lives."""
        while not self.pooled:
            try:
                async with await AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                    await connection.execute(f"LISTEN {RUN_CHANNEL}".encode())
                    self.listening = True
                    async for notice in connection.notifies():
                        heard(notice.payload)
            except PsycopgError as error:
                logger.debug("runs are looked at, since nobody tells of them: %s", error)
            finally:
                self.listening = False
            await asyncio.sleep(RECONNECT_SECONDS)

    async def put(self, run_id: str, *, priority: int = 0, place: int = 1) -> None:
        """See to it that some worker looks at this run. A job that waits already is enough.

        ``place`` is the run's number among those of its principal that wait: of one priority the lowest goes first,
        so that who has many of them lets others pass.
        """
        within = max(-32_768, min(priority, 32_767)) * MOST_PLACES - min(place, MOST_PLACES - 1)
        deferrer = self.app.configure_task(TASK, queue=QUEUE, lock=run_id, queueing_lock=run_id, priority=within)
        try:
            await deferrer.defer_async(run_id=run_id)
        except AlreadyEnqueued:
            pass
        except ConnectorException as error:
            raise StoreError(f"the job queue cannot be reached: {_why(error)}") from error

    async def waiting(self, among: Collection[str]) -> set[str]:
        """Those of these runs for which a job waits."""
        rows = await self.app.connector.execute_query_all_async(
            "SELECT queueing_lock FROM procrastinate_jobs WHERE status = 'todo' AND queueing_lock = ANY(%(among)s)",
            among=[*among],
        )
        return {row["queueing_lock"] for row in rows}

    async def drop_stalled(self, *, silent_for: float, idle: Collection[str]) -> int:
        """Forget the jobs of workers whose heartbeat has ended, and those of idle runs; returns how many.

        They would keep others from their runs. They are not given on, since a job for the same run may wait already.
        """
        manager = self.app.job_manager
        stalled = list(await manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=silent_for))
        if idle:
            stalled += [job for job in await manager.list_jobs_async(queue=QUEUE, status="doing") if job.lock in idle]
        for job in stalled:
            with contextlib.suppress(ConnectorException):  # somebody else was faster
                await manager.finish_job(job, status=Status.FAILED, delete_job=True)
        return len(stalled)


async def work(
    app: Journeyman,
    url: str,
    *,
    concurrency: int = 16,
    name: str = "journeyman",
    stop: asyncio.Event | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Take runs from the queue and work on them until told to stop; then finish the step under way or hand over.

    ``ready`` is called once, when the queue is open and a signal to stop will be heard.
    """
    runner, queue = app.runner, JobQueue(url)
    runner.places.count, runner.streams_text = concurrency, True
    if isinstance(app.store, SqlStore):
        await app.store.leave_room_for_queue()
    await queue.open()
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, stop.set)

    @queue.app.task(name=TASK, queue=QUEUE)
    async def advance(run_id: str) -> None:
        # However it ends, the job is over: a run that can go on is found by a finder, which puts a new one.
        if not stop.is_set():
            await runner.work_on(run_id)

    before = loop.get_exception_handler()
    loop.set_exception_handler(partial(_unheard, before))
    worker = asyncio.create_task(_take_jobs(runner, queue, concurrency=concurrency, name=name))
    finder = asyncio.create_task(_find_due(runner, queue))
    if ready is not None:
        ready()
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((worker, stopped), return_when=asyncio.FIRST_COMPLETED)
        if worker.done():
            await worker
    finally:
        for task in (finder, stopped):
            task.cancel()
        await runner.release_all()
        worker.cancel()
        # Where the database is away nobody can say goodbye to it: the others find out by the lease.
        late = loop.time() + GOODBYE_SECONDS
        await asyncio.wait((finder, stopped, worker), timeout=GOODBYE_SECONDS)
        await queue.close(seconds=late - loop.time())
        loop.set_exception_handler(before)


Handler: TypeAlias = Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]


def _unheard(before: Handler | None, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line for a job whose end could not be noted, since the queue leaves the error to nobody.

    Nothing is lost by it: the run is in the store, and a finder drops the job.
    """
    if isinstance(error := context.get("exception"), ConnectorException):
        logger.warning("the end of a job could not be noted; the job is dropped later: %s", _why(error))
    elif before is not None:
        before(loop, context)
    else:
        loop.default_exception_handler(context)


def _why(error: Exception) -> str:
    """On one line what happened: the queue's own errors say only that there was one, and wrap the one that does."""
    cause = error.__cause__ if isinstance(error, ConnectorException) else None
    return " ".join(str(cause or error).split())


async def _take_jobs(runner: Runner, queue: JobQueue, *, concurrency: int, name: str) -> None:
    while True:
        try:
            # It ends by itself when its heartbeat fails, with an error or without one: we go on until we are cancelled.
            await queue.app.run_worker_async(
                queues=[QUEUE],
                name=name,
                concurrency=concurrency,
                install_signal_handlers=False,
                listen_notify=not queue.pooled,
                fetch_job_polling_interval=runner.settings.poll_seconds,
                update_heartbeat_interval=max(0.2, runner.settings.lease_seconds / 3),
                stalled_worker_timeout=runner.settings.lease_seconds,
                shutdown_graceful_timeout=runner.settings.grace_seconds,
                delete_jobs="always",
            )
            logger.warning("the job queue stopped handing out jobs; it is asked again")
        except ConnectorException as error:
            logger.warning("the job queue is away, jobs wait: %s", _why(error))
        except Exception:
            logger.exception("taking jobs failed; it goes on")
        await asyncio.sleep(runner.settings.poll_seconds)


async def _find_due(runner: Runner, queue: JobQueue) -> None:
    """Put jobs for runs that have none: decided or expired approvals, the next of a session, lost workers."""
    due_since: dict[str, float] = {}
    lease_seconds = runner.settings.lease_seconds
    rested = False  # what no other process could go on with, this one may
    while True:
        try:
            now = runner.clock.monotonic()
            # What this worker cannot do another may.
            due = [run async for run, _ in runner.due(rested=rested) if runner.trouble(run.id) is None]
            due_since = {run.id: due_since.get(run.id, now) for run in due}
            rested = True
            # A run that nobody holds for so long has a dead job: its worker lost the database when it was done. One
            # whose worker can be seen to be dead has one at once.
            dead = set(runner.claims.dead({run.left_by for run in due if run.left_by is not None}))
            idle = {run.id for run in due if now - due_since[run.id] > lease_seconds or run.left_by in dead}
            if dropped := await queue.drop_stalled(silent_for=lease_seconds, idle=idle):
                logger.warning("dropped jobs of a lost worker", extra={LOG_FIELDS: {"jobs": dropped}})
            waiting = await queue.waiting(due_since)
            put = 0
            for run_id in due_since:
                if put >= 2 * runner.places.count:
                    break  # enough for now: those of a principal who is at their share would only come back
                if run_id in waiting:
                    continue
                row = await runner.store.runs.get(run_id)
                place = await runner.store.runs.place(run_id)
                await queue.put(run_id, priority=0 if row is None else row.priority, place=place)
                put += 1
        except (StoreError, ConnectorException) as error:
            logger.warning("the store is away, runs wait: %s", _why(error))
        except Exception:
            logger.exception("looking for due runs failed; it goes on")
        await asyncio.sleep(runner.settings.poll_seconds)

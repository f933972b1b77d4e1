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
from typing import TYPE_CHECKING

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Status

from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from journeyman.app.journeyman import Journeyman
    from journeyman.app.runner import Runner

logger = logging.getLogger("journeyman.worker")

QUEUE = "journeyman"
TASK = "journeyman.advance"


class JobQueue:
    """Runs as jobs. Clients put them in, workers take them out."""

    @classmethod
    def at(cls, store: object) -> JobQueue:
        """The queue in the database behind a store's URL."""
        if not isinstance(store, str):
            raise ConfigurationError("workers=True needs the store's URL, to reach its job queue")
        return cls(store)

    def __init__(self, url: str) -> None:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ConfigurationError("workers need PostgreSQL; give a store such as postgresql://user@host/name")
        self.app = App(connector=PsycopgConnector(conninfo=url))
        self._opened = contextlib.AsyncExitStack()

    async def open(self) -> None:
        await self._opened.enter_async_context(self.app.open_async())
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

    async def close(self) -> None:
        await self._opened.aclose()

    async def put(self, run_id: str, *, priority: int = 0) -> None:
        """See to it that some worker looks at this run. A job that waits already is enough."""
        deferrer = self.app.configure_task(
            TASK, queue=QUEUE, lock=run_id, queueing_lock=run_id, priority=max(-32_768, min(priority, 32_767))
        )
        try:
            await deferrer.defer_async(run_id=run_id)
        except AlreadyEnqueued:
            pass
        except ConnectorException as error:
            raise StoreError(f"the job queue cannot be reached: {error}") from error

    async def waiting(self) -> set[str]:
        """The runs for which a job waits."""
        return {job.lock or "" for job in await self.app.job_manager.list_jobs_async(queue=QUEUE, status="todo")}

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
        await asyncio.gather(finder, stopped, return_exceptions=True)
        await runner.release_all()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        await queue.close()


async def _take_jobs(runner: Runner, queue: JobQueue, *, concurrency: int, name: str) -> None:
    while True:
        try:
            return await queue.app.run_worker_async(
                queues=[QUEUE],
                name=name,
                concurrency=concurrency,
                install_signal_handlers=False,
                fetch_job_polling_interval=runner.settings.poll_seconds,
                update_heartbeat_interval=max(0.2, runner.settings.lease_seconds / 3),
                stalled_worker_timeout=runner.settings.lease_seconds,
                shutdown_graceful_timeout=runner.settings.grace_seconds,
                delete_jobs="always",
            )
        except ConnectorException as error:
            logger.warning("the job queue is away, jobs wait: %s", error)
        await asyncio.sleep(runner.settings.poll_seconds)


async def _find_due(runner: Runner, queue: JobQueue) -> None:
    """Put jobs for runs that have none: decided or expired approvals, the next of a session, lost workers."""
    due_since: dict[str, float] = {}
    lease_seconds = runner.settings.lease_seconds
    while True:
        try:
            now = runner.clock.monotonic()
            due_since = {run_id: due_since.get(run_id, now) async for run_id in runner.due()}
            # A run that nobody holds for so long has a dead job: its worker lost the database when it was done.
            idle = {run_id for run_id, since in due_since.items() if now - since > lease_seconds}
            if dropped := await queue.drop_stalled(silent_for=lease_seconds, idle=idle):
                logger.warning("dropped jobs of a lost worker", extra={LOG_FIELDS: {"jobs": dropped}})
            waiting = await queue.waiting()
            for run_id in due_since:
                if run_id in waiting or runner.trouble(run_id) is not None:
                    continue  # what this worker cannot do another may
                row = await runner.store.runs.get(run_id)
                await queue.put(run_id, priority=0 if row is None else row.priority)
        except (StoreError, ConnectorException) as error:
            logger.warning("the store is away, runs wait: %s", error)
        except Exception:
            logger.exception("looking for due runs failed; it goes on")
        await asyncio.sleep(runner.settings.poll_seconds)

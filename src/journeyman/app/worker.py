"""Many workers on one PostgreSQL: a run is a job, its id the job's lock. Procrastinate brings the jobs to the workers.

The queue only says who should look at a run. Who may write to it is decided by the lease in the store, so that a
worker which wakes up after it was given up can neither write nor start a call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable

from procrastinate import RetryStrategy
from procrastinate.exceptions import ConnectorException

from journeyman.app.journeyman import Journeyman
from journeyman.app.owners import dead
from journeyman.app.queue import QUEUE, TASK, JobQueue
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import StoreError

logger = logging.getLogger("journeyman.worker")


class NotYetError(Exception):
    """The run is held by somebody else for now; the job comes again."""


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
    queue = JobQueue(url)
    await queue.open()
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, stop.set)

    @queue.app.task(name=TASK, queue=QUEUE, retry=RetryStrategy(wait=1, retry_exceptions={NotYetError, StoreError}))
    async def advance(run_id: str) -> None:
        if stop.is_set():
            raise NotYetError(run_id)
        await app.work_on(run_id)
        now = app.clock.time()
        gone = dead(set(await app.store.runs.owners()) - {app.owner})
        goes_on = await app.store.runs.due(now=now, dead=gone, run_id=run_id)
        if goes_on and app.trouble(run_id) is None and not stop.is_set():
            raise NotYetError(run_id)

    worker = asyncio.create_task(
        queue.app.run_worker_async(
            queues=[QUEUE],
            name=name,
            concurrency=concurrency,
            install_signal_handlers=False,
            fetch_job_polling_interval=app.poll_seconds,
            update_heartbeat_interval=max(0.2, app.lease_seconds / 3),
            stalled_worker_timeout=app.lease_seconds,
            shutdown_graceful_timeout=app.grace_seconds,
            delete_jobs="always",
        )
    )
    scout = asyncio.create_task(_scout(app, queue))
    if ready is not None:
        ready()
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((worker, stopped), return_when=asyncio.FIRST_COMPLETED)
        if worker.done():
            await worker
    finally:
        for task in (scout, stopped):
            task.cancel()
        await asyncio.gather(scout, stopped, return_exceptions=True)
        await app.hand_over()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        await queue.close()


async def _scout(app: Journeyman, queue: JobQueue) -> None:
    """Look for runs that nobody has a job for: decided or expired approvals, the next of a session, lost workers."""
    while True:
        try:
            now = app.clock.time()
            await app.store.approvals.expire(now=now)
            gone = dead(set(await app.store.runs.owners()) - {app.owner})
            for run_id in await app.store.runs.due(now=now, dead=gone, limit=1_000):
                if app.trouble(run_id) is not None:
                    continue  # for another worker, which has what this one lacks
                row = await app.store.runs.get(run_id)
                await queue.put(run_id, priority=0 if row is None else row.priority)
            if rescued := await queue.rescue(silent_for=app.lease_seconds):
                logger.warning("took over jobs of a lost worker", extra={LOG_FIELDS: {"jobs": rescued}})
        except (StoreError, ConnectorException) as error:
            logger.warning("the store is away, runs wait: %s", error)
        except Exception:
            logger.exception("scouting failed; it goes on")
        await asyncio.sleep(app.poll_seconds)

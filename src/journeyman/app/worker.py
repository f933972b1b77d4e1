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

from procrastinate.exceptions import ConnectorException

from journeyman.app.journeyman import Journeyman
from journeyman.app.owners import dead
from journeyman.app.queue import QUEUE, TASK, JobQueue
from journeyman.core.data import LOG_FIELDS
from journeyman.core.errors import StoreError

logger = logging.getLogger("journeyman.worker")


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

    @queue.app.task(name=TASK, queue=QUEUE)
    async def advance(run_id: str) -> None:
        # However it ends, the job is over: a run that can go on is found by a scout, which puts a new one.
        if not stop.is_set():
            await app.work_on(run_id)

    worker = asyncio.create_task(_take_jobs(app, queue, concurrency=concurrency, name=name))
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


async def _take_jobs(app: Journeyman, queue: JobQueue, *, concurrency: int, name: str) -> None:
    while True:
        try:
            return await queue.app.run_worker_async(
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
        except ConnectorException as error:
            logger.warning("the job queue is away, jobs wait: %s", error)
        await asyncio.sleep(app.poll_seconds)


async def _scout(app: Journeyman, queue: JobQueue) -> None:
    """Look for runs that nobody has a job for: decided or expired approvals, the next of a session, lost workers."""
    due_since: dict[str, float] = {}
    while True:
        try:
            now, monotonic = app.clock.time(), app.clock.monotonic()
            await app.store.approvals.expire(now=now)
            gone = dead(set(await app.store.runs.owners()) - {app.owner})
            due = await app.store.runs.due(now=now, dead=gone, limit=1_000)
            due_since = {run_id: due_since.get(run_id, monotonic) for run_id in due}
            # A run that nobody holds for so long is nobody's job: its worker lost the database when it was done.
            idle = {run_id for run_id, since in due_since.items() if monotonic - since > app.lease_seconds}
            if dropped := await queue.drop_stalled(silent_for=app.lease_seconds, idle=idle):
                logger.warning("took over jobs of a lost worker", extra={LOG_FIELDS: {"jobs": dropped}})
            waiting = await queue.waiting()
            for run_id in due:
                if run_id in waiting or app.trouble(run_id) is not None:
                    continue  # what this worker cannot do another may
                row = await app.store.runs.get(run_id)
                await queue.put(run_id, priority=0 if row is None else row.priority)
        except (StoreError, ConnectorException) as error:
            logger.warning("the store is away, runs wait: %s", error)
        except Exception:
            logger.exception("scouting failed; it goes on")
        await asyncio.sleep(app.poll_seconds)

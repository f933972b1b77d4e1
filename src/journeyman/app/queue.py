"""Runs as jobs in PostgreSQL, through Procrastinate. The queue says who should look at a run, never who may write."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Status

from journeyman.core.errors import ConfigurationError, StoreError

QUEUE = "journeyman"
TASK = "journeyman.advance"


class JobQueue:
    """Runs as jobs. Clients put them in, workers take them out."""

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

"""The processes that are killed: the whole program on SQLite, a worker on PostgreSQL. And the person's part."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Sequence

from benchmarks.crash.workload import ADA, Ledger, clerk, patient, script, tools
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.app.worker import work
from journeyman.core.errors import ApprovalError, ConfigurationError
from journeyman.core.runs import RunStatus
from journeyman.stores.store import open_store
from journeyman.testing import CrashPoint, crashing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["benchmarks.crash.children"])
LEASE_SECONDS = 1.0
POLL_SECONDS = 0.1


async def attend(app: Journeyman, handle: Handle, ledger: Ledger, status: RunStatus) -> None:
    """What a person does: settle by what the ledger says, and approve one question after the other."""
    if status is RunStatus.AWAITING_RESOLUTION:
        for record in await handle.unknown():
            there = ledger.holds(record.execution_id)
            try:
                await handle.resolve(record.call_id, "done" if there else "rerun", result="seen in the ledger")
            except ConfigurationError:
                return  # somebody works on it: later
    for approval in (await app.approvals.pending(run_id=handle.run_id))[:1]:
        try:
            await app.approvals.approve(approval.id, by="grace")
        except ApprovalError:
            return  # decided before the last kill


def program(url: str, ledger_path: str, run_ids: Sequence[str], point: CrashPoint | None) -> None:
    """Start these runs, or go on with them, to their end."""

    async def main() -> None:
        ledger = Ledger(ledger_path)
        library = tools(ledger)
        store = open_store(url)
        app = Journeyman(
            library=library,
            store=store if point is None else crashing(store, point),
            model=script(),
            policy=patient(),
            poll_seconds=POLL_SECONDS,
        )
        async with app:
            await app.resume()
            handles = [await app.start(clerk(library), "Do it", principal=ADA, run_id=name) for name in run_ids]
            await asyncio.gather(*(to_the_end(app, handle, ledger) for handle in handles))

    asyncio.run(main())


async def to_the_end(app: Journeyman, handle: Handle, ledger: Ledger) -> None:
    while not (status := await handle.wait()).ended:
        await attend(app, handle, ledger, status)


def worker(url: str, ledger_path: str, point: CrashPoint | None) -> None:
    """A worker, as ``journeyman worker`` runs it, until it is killed or told to leave."""

    async def main() -> None:
        store = open_store(url)
        app = Journeyman(
            library=tools(Ledger(ledger_path)),
            store=store if point is None else crashing(store, point),
            model=script(),
            policy=patient(),
            lease_seconds=LEASE_SECONDS,
            poll_seconds=POLL_SECONDS,
        )
        async with app:
            await work(app, url, concurrency=2)

    asyncio.run(main())

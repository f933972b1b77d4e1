"""A process of the disturbed campaign: ``python -m benchmarks.crash.helper`` works on runs until it is told to leave.

A program of its own, so that it can be put into a PID namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys

from benchmarks.crash.workload import Ledger, patient, script, tools
from journeyman.app.journeyman import Journeyman
from journeyman.app.worker import work
from journeyman.core.errors import StoreError
from journeyman.core.protocols import SystemClock

LEASE_SECONDS = 1.0
POLL_SECONDS = 0.1
WORK_SECONDS = 0.15
"""Long enough for a disturbance to fall into a call."""
OFFSET = "JOURNEYMAN_BENCH_CLOCK_OFFSET"


class SkewedClock(SystemClock):
    """The clock of a machine that is so many seconds ahead."""

    def __init__(self, offset: float) -> None:
        self._offset = offset

    def time(self) -> float:
        return super().time() + self._offset


async def main(url: str, ledger_path: str) -> None:
    app = Journeyman(
        library=tools(Ledger(ledger_path), work_seconds=WORK_SECONDS),
        store=url,
        model=script(),
        policy=patient(),
        clock=SkewedClock(float(os.environ.get(OFFSET, "0"))),
        lease_seconds=LEASE_SECONDS,
        poll_seconds=POLL_SECONDS,
    )
    async with app:
        if not url.startswith("sqlite"):
            await work(app, url, concurrency=4)
            return
        leave = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave.set)
        while not leave.is_set():
            with contextlib.suppress(StoreError):
                await app.resume()  # whatever is there to be done by now
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(leave.wait(), POLL_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

"""``journeyman worker`` processes beside a service: started with it, started again when one dies, ended with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from journeyman.doors.cli import screen
from journeyman.doors.cli.options import STORE_VARIABLE

PROGRAM = "from journeyman.doors.cli import main; main()"
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Before one that died is started again."""
GRACE_SECONDS = 30.0
"""How long they may take to finish the steps under way."""


@asynccontextmanager
async def worker_processes(count: int, *, store: str, options: Mapping[str, Any]) -> AsyncIterator[None]:
    """So many workers, with those of these options that are given; True stands for a flag."""
    given = []
    for name, value in options.items():
        if value is not None:
            given += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    # The store's address may hold a password, and everybody can read the arguments of a process.
    environment = {**os.environ, STORE_VARIABLE: store}
    keepers = [asyncio.create_task(_keep_one(given, environment)) for _ in range(count)]
    try:
        yield
    finally:
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)


async def _keep_one(given: list[str], environment: Mapping[str, str]) -> None:
    pause = FIRST_PAUSE
    while True:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, "worker", *given, env=environment, stdin=asyncio.subprocess.DEVNULL
        )
        began = asyncio.get_running_loop().time()
        try:
            code = await process.wait()
        finally:
            await _ended(process)
        if asyncio.get_running_loop().time() - began > LONGEST_PAUSE:
            pause = FIRST_PAUSE
        screen.note(f"a worker process ended with code {code}; another begins in {pause:g} s")
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a process that is still there: kindly first."""
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()

"""Programs that a benchmark measures from outside: each prints its port, and ends when its input is closed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

PROJECT = Path(__file__).parents[1]


@asynccontextmanager
async def started(module: str, *arguments: str, kill: bool = False) -> AsyncIterator[tuple[int, int]]:
    """A module of this project as a process of its own: its port, and its id. It is asked to end, or killed."""
    command = [sys.executable, "-m", module, *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=PROJECT)
    assert process.stdin is not None
    assert process.stdout is not None
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError(f"{module} did not start")
    try:
        yield int(line), process.pid
    finally:
        if kill:
            process.kill()
        process.stdin.close()
        try:
            async with asyncio.timeout(20):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def serve(app: web.Application) -> None:
    """Serve on a free port of the loopback interface until whoever started this closes the pipe."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)

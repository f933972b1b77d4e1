"""MCP servers of the tests: how they are started and called, and how long the event loop stood still meanwhile."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from journeyman import Agent, Approve, Policy, ToolCallRecord, ToolLibrary, run
from journeyman.sources import McpServer
from journeyman.testing import ScriptedModel, call, say
from tests.waiting import WAIT_SECONDS

HOSTILE = Path(__file__).parent / "hostile"
PLAIN = Path(__file__).parent / "plain_server.py"


PATIENT: dict[str, Any] = {"start_seconds": WAIT_SECONDS, "timeout_seconds": WAIT_SECONDS}
"""A server is a program that must start, and a machine may have much else to do."""


def hostile(name: str, **options: Any) -> McpServer:
    """The server in the file of this name."""
    return McpServer(command=[sys.executable, str(HOSTILE / f"{name}.py")], name="bad", **PATIENT | options)


@asynccontextmanager
async def hostile_web(name: str, **options: Any) -> AsyncIterator[McpServer]:
    """The same for one that speaks HTTP: it is started here, and connected to by whoever opens the source."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(HOSTILE / f"{name}.py"), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        yield McpServer(url=f"http://127.0.0.1:{port}/mcp", name="bad", **PATIENT | options)
    finally:
        process.kill()
        await process.wait()


async def yes(_: Any) -> Approve:
    return Approve()


async def record_of(library: ToolLibrary, tool: str, approver: Any = yes, **arguments: Any) -> ToolCallRecord:
    """What became of one call, in a run of its own."""
    agent = Agent(name="tester", instruction="Test.", tools=[library[tool].specification])
    model = ScriptedModel([call(tool, **arguments), say("done")])
    response = await run(agent, "Go on.", library=library, model=model, approver=approver, policy=Policy(breaker=None))
    [record] = response.tool_calls
    return record


class Lag:
    """Measures for how long the event loop was kept from other work, at most.

    A turn of the loop counts with the CPU time of its thread: what others do on a busy machine is no stall of ours.
    """

    worst = 0.0

    async def __aenter__(self) -> Lag:
        self._task = asyncio.create_task(self._measure())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _measure(self) -> None:
        while True:
            spent = time.thread_time()
            await asyncio.sleep(0.002)
            self.worst = max(self.worst, time.thread_time() - spent)

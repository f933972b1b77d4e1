"""A program that is traced by the environment: begins a run and hangs, or resumes it and brings it to its end."""

from __future__ import annotations

import asyncio
import sys

from journeyman import Agent, Journeyman, ToolLibrary, tool
from journeyman.telemetry.export import configure
from journeyman.testing import ScriptedModel, call, say

RUN_ID = "run_traced"


@tool(read_only=True)
def look(at: str) -> str:
    """Look at something."""
    return f"canary-result {at}"


@tool(read_only=True)
async def wait() -> str:
    """Wait for something. The first process never sees it."""
    if sys.argv[2] == "begin":
        await asyncio.Event().wait()
    return "it came"


@tool(risk="irreversible")
def delete(name: str) -> str:
    """Delete something."""
    return name


LIBRARY = ToolLibrary([look, wait, delete])
AGENT = Agent(name="tracer", instruction="Trace.", tools=LIBRARY.specifications())
MODEL = ScriptedModel(
    [call("look", at="canary-argument"), call("wait"), call("delete", name="x"), say("canary-answer")]
)


async def main(store: str, what: str) -> None:
    assert configure()
    async with Journeyman(library=LIBRARY, store=store, model=MODEL, poll_seconds=0.05, lease_seconds=1) as app:
        if what == "begin":
            handle = await app.start(AGENT, "canary-task", run_id=RUN_ID)
            await handle.result()
        [handle] = await app.resume(RUN_ID)
        while not (status := await handle.wait()).ended:
            assert status == "awaiting_approval", status
            for approval in await app.approvals.pending():
                await app.approvals.approve(approval.id, by="grace")
        print((await handle.result()).answer)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))

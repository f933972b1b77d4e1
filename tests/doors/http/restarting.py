"""A server in a process of its own, which can be killed at any moment. Run with a store and a port file."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from journeyman import Agent, RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.app.service import open_service
from journeyman.doors.http import serve
from journeyman.testing import ScriptedModel, call, say

STEPS = 6


async def main(store: str, folder: Path) -> None:
    @tool(risk=RiskLevel.REVERSIBLE, idempotent=True)
    async def work(step: int, context: ToolContext) -> str:
        """Work for a moment. Use when told so."""
        await asyncio.sleep(0.1)
        with (folder / "ledger").open("a") as ledger:
            ledger.write(f"{context.idempotency_key}\n")
        return f"step {step} is done"

    agent = Agent(name="worker", instruction="Work.", tools=[work])
    model = ScriptedModel([*(call("work", step=step) for step in range(STEPS)), say("All is done.")])
    library = ToolLibrary([work])
    async with open_service(store=store, library=library, agents=[agent], model=model, poll_seconds=0.05) as service:

        def ready(port: int) -> None:
            (folder / "port.new").write_text(str(port))
            os.replace(folder / "port.new", folder / "port")

        await serve(service, port=0, ready=ready)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

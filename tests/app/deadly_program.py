"""Runs of which one kills its process: ``python -m tests.app.deadly_program STORE NEIGHBOURS``. To be run again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys

from journeyman import Agent, ToolLibrary, tool
from journeyman.app.journeyman import Journeyman
from journeyman.core.protocols import Deltas
from journeyman.core.runs import RunStatus, TaskInput
from journeyman.core.storing import RunOrder
from journeyman.models import ModelRequest, ModelResponse
from journeyman.testing import call, say, together
from tests.waiting import until

DEADLY = "deadly"


@tool(risk="reversible", idempotent=True)
def end_process(order_id: str) -> str:
    """Kill the process. Use when asked to."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@tool(risk="reversible", idempotent=True)
async def stamp(order_id: str) -> str:
    """Stamp an order. Use when it was checked."""
    # Long enough to be under way whenever the deadly run kills the process.
    await asyncio.sleep(0.5)
    return "stamped"


class Planner:
    """What a run is asked for says which tool it calls; then it answers."""

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        if request.step > 1:
            return say("Done.")
        asked = next(message.content for message in request.messages if message.role == "user")
        return together(call("end_process" if asked == DEADLY else "stamp", order_id="W-1"))


async def main(url: str, neighbours: int) -> dict[str, str]:
    library = ToolLibrary([end_process, stamp])
    agent = Agent(name="clerk", instruction="Help.", tools=library.specifications())
    async with Journeyman(library=library, store=url, model=Planner(), poll_seconds=0.05) as app:
        for number in range(neighbours + 1):
            task = TaskInput(description="stamp" if number else DEADLY)
            run_id = f"neighbour-{number}" if number else DEADLY
            order = RunOrder(run_id=run_id, agent=agent.snapshot, task=task, created_at=float(number))
            await app.store.runs.create(order)
        await app.resume()

        async def at_rest() -> bool:
            rows = await app.store.runs.list(limit=100)
            return all(row.status.ended or row.status is RunStatus.STUCK for row in rows)

        await until(at_rest)
        return {row.id: row.status.value for row in await app.store.runs.list(limit=100)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2])))))

"""One process of the measurement: durable runs, eight at a time, until the time is over."""

import asyncio
import json
import sys
import time

from journeyman import Agent, Journeyman, RiskLevel, ToolLibrary, tool
from journeyman.testing import ScriptedModel, call, say

AT_ONCE = 8
STEPS = 2
"""Of a run: a call, and the answer."""


@tool(risk=RiskLevel.REVERSIBLE)
async def note(text: str) -> str:
    """Note something. Use when it is to be kept."""
    return "noted"


async def main(url: str, seconds: float) -> None:
    library = ToolLibrary([note])
    agent = Agent(name="scale", instruction="Note it.", tools=library.specifications())
    steps = 0
    async with Journeyman(
        library=library, store=url, model=ScriptedModel([call("note", text="x"), say("Noted.")])
    ) as app:
        begin, until = time.process_time(), time.monotonic() + seconds

        async def one_after_another() -> None:
            nonlocal steps
            while time.monotonic() < until:
                await (await app.start(agent, "Note x")).result()
                steps += STEPS

        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
        print(json.dumps({"steps": steps, "cpu": time.process_time() - begin}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))

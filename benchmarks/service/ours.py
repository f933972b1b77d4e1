"""Our service with the same tool, everything on: SQLite file, governance, facts with numbers."""

from __future__ import annotations

import asyncio
import sys

from journeyman import Agent, Policy, RiskLevel, ToolLibrary, tool
from journeyman.app.service import open_service
from journeyman.doors.http import ServeOptions, serve


@tool(read_only=True)
async def look(place: str) -> str:
    """Look at a place. Use when somebody wants to know."""
    return f"nothing at {place}"


@tool(risk=RiskLevel.IRREVERSIBLE)
async def erase(place: str) -> str:
    """Erase a place. Use when somebody asks for exactly that."""
    return f"erased {place}"


async def main(model_url: str, store: str) -> None:
    agent = Agent(name="bench", instruction="Help.", model=f"{model_url}#any", tools=[look, erase])
    async with open_service(
        store=store, library=ToolLibrary([look, erase]), agents=[agent], policy=Policy(stored_approval_seconds=3600)
    ) as service:
        options = ServeOptions(requests_per_minute=10_000_000)
        serving = asyncio.create_task(
            serve(service, port=0, options=options, ready=lambda port: print(port, flush=True))
        )
        await asyncio.to_thread(sys.stdin.read)
        serving.cancel()
        await asyncio.wait((serving,))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))

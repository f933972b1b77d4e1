"""Goes on with a fork, to be killed anywhere and run again: ``python -m tests.replay.fork_program STORE LEDGER``.

The first time there is no run yet: then it makes the parent, and ends. Whoever runs it plays the person, too.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from journeyman import Agent, Journeyman, RiskLevel, ToolLibrary, tool
from journeyman.app.handles import Handle
from journeyman.core.runs import RunStatus
from journeyman.stores.store import open_store
from journeyman.testing import ScriptedModel, call, crashing, say, together

PARENT = "run_of_the_parent"
TURNS: list[Any] = [
    together(call("look", shelf="a"), call("burn", shelf="a")),
    call("burn", shelf="b"),
    call("look", shelf="b"),
    say("Warm."),
]


def tools(ledger: Path) -> ToolLibrary:
    def note(text: str) -> None:
        with ledger.open("a") as file:
            file.write(f"{text}\n")

    @tool(read_only=True)
    def look(shelf: str) -> str:
        """Look at a shelf. Use when asked for one."""
        return f"{shelf} is there"

    @tool(risk=RiskLevel.IRREVERSIBLE)
    def burn(shelf: str) -> str:
        """Burn a shelf. Use when it is cold."""
        note(shelf)
        return "ashes"

    return ToolLibrary([look, burn])


def burnt(ledger: Path) -> list[str]:
    return ledger.read_text().split()


async def ended(app: Journeyman, handle: Handle, ledger: Path) -> None:
    while not (status := await handle.wait()).ended:
        if status is RunStatus.AWAITING_RESOLUTION:
            for record in await handle.unknown():
                there = record.arguments["shelf"] in burnt(ledger)
                await handle.resolve(record.call_id, "done" if there else "rerun", result="ashes", by="grace")
        for approval in await app.approvals.pending(run_id=handle.run_id):
            await app.approvals.approve(approval.id, by="grace")


async def main(url: str, path: str) -> None:
    ledger = Path(path)
    library = tools(ledger)
    agent = Agent(name="stoker", instruction="Keep it warm.", tools=library.specifications())
    store = open_store(url)
    async with Journeyman(library=library, store=crashing(store), model=ScriptedModel(TURNS)) as app:
        if await app.store.runs.get(PARENT) is None:
            return await ended(app, await app.start(agent, "It is cold", run_id=PARENT), ledger)
        handles = await app.resume()
        forks = await app.store.runs.forks(PARENT)
        handle = handles[0] if handles else await app.handle(forks[0].id) if forks else await app.fork(PARENT, at=2)
        await ended(app, handle, ledger)
        print(len(await app.store.runs.forks(PARENT)), (await handle.result()).answer)
    return None


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

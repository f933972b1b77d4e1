"""The durable program, to be killed anywhere and run again: ``python -m tests.app.durable_program STORE LEDGER``.

Whoever runs it plays the person, too: approves what waits, and settles unknown calls by looking into the ledger.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.core.errors import ApprovalError
from journeyman.core.runs import RunStatus
from journeyman.stores.store import open_store
from journeyman.testing import crashing
from tests.app.shop import ADA, Ledger, clerk, shop, whole_day

DIE_AT_LINE = "PROGRAM_DIES_AT"
RUN = "run_of_the_day"

_lines = itertools.count(1)


def line() -> None:
    """Between two lines of the program: the place to die, if this is the one."""
    if str(next(_lines)) == os.environ.get(DIE_AT_LINE):
        os.kill(os.getpid(), signal.SIGKILL)


async def settle(handle: Handle, ledger: Ledger) -> list[str]:
    """Settle what is unknown, as a person would who can see whether the effect is there."""
    unknown = [record.call_id for record in await handle.unknown()]
    for call_id in unknown:
        if ledger.holds(f"{handle.run_id}.{call_id}"):
            await handle.resolve(call_id, "done", result="found in the ledger", by="grace")
        else:
            await handle.resolve(call_id, "rerun", by="grace")
    return unknown


async def main(url: str, path: str) -> dict[str, Any]:
    """What the person at the screen sees at the end."""
    ledger = Ledger(Path(path))
    library = shop(ledger)
    unknown: list[str] = []
    line()
    async with Journeyman(library=library, store=crashing(open_store(url)), model=whole_day()) as app:
        line()
        handles = await app.resume()
        line()
        # A run that has ended is none of those; starting it again under its own name does no harm.
        handle = handles[0] if handles else await app.start(clerk(library), "Delete them", principal=ADA, run_id=RUN)
        line()
        while not (status := await handle.wait()).ended:
            line()
            if status is RunStatus.AWAITING_RESOLUTION:
                unknown += await settle(handle, ledger)
                line()
            for approval in (await app.approvals.pending())[:1]:  # one by one, so that every run has the same facts
                line()
                try:
                    await app.approvals.approve(approval.id, by="grace")
                except ApprovalError as error:
                    print(error, file=sys.stderr)
                line()
        response = await handle.result()
        line()
        facts = [event.seq async for event in handle.events(after=0)]
        line()
    line()
    return {
        "status": response.status,
        "answer": response.answer,
        "calls": [[record.tool_name, record.status] for record in response.tool_calls],
        "facts": facts,
        "unknown": unknown,
        "lines": next(_lines) - 1,
    }


def in_child(url: str, path: str, environment: dict[str, str], told: str) -> None:
    """The program in a forked process, which spares the imports; what it tells goes into a file."""
    os.environ.update(environment)
    Path(told).write_text(json.dumps(asyncio.run(main(url, path))))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))

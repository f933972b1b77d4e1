"""The process that the demo kills: carries out one request in a store and says on stdout, line by line, how far it is.

``python -m journeyman.doors.cli.demo URL SESSION SENTENCE``. It has no engine of its own, which would take long to
load: what it asks the model is a line on stdout, and the answer a line on stdin.
"""

from __future__ import annotations

import asyncio
import sys

from journeyman.app import Journeyman, open_store, task_assistant, task_library
from journeyman.doors.cli.demo.relay import Relayed


async def carry_out(url: str, session: str, sentence: str) -> None:
    store = open_store(url)
    library = task_library(store, github_url=None)
    async with Journeyman(library=library, store=store, model=Relayed()) as app:
        handle = await app.session(session).send(task_assistant(library), sentence)
        print(handle.run_id, flush=True)
        async for event in handle.events():
            if event.seq is not None:
                print(event.type, flush=True)


if __name__ == "__main__":
    asyncio.run(carry_out(*sys.argv[1:]))

"""A program of the library's: ``python -m benchmarks.soak.program STORE MODEL FILE SEED`` begins durable runs.

It leaves them to the workers, follows their facts to the end, and writes what it saw to the file, a line each. It
begins nothing new when its standard input is closed, and leaves when its runs have ended.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from benchmarks.crash.workload import patient
from benchmarks.soak.workload import Orders, agent, library
from journeyman import Journeyman, Principal
from journeyman.core.errors import StoreError

AT_ONCE = 3
FIRST_ORDER = 9_000_000
PRINCIPAL = Principal("program", permissions={"money"})


class Program:
    def __init__(self, app: Journeyman, path: Path, chance: random.Random) -> None:
        self._app = app
        self._path = path
        self._chance = chance
        self._orders = Orders(chance, first=FIRST_ORDER)
        self.leaving = asyncio.Event()

    async def work(self) -> None:
        while not self.leaving.is_set():
            await self._one()
            await asyncio.sleep(self._chance.uniform(0.1, 0.6))

    async def _one(self) -> None:
        run_id, message, began = f"run_{uuid.uuid4().hex}", self._orders.next(), time.monotonic()
        while True:
            try:
                handle = await self._app.start(agent, message, principal=PRINCIPAL, run_id=run_id)
                break
            except StoreError as error:
                self._tell(away=str(error)[:200])
                await asyncio.sleep(0.5)
        self._tell(begun=run_id)
        last = 0
        while True:
            try:
                async for event in handle.events(after=last):
                    if event.seq is not None:
                        if event.seq != last + 1:
                            self._tell(gap=f"{run_id}: {event.seq} after {last}")
                        last = event.seq
                break
            except StoreError as error:
                self._tell(away=str(error)[:200])
                await asyncio.sleep(0.5)
        self._tell(ended=run_id, last=last, seconds=time.monotonic() - began)

    def _tell(self, **what: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(what) + "\n")


async def main(store: str, model: str, path: str, seed: str) -> None:
    async with Journeyman(library=library, store=store, model=model, policy=patient(), workers=True) as app:
        program = Program(app, Path(path), random.Random(int(seed)))
        working = [asyncio.create_task(program.work()) for _ in range(AT_ONCE)]
        await asyncio.to_thread(sys.stdin.read)
        program.leaving.set()
        await asyncio.gather(*working)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

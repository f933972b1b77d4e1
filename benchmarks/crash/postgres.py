"""The campaign on PostgreSQL: two workers at a time, each killed and replaced by the next, over one queue of runs."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks.crash.children import FORKS, attend, worker
from benchmarks.crash.findings import Findings, Start, taken_up_open
from benchmarks.crash.workload import ADA, Ledger, clerk, patient, script, tools
from journeyman.app.handles import Handle
from journeyman.app.journeyman import Journeyman
from journeyman.core.events import Fact, RunResumed
from journeyman.core.runs import RunStatus
from journeyman.testing import CrashPoint, crash_points

WORKERS = 2
IN_FLIGHT = 5
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 120.0


@dataclass
class Victim:
    """A worker and how it is to die: at a point of its own, or when its time has come."""

    process: BaseProcess
    point: CrashPoint | None
    dies_at: float | None


class PostgresCampaign:
    def __init__(self, folder: Path, url: str) -> None:
        self.findings = Findings("postgresql")
        self._url = url
        self._ledger = Ledger(str(folder / "ledger"))
        self._ledger_path = str(folder / "ledger")
        self._deaths: list[CrashPoint | float] = []
        self._handles: dict[str, Handle] = {}
        self._expected: set[Start] = set()
        self._kills: list[tuple[float, list[str]]] = []
        """When, and which runs the killed one held."""

    def run(self, *, facts: int, every: int, kills: int) -> Findings:
        began = time.monotonic()
        points = list(crash_points(facts))[::every]
        self._deaths = [*points, *(random.uniform(0.3, 1.5) for _ in range(kills))]
        asyncio.run(self._campaign())
        self.findings.seconds = time.monotonic() - began
        return self.findings

    async def _campaign(self) -> None:
        library = tools(self._ledger)
        client = Journeyman(library=library, store=self._url, model=script(), policy=patient(), workers=True)
        async with client as app:
            person = asyncio.create_task(self._attend(app))
            victims: list[Victim] = []
            while self._deaths or victims:
                await self._feed(app)
                victims = [victim for victim in victims if not await self._dead(app, victim)]
                while self._deaths and len(victims) < WORKERS:
                    victims.append(self._hire(self._deaths.pop(0)))
                    _show(f"{len(self._deaths)} kills to come")
                await asyncio.sleep(POLL_SECONDS)
            await self._wind_up()
            person.cancel()
            await asyncio.gather(person, return_exceptions=True)
            journals = {run_id: await app.store.runs.facts(run_id) for run_id in self._handles}
        # A worker that takes a run over at once may be faster than our look at what the kill has left.
        late = set().union(*(taken_up_open(facts) for facts in journals.values())) - self._expected
        self.findings.seen_late = len(late)
        self._expected |= late
        self.findings.takeover_seconds = self._takeovers(journals)
        self.findings.conclude(journals, self._ledger, self._expected)

    def _hire(self, death: CrashPoint | float | None) -> Victim:
        point = death if isinstance(death, CrashPoint) else None
        process = FORKS.Process(target=worker, args=(self._url, self._ledger_path, point))
        process.start()
        return Victim(process, point, time.monotonic() + death if isinstance(death, float) else None)

    async def _dead(self, app: Journeyman, victim: Victim) -> bool:
        process = victim.process
        if victim.dies_at is not None and time.monotonic() >= victim.dies_at:
            process.kill()
            process.join()
        if process.is_alive():
            return False
        killed_at = time.time()
        assert process.exitcode == -signal.SIGKILL, f"a worker ended with {process.exitcode}"
        if victim.point is None:
            self.findings.kills_at_random += 1
        else:
            self.findings.kills_at_boundaries += 1
        rows = await app.store.runs.list(statuses=[RunStatus.RUNNING, RunStatus.QUEUED], limit=100)
        held = [row.id for row in rows if row.owner is not None and row.owner.split("/")[1] == str(process.pid)]
        self.findings.note_kill({name: await app.store.runs.facts(name) for name in held}, self._expected)
        self._kills.append((killed_at, held))
        return True

    async def _feed(self, app: Journeyman) -> None:
        """Keep the workers busy."""
        under_way = [name for name, handle in self._handles.items() if not (await handle.status()).ended]
        for _ in range(IN_FLIGHT - len(under_way)):
            name = f"run_{len(self._handles):04}"
            self._handles[name] = await app.start(clerk(app.library), "Do it", principal=ADA, run_id=name)

    async def _attend(self, app: Journeyman) -> None:
        """The person, all the time."""
        while True:
            for handle in list(self._handles.values()):
                status = await handle.status()
                if status.waiting:
                    await attend(app, handle, self._ledger, status)
            await asyncio.sleep(POLL_SECONDS)

    async def _wind_up(self) -> None:
        """Let two workers that nobody kills finish what is left."""
        last = [self._hire(None) for _ in range(WORKERS)]
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                for handle in self._handles.values():
                    async for _ in handle.events():
                        pass  # to the end
        except TimeoutError:
            _show("runs did not end in time")
        for victim in last:
            victim.process.terminate()
            await asyncio.to_thread(victim.process.join, 30)

    def _takeovers(self, journals: dict[str, Sequence[Fact]]) -> list[float]:
        found = []
        for killed_at, held in self._kills:
            for name in held:
                later = [f.time for f in journals[name] if isinstance(f, RunResumed) and f.time > killed_at]
                found += [later[0] - killed_at] if later else []
        return found


def _show(text: str) -> None:
    print(f"postgresql: {text}", file=sys.stderr)

"""A soak: ``python -m benchmarks.soak --minutes 30``. Exit code 1 when anything was lost, doubled, cut or misnamed."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.crash.workload import Ledger
from benchmarks.postgres import postgres
from benchmarks.soak.clients import Client, Page, Person, Reader, Sdk
from benchmarks.soak.faults import Faults
from benchmarks.soak.findings import Findings
from benchmarks.soak.observed import Observed
from benchmarks.soak.processes import TOKEN_OF, Process, Samples, ServiceProcess
from benchmarks.soak.workload import LEDGER, FailingModel, Orders
from journeyman.core.errors import StoreError
from journeyman.core.runs import RunStatus
from journeyman.stores.store import SqlStore, open_store

QUICK_MINUTES = 1.0
PATIENCE_SECONDS = 240.0
"""For everything to end when nothing is wrong any more: eight leases."""
PAGES, READERS, SDKS = 2, 3, 2


class Soak:
    def __init__(self, folder: Path, server: Any, *, minutes: float, seed: int) -> None:
        self._folder = folder
        self._server = server
        self._store: str = server.get_uri()
        self._seconds = minutes * 60
        self._seed = seed
        self._ledger = Ledger(str(folder / "ledger"))
        self._told = folder / "program.jsonl"
        self._observed = Observed()
        self._findings = Findings()
        self._numbers = 0

    async def run(self) -> dict[str, Any]:
        environment = {LEDGER: str(self._folder / "ledger")}
        async with FailingModel(self._chance()) as model:
            address = f"{model.url}#any"
            service = await ServiceProcess.start(self._folder, store=self._store, model=address, **environment)
            arguments = [self._store, address, str(self._told), str(self._seed)]
            command = ["-m", "benchmarks.soak.program", *arguments]
            program = await Process.start(command, self._folder / "program.log", **environment)
            try:
                document = await self._soak(service, program, model)
            finally:
                await program.leave()
                await service.process.leave()
        return document

    def _chance(self) -> random.Random:
        """Of each part its own, so that one does not change what another does."""
        self._numbers += 1
        return random.Random(self._seed * 1_000 + self._numbers)

    def _clients(self, url: str) -> tuple[list[Page | Reader | Sdk], Person]:
        def given(who: str) -> tuple[str, str, Observed, random.Random]:
            return url, TOKEN_OF[who], self._observed, self._chance()

        def orders() -> Orders:
            return Orders(self._chance(), first=self._numbers * 100_000)

        found: list[Page | Reader | Sdk] = [Page(*given("page"), orders=orders()) for _ in range(PAGES)]
        found += [Reader(*given("reader"), orders=orders(), slow=number == 0) for number in range(READERS)]
        found += [Sdk(*given("sdk"), orders=orders()) for _ in range(SDKS)]
        return found, Person(*given("person"), ledger=self._ledger)

    async def _soak(self, service: ServiceProcess, program: Process, model: FailingModel) -> dict[str, Any]:
        clients, person = self._clients(service.url)
        samples = Samples(service, program, self._store)
        pauses = (1.0, 4.0) if self._seconds < 180 else (3.0, 20.0)
        faults = Faults(service, model, self._server, self._chance(), self._store, pauses)
        working = [asyncio.create_task(client.work()) for client in clients]
        always = [asyncio.create_task(work) for work in (person.work(), samples.keep(), self._show(samples, faults))]
        began = time.monotonic()
        disturbing = asyncio.create_task(faults.keep())
        done, _ = await asyncio.wait(
            (disturbing, *working, *always), timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            task.result()  # nobody ends before, unless with an error
        faults.leaving.set()
        await disturbing
        for client in clients:
            client.leaving.set()
        leaving = asyncio.create_task(program.leave(close=True))
        drained = await self._drained([*working, leaving])
        for task in always:
            task.cancel()
        await asyncio.gather(*always, return_exceptions=True)
        everybody: list[Client] = [*clients, person]
        for who in everybody:
            await who.close()
        self._note_program()
        await self._conclude(faults)
        return self._document(samples, faults, seconds=time.monotonic() - began, drained=drained, model=model)

    async def _drained(self, working: list[asyncio.Task[None]]) -> float:
        """How long everything takes to end when nothing is wrong any more."""
        began = time.monotonic()
        await asyncio.wait(working, timeout=PATIENCE_SECONDS)
        for task in working:
            if not task.done():
                self._observed.trouble.append(f"a client did not come to its end: {task.get_coro()}")
                task.cancel()
        for found in await asyncio.gather(*working, return_exceptions=True):
            if isinstance(found, Exception):
                raise found
        store = open_store(self._store)
        await store.open()
        try:
            while time.monotonic() - began < PATIENCE_SECONDS:
                try:
                    if not await store.runs.list(statuses=[s for s in RunStatus if not s.ended], limit=1):
                        break
                except StoreError:
                    pass  # the connections were terminated a moment ago
                await asyncio.sleep(0.5)
        finally:
            await store.close()
        return time.monotonic() - began

    def _note_program(self) -> None:
        lines = self._told.read_text().splitlines() if self._told.exists() else []
        for told in map(json.loads, lines):
            if "begun" in told:
                self._observed.begun[told["begun"]] = "program"
            elif "ended" in told:
                self._observed.ended.add(told["ended"])
                self._observed.seen[told["ended"]] = told["last"]
                self._observed.seconds["program: ended"].append(told["seconds"])
            elif "gap" in told:
                self._observed.gaps.append(f"program: {told['gap']}")
            else:
                self._observed.counts["program: store away"] += 1

    async def _conclude(self, faults: Faults) -> None:
        ledger, last, asked = Counter(self._ledger.lines()), dict[str, int](), dict[str, str]()
        store = open_store(self._store)
        await store.open()
        try:
            while rows := await store.runs.list(limit=500, offset=len(last)):
                for row in rows:
                    facts = await store.runs.facts(row.id)
                    last[row.id] = row.last_seq
                    asked[row.id] = self._findings.run(row.id, facts, ledger, faults.kills)
            self._findings.unrecorded += [f"{key} ({name})" for name, key in ledger]
            self._findings.compare(self._observed, last, asked)
            await self._leave_evidence(store)
        finally:
            await store.close()

    async def _leave_evidence(self, store: SqlStore) -> None:
        """The journals of the runs with which something is wrong, for ``--keep``."""
        wrong = [*self._observed.gaps, *self._observed.repeats, *self._findings.wrong()]
        for run_id in {found[0] for item in wrong if (found := re.search(r"run_\w+", item)) is not None}:
            facts = await store.runs.facts(run_id)
            text = "".join(fact.model_dump_json() + "\n" for fact in facts)
            (self._folder / f"{run_id}.jsonl").write_text(text)

    async def _show(self, samples: Samples, faults: Faults) -> None:
        minute = 0
        while True:
            await asyncio.sleep(60)
            minute += 1
            seen, done = self._observed, ", ".join(f"{name} {count}" for name, count in faults.done.items())
            text = (
                f"{len(seen.begun)} runs of clients begun, {len(seen.ended)} followed to their end; {samples.latest()}"
            )
            print(f"minute {minute}: {text}; faults: {done}", file=sys.stderr, flush=True)
            for wrong in (*seen.gaps[:3], *seen.repeats[:3], *seen.trouble[:3]):
                print(f"  {wrong}", file=sys.stderr, flush=True)

    def _document(
        self, samples: Samples, faults: Faults, *, seconds: float, drained: float, model: FailingModel
    ) -> dict[str, Any]:
        seen = self._observed
        connections = samples.connections or [0]
        return {
            "seed": self._seed,
            "seconds": round(seconds),
            "seconds_to_end_after_the_last_fault": round(drained, 1),
            "faults": {**faults.done, "model answers failed": model.failed, "model answers": model.answered},
            "begun_by": dict(Counter(seen.begun.values())),
            "followed_to_their_end": len(seen.ended),
            **self._findings.document(),
            "gaps": seen.gaps,
            "repeats": seen.repeats,
            "trouble": seen.trouble,
            "latencies": seen.latencies(),
            "counts": dict(sorted(seen.counts.items())),
            "processes": samples.document(),
            "connections": {"most": max(connections), "last": connections[-1]},
            "passed": self._findings.passed(seen),
        }


def table(document: dict[str, Any]) -> str:
    lines = []
    for name, value in document.items():
        label = name.replace("_", " ")
        if isinstance(value, list):
            lines += [f"{label:40}{len(value)}", *(f"    {item}" for item in value[:20])]
        elif isinstance(value, dict):
            lines.append(f"{label}:")
            lines += [f"    {key:36}{_cell(item)}" for key, item in value.items()]
        else:
            lines.append(f"{label:40}{value}")
    return "\n".join(lines)


def _cell(item: Any) -> str:
    return ", ".join(f"{key} {value}" for key, value in item.items()) if isinstance(item, dict) else str(item)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long (default 30)")
    parser.add_argument("--quick", action="store_true", help="a minute, with every kind of fault once")
    parser.add_argument("--seed", type=int, help="of everything that is random; it is printed at the end")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the logs and the ledger there")
    chosen = parser.parse_args()
    minutes = QUICK_MINUTES if chosen.quick else chosen.minutes
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    with tempfile.TemporaryDirectory(prefix="jm-soak-") as temporary, postgres() as server:
        folder = Path(temporary) if chosen.keep is None else chosen.keep
        folder.mkdir(exist_ok=True)
        document = asyncio.run(Soak(folder, server, minutes=minutes, seed=seed).run())
    print(json.dumps(document, indent=1) if chosen.json else table(document))
    return 0 if document["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())

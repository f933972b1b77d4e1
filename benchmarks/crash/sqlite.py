"""The campaign on SQLite: one process that does everything, killed, and another that goes on."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.crash.children import FORKS, program
from benchmarks.crash.findings import Findings, Start
from benchmarks.crash.workload import Ledger
from journeyman.core.events import Fact, RunResumed
from journeyman.stores.store import open_store
from journeyman.testing import CrashPoint, crash_points

PATIENCE_SECONDS = 120.0
RUNS_AT_ONCE = 4


class SqliteCampaign:
    """One store and one ledger for all kills."""

    def __init__(self, folder: Path) -> None:
        self.findings = Findings("sqlite")
        self._url = f"sqlite:///{folder / 'store.db'}"
        self._ledger_path = str(folder / "ledger")
        self._run_ids: list[str] = []
        self._expected: set[Start] = set()

    def run(self, *, every: int, kills: int) -> Findings:
        """Kill at every so-many-th boundary, and so many times at random."""
        began = time.monotonic()
        self._at_boundaries(every)
        self._at_random(kills)
        self.findings.conclude(self._journals(self._run_ids), Ledger(self._ledger_path), self._expected)
        self.findings.seconds = time.monotonic() - began
        return self.findings

    def _at_boundaries(self, every: int) -> None:
        [undisturbed] = self._new_runs(1)
        assert self._process([undisturbed]) == 0, "the program fails without a kill"
        facts = len(self._journals([undisturbed])[undisturbed])
        for point in list(crash_points(facts))[::every]:
            names = self._new_runs(1)
            self.findings.kills_at_boundaries += self._killed(names, point=point)
            self._finish(names)
            _show("sqlite", f"boundary {point} of {facts}")

    def _at_random(self, kills: int) -> None:
        names: list[str] = []
        while self.findings.kills_at_random < kills:
            if not names:
                names = self._new_runs(RUNS_AT_ONCE)
            # Sometimes while it still opens, mostly while it works, now and then too late.
            if self._killed(names, after=random.uniform(0.02, 0.7)):
                self.findings.kills_at_random += 1
                _show("sqlite", f"random kill {self.findings.kills_at_random} of {kills}")
            else:
                names = []
        self._finish(names)

    def _new_runs(self, count: int) -> list[str]:
        names = [f"run_{len(self._run_ids) + number:04}" for number in range(count)]
        self._run_ids += names
        return names

    def _process(
        self, names: Sequence[str], *, point: CrashPoint | None = None, after: float | None = None
    ) -> int | None:
        child = FORKS.Process(target=program, args=(self._url, self._ledger_path, names, point))
        child.start()
        child.join(PATIENCE_SECONDS if after is None else after)
        if child.exitcode is None:
            child.kill()
            child.join()
            assert after is not None, f"{names} did not end within {PATIENCE_SECONDS:g} s"
        return child.exitcode

    def _killed(self, names: Sequence[str], *, point: CrashPoint | None = None, after: float | None = None) -> bool:
        code = self._process(names, point=point, after=after)
        assert code in (0, -signal.SIGKILL), f"a process ended with {code}"
        if code == 0:
            return False
        killed_at = time.time()
        journals = self._journals(names)
        self.findings.note_kill(journals, self._expected)
        self._last_kill = (killed_at, {name: len(facts) for name, facts in journals.items()})
        return True

    def _finish(self, names: Sequence[str]) -> None:
        if not names:
            return
        assert self._process(names) == 0, f"{names} could not be finished"
        killed_at, lengths = self._last_kill
        for name, facts in self._journals(names).items():
            self.findings.takeover_seconds += _takeover(facts[lengths.get(name, 0) :], killed_at)

    def _journals(self, names: Iterable[str]) -> Mapping[str, Sequence[Fact]]:
        async def read() -> Mapping[str, Sequence[Fact]]:
            store = open_store(self._url)
            await store.open()
            try:
                return {name: await store.runs.facts(name) for name in names}
            finally:
                await store.close()

        return asyncio.run(read())


def _takeover(facts: Sequence[Fact], killed_at: float) -> list[float]:
    """From the kill until another process had taken the run up."""
    return [fact.time - killed_at for fact in facts if isinstance(fact, RunResumed)][:1]


def _show(database: str, text: str) -> None:
    print(f"{database}: {text}", file=sys.stderr)

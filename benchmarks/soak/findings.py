"""What became of the runs and their effects: the journals beside the ledger, and beside what clients saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.soak.observed import Observed
from benchmarks.soak.workload import ONCE
from journeyman.core.calls import CallStatus
from journeyman.core.events import CallFinished, CallStarted, Fact, RunFailed, RunFinished, RunStarted
from journeyman.core.runs import RunStatus


@dataclass
class Findings:
    runs: int = 0
    runs_by_status: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    """Of failed runs, by the error's code."""
    calls: Counter[str] = field(default_factory=Counter)
    """By status."""
    effects: int = 0
    safe_repeats: int = 0
    """Read-only and idempotent calls that ran again, under their own key."""
    lost: list[str] = field(default_factory=list)
    """Runs that have not ended, or of which a client was told and that are not there."""
    doubled: list[str] = field(default_factory=list)
    """Effects that may not be repeated and were."""
    missing: list[str] = field(default_factory=list)
    """Successes without an effect."""
    denied_and_done: list[str] = field(default_factory=list)
    """Effects of calls whose record says that they did not succeed."""
    unrecorded: list[str] = field(default_factory=list)
    """Effects of calls that no run has a record of."""
    begun_twice: list[str] = field(default_factory=list)
    """Messages that were sent once, or again with a key, and for which there are two runs."""
    unknown: int = 0
    unknown_without_a_kill: list[str] = field(default_factory=list)
    wrong_failures: list[str] = field(default_factory=list)
    """Runs that failed for another reason than their model's."""
    cut_short: list[str] = field(default_factory=list)
    """Streams that said they were at the end and were not."""

    WRONG = (
        *("lost", "doubled", "missing", "denied_and_done", "unrecorded", "begun_twice"),
        *("unknown_without_a_kill", "wrong_failures", "cut_short"),
    )

    def wrong(self) -> list[str]:
        return [item for name in self.WRONG for item in getattr(self, name)]

    def passed(self, observed: Observed) -> bool:
        return not self.wrong() and not observed.gaps and not observed.repeats

    def run(self, run_id: str, facts: Sequence[Fact], ledger: Counter[tuple[str, str]], kills: Iterable[float]) -> str:
        """One run's journal; returns what it was asked. Its effects are taken out of the ledger."""
        self.runs += 1
        status = next((f.status for f in reversed(facts) if isinstance(f, RunFinished)), None)
        for fact in facts:
            if isinstance(fact, RunFailed):
                status = RunStatus.FAILED
                self.failures[fact.error.code] += 1
                if not fact.error.code.startswith("MODEL_"):
                    self.wrong_failures.append(f"{run_id}: {fact.error.code}: {fact.error.message[:200]}")
        self.runs_by_status["not ended" if status is None else status.value] += 1
        if status is None:
            self.lost.append(f"{run_id}: after {facts[-1].type if facts else 'nothing'}")
        self._calls(run_id, facts, ledger, list(kills))
        return next((fact.task.description for fact in facts if isinstance(fact, RunStarted)), "")

    def _calls(
        self, run_id: str, facts: Sequence[Fact], ledger: Counter[tuple[str, str]], kills: Sequence[float]
    ) -> None:
        started: dict[str, float] = {}
        last: dict[str, CallFinished] = {}
        for fact in facts:
            if isinstance(fact, CallStarted):
                started[fact.call_id] = fact.time
            elif isinstance(fact, CallFinished):
                record = fact.record
                last[record.call_id] = fact
                if record.status is CallStatus.UNKNOWN:
                    self.unknown += 1
                    if not any(started.get(record.call_id, 0.0) <= kill <= fact.time for kill in kills):
                        self.unknown_without_a_kill.append(record.execution_id)
        for fact in last.values():
            record = fact.record
            self.calls[record.status.value] += 1
            times = ledger.pop((record.tool_name, record.execution_id), 0)
            self.effects += times > 0
            if times > 1 and record.tool_name in ONCE:
                self.doubled.append(f"{record.execution_id} ({record.tool_name}): {times} times")
            elif times > 1:
                self.safe_repeats += times - 1
            if record.status is CallStatus.SUCCESS and not times:
                self.missing.append(f"{record.execution_id} ({record.tool_name})")
            elif record.status in (CallStatus.DENIED, CallStatus.CANCELLED) and times:
                self.denied_and_done.append(f"{record.execution_id} ({record.tool_name}): {record.status.value}")

    def compare(self, observed: Observed, last: Mapping[str, int], asked: Mapping[str, str]) -> None:
        """What clients saw beside what is stored: the last number of each run, and what each was asked."""
        self.lost += [
            f"{run_id}: begun by the {who}, not stored" for run_id, who in observed.begun.items() if run_id not in last
        ]
        for run_id in observed.ended:
            if observed.seen.get(run_id, 0) != last.get(run_id):
                self.cut_short.append(f"{run_id}: saw {observed.seen.get(run_id, 0)} of {last.get(run_id)}")
        times = Counter(asked.values())
        self.begun_twice += [message for message, count in times.items() if message and count > 1]

    def document(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "runs": self.runs,
            "runs_by_status": dict(self.runs_by_status),
            "failures": dict(self.failures),
            "calls": dict(self.calls),
            "effects": self.effects,
            "safe_repeats": self.safe_repeats,
            "unknown": self.unknown,
        }
        return {**told, **{name: getattr(self, name) for name in self.WRONG}}

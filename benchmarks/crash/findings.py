"""What became of the runs and of every effect: read from the journals and from the ledger, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.crash.workload import CALLS, ONCE_ONLY, Ledger
from journeyman.core.approvals import ApprovalStatus
from journeyman.core.calls import CallStatus
from journeyman.core.events import (
    ApprovalDecided,
    CallFinished,
    CallStarted,
    Fact,
    RunFinished,
    RunResumed,
    RunSuspended,
)
from journeyman.core.runs import RunStatus

Start = tuple[str, int]
"""A run and the number of the fact that says a call has started."""


def open_starts(facts: Iterable[Fact]) -> set[Start]:
    """Calls without a second chance that are started and have no outcome, not even an unknown one."""
    found: dict[str, Start] = {}
    for fact in facts:
        if isinstance(fact, CallStarted) and fact.tool_name in ONCE_ONLY:
            found[fact.call_id] = (fact.run_id, fact.seq or 0)
        elif isinstance(fact, CallFinished):
            found.pop(fact.record.call_id, None)
    return set(found.values())


def unknown_starts(facts: Iterable[Fact]) -> set[Start]:
    """Calls that were recorded as unknown."""
    started: dict[str, Start] = {}
    found = set()
    for fact in facts:
        if isinstance(fact, CallStarted):
            started[fact.call_id] = (fact.run_id, fact.seq or 0)
        elif isinstance(fact, CallFinished) and fact.record.status is CallStatus.UNKNOWN:
            found.add(started[fact.record.call_id])
    return found


def taken_up_open(facts: Sequence[Fact]) -> set[Start]:
    """Calls without a second chance that had no outcome when another process took the run up."""
    return set().union(
        *(open_starts(facts[:at]) for at, fact in enumerate(facts) if isinstance(fact, RunResumed)), set[Start]()
    )


@dataclass
class Findings:
    """Of one campaign."""

    database: str
    kills_at_boundaries: int = 0
    kills_at_random: int = 0
    runs: int = 0
    runs_lost: int = 0
    effects: int = 0
    duplicates: int = 0
    missing: int = 0
    safe_repeats: int = 0
    """Read-only and idempotent calls that ran again, under their own key."""
    unknown: int = 0
    unknown_without_a_kill: int = 0
    open_but_not_unknown: int = 0
    seen_late: int = 0
    """Calls that a kill left open, and that were taken over before we could look."""
    approved_calls: int = 0
    approved_calls_not_run_once: int = 0
    calls_without_success: int = 0
    cancels: int = 0
    cancels_lost: int = 0
    """Runs that asked a person, or went on without end, after somebody had cancelled them."""
    disturbances: Counter[str] = field(default_factory=Counter)
    """What was done to processes and databases besides killing them."""
    open_at_takeovers: int = 0
    """Calls without a second chance that were under way when another process took the run over."""
    killed_after: Counter[str] = field(default_factory=Counter)
    """The last fact on disk of the runs that were under way."""
    takeover_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def kills(self) -> int:
        return self.kills_at_boundaries + self.kills_at_random

    @property
    def passed(self) -> bool:
        wrong = (
            *(self.runs_lost, self.duplicates, self.missing, self.unknown_without_a_kill),
            *(
                self.open_but_not_unknown,
                self.approved_calls_not_run_once,
                self.calls_without_success,
                self.cancels_lost,
            ),
        )
        return not any(wrong)

    def note_kill(self, journals: Mapping[str, Sequence[Fact]], expected: set[Start]) -> None:
        """Look at the journals of a killed process, at the moment after the kill."""
        for facts in journals.values():
            if facts and not isinstance(facts[-1], RunFinished):
                expected |= open_starts(facts)
                self.killed_after[facts[-1].type] += 1

    def conclude(self, journals: Mapping[str, Sequence[Fact]], ledger: Ledger, expected: set[Start]) -> None:
        """Compare, when all runs should have ended."""
        lines = Counter(ledger.lines())
        self.runs = len(journals)
        unknown: set[Start] = set()
        for run_id, facts in journals.items():
            ended = facts and isinstance(facts[-1], RunFinished) and facts[-1].status is RunStatus.COMPLETED
            self.runs_lost += not ended
            unknown |= unknown_starts(facts)
            self._calls(run_id, facts, lines)
        self.effects = len(lines)
        self.unknown = len(unknown)
        self.unknown_without_a_kill = len(unknown - expected)
        self.open_but_not_unknown = len(expected - unknown)

    def conclude_cancels(
        self, journals: Mapping[str, Sequence[Fact]], ledger: Ledger, cancelled: Mapping[str, int]
    ) -> None:
        """Compare what became of runs that were cancelled after their fact of that number."""
        lines = Counter(ledger.lines())
        self.cancels = len(journals)
        for run_id, facts in journals.items():
            end = facts[-1] if facts and isinstance(facts[-1], RunFinished) else None
            asked = any(isinstance(fact, RunSuspended) and (fact.seq or 0) > cancelled[run_id] for fact in facts)
            self.cancels_lost += end is None or (asked and end.status is not RunStatus.CANCELLED)
            for call_id, tool_name in CALLS.items():
                if tool_name in ONCE_ONLY:
                    self.duplicates += max(0, lines[(tool_name, f"{run_id}.{call_id}")] - 1)

    def _calls(self, run_id: str, facts: Sequence[Fact], lines: Counter[tuple[str, str]]) -> None:
        approved = {
            fact.call_id
            for fact in facts
            if isinstance(fact, ApprovalDecided) and fact.status is ApprovalStatus.APPROVED
        }
        done = {
            fact.record.call_id
            for fact in facts
            if isinstance(fact, CallFinished) and fact.record.status is CallStatus.SUCCESS
        }
        for call_id, tool_name in CALLS.items():
            times = lines[(tool_name, f"{run_id}.{call_id}")]
            self.missing += times == 0
            self.calls_without_success += call_id not in done
            if tool_name in ONCE_ONLY:
                self.duplicates += max(0, times - 1)
            else:
                self.safe_repeats += max(0, times - 1)
            if tool_name == "pay":
                self.approved_calls += call_id in approved
                self.approved_calls_not_run_once += times != 1 or call_id not in approved

    def document(self) -> dict[str, Any]:
        times = sorted(self.takeover_seconds)
        return {
            "database": self.database,
            "kills": self.kills,
            "kills_at_boundaries": self.kills_at_boundaries,
            "kills_at_random": self.kills_at_random,
            "killed_after": dict(sorted(self.killed_after.items())),
            "disturbances": dict(sorted(self.disturbances.items())),
            "open_at_takeovers": self.open_at_takeovers,
            "runs": self.runs,
            "runs_lost": self.runs_lost,
            "effects": self.effects,
            "duplicates": self.duplicates,
            "missing": self.missing,
            "calls_without_success": self.calls_without_success,
            "safe_repeats": self.safe_repeats,
            "unknown": self.unknown,
            "unknown_without_a_kill": self.unknown_without_a_kill,
            "open_but_not_unknown": self.open_but_not_unknown,
            "seen_late": self.seen_late,
            "approved_calls": self.approved_calls,
            "approved_calls_not_run_once": self.approved_calls_not_run_once,
            "cancels": self.cancels,
            "cancels_lost": self.cancels_lost,
            "takeover_seconds_median": round(median(times), 2) if times else None,
            "takeover_seconds_longest": round(times[-1], 2) if times else None,
            "seconds": round(self.seconds, 1),
            "passed": self.passed,
        }

"""What clients see while the soak goes on: the runs they began, the events they got, and how long all of it took."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from statistics import quantiles


@dataclass
class Observed:
    begun: dict[str, str] = field(default_factory=dict)
    """Runs that a client was told of, by the kind of client."""
    seen: dict[str, int] = field(default_factory=dict)
    """The number of the last event of each run that somebody follows."""
    ended: set[str] = field(default_factory=set)
    """Runs whose stream has come to its end."""
    gaps: list[str] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """Everything else that is worth a number: reconnects, statuses, decisions."""
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    trouble: list[str] = field(default_factory=list)
    """Answers that no client should get."""

    def heard(self, run_id: str, seq: int) -> None:
        """A fact of a run has come to the one client that follows this run."""
        last = self.seen.get(run_id, 0)
        if seq <= last:
            self.repeats.append(f"{run_id}: {seq} after {last}")
        elif seq > last + 1:
            self.gaps.append(f"{run_id}: {seq} after {last}")
        self.seen[run_id] = max(seq, last)

    def answered(self, status: int, what: str) -> None:
        self.counts[f"http {status}"] += 1
        if status in (400, 401, 403, 404, 422, 429, 500):
            self.trouble.append(f"{status}: {what}")

    def latencies(self) -> dict[str, dict[str, float]]:
        return {kind: percentiles(taken) for kind, taken in sorted(self.seconds.items()) if taken}


def percentiles(taken: list[float]) -> dict[str, float]:
    cuts = quantiles(taken, n=20) if len(taken) > 1 else taken * 19
    return {"count": len(taken), "p50_s": round(cuts[9], 3), "p95_s": round(cuts[18], 3), "max_s": round(max(taken), 2)}

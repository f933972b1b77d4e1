"""Workers, runs and databases as queues, with costs that were measured: where the next bottleneck is, and how far away.

A run is a person who asks again at once: its step goes to the model, which has no queue here, then to a core of its
worker, then to a core of the database that has its principal. Nothing else is modelled: no network, no failures.
"""

import heapq
import random
from dataclasses import dataclass
from statistics import median, quantiles

CORES = 16
"""Of each database."""
STEPS = 60_000
"""That are simulated; the first fifth only fills the queues."""


@dataclass(frozen=True)
class Costs:
    """Of one step."""

    worker_seconds: float
    database_seconds: float
    commits: float
    wal_bytes: float
    model_seconds: float


@dataclass(frozen=True)
class Found:
    rate: float
    median: float
    slowest: float
    busy: float
    wal: float
    commits: float


class Cores:
    """A few that serve whoever comes first."""

    def __init__(self, count: int) -> None:
        self._free = [0.0] * count
        self.used = 0.0

    def serve(self, at: float, seconds: float) -> float:
        begin = max(at, heapq.heappop(self._free))
        heapq.heappush(self._free, begin + seconds)
        self.used += seconds
        return begin + seconds


def simulate(costs: Costs, *, workers: int, runs: int, shards: int, steps: int = STEPS) -> Found:
    chosen = random.Random(7)
    processes, databases = [Cores(1) for _ in range(workers)], [Cores(CORES) for _ in range(shards)]
    # Each stage is an event of its own, so that cores are asked for in the order of time.
    events = [(chosen.random() * costs.model_seconds, 0, number, 0.0) for number in range(workers * runs)]
    heapq.heapify(events)
    took: list[float] = []
    first = last = 0.0
    steps, done = max(steps, 5 * len(events)), 0
    while done < steps:
        now, stage, number, asked = heapq.heappop(events)
        if stage == 0:
            ends = now + costs.model_seconds * chosen.lognormvariate(-0.125, 0.5)
            heapq.heappush(events, (ends, 1, number, now))
        elif stage == 1:
            heapq.heappush(events, (processes[number % workers].serve(now, costs.worker_seconds), 2, number, asked))
        elif stage == 2:
            heapq.heappush(events, (databases[number % shards].serve(now, costs.database_seconds), 3, number, asked))
        else:
            done += 1
            heapq.heappush(events, (now, 0, number, 0.0))
            if done >= steps // 5:
                first, last = first or now, now
                took.append(now - asked)
    rate = len(took) / (last - first)
    return Found(
        rate=rate,
        median=median(took),
        slowest=quantiles(took, n=100)[98],
        busy=min(1.0, rate * costs.database_seconds / (shards * CORES)),
        wal=rate * costs.wal_bytes / shards,
        commits=rate * costs.commits / shards,
    )

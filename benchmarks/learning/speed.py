"""What retrieval and updates cost as a playbook grows: the query's embedding apart, the index beside a numpy scan.

On a machine that others use, trust the processor time and the ratio, and set OPENBLAS_NUM_THREADS=1: threads that wait
for each other count as work.
"""

import random
import statistics
import time
from typing import Any

import numpy as np

from journeyman.core.playbook import StrategyState, ToolCallingStrategy
from journeyman.learning.episodes import Episode, EpisodeCall
from journeyman.learning.forms import LearningSettings
from journeyman.learning.playbook import Playbook
from journeyman.retrieval.index import VectorIndex

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
"""On request: it takes two minutes and eight gigabytes."""
DIMENSIONS = 384
NEAREST = 20
TARGET_MS = 10.0
TARGET_RATIO = 1.3
_BEGINNINGS, _ENDINGS = "ba ce di fo gu ha je ki lo mu na pe ri so tu", "rn st lk mp nt rd sk lt"
_WORDS = [first + last for first in _BEGINNINGS.split() for last in _ENDINGS.split()]

Row = dict[str, Any]


class Instant:
    """An embedder that costs next to nothing: what is measured is what comes after it."""

    name = "instant"

    async def embed(self, texts: Any) -> Any:
        seeds = [hash(text) % 2**32 for text in texts]
        return np.stack([_row(seed) for seed in seeds])


_BASE = np.random.default_rng(0).standard_normal((4096, DIMENSIONS)).astype(np.float32)


def _row(seed: int) -> Any:
    return _BASE[seed % 4096] + 0.5 * _BASE[(seed // 4096) % 4096]


def strategies(count: int, *, seed: int = 0, domain: str = "bench") -> list[ToolCallingStrategy]:
    draw = random.Random(seed)
    made = []
    for number in range(count):
        text = " ".join(draw.choices(_WORDS, k=draw.randrange(8, 16)))
        tools = tuple(f"tool_{draw.randrange(120)}" for _ in range(draw.randrange(1, 5)))
        made.append(
            ToolCallingStrategy(
                id=f"s{number}",
                content=text,
                tool_sequence=tools,
                sub_goal=text,
                helpful_count=draw.randrange(1, 30),
                harmful_count=draw.randrange(0, 3),
                state=StrategyState.ACTIVE,
                domain=domain,
            )
        )
    return made


async def measure(size: int, *, searches: int = 100) -> Row:
    """Retrieval of one playbook of this size, the cost of one update, and the vector index against plain numpy."""
    settings = LearningSettings(holdout=0)
    playbook = Playbook("bench", embedder=Instant(), settings=settings)
    begun = time.perf_counter()
    await playbook.put(strategies(size))
    built = time.perf_counter() - begun
    draw, tools = random.Random(1), [f"tool_{number}" for number in range(120)]
    queries = [" ".join(draw.choices(_WORDS, k=10)) for _ in range(searches)]
    times, busy = list[float](), list[float]()
    for query in queries:
        begun, worked = time.perf_counter(), time.process_time()
        await playbook.ranked(query, tools=tools, previous="tool_1")
        times.append((time.perf_counter() - begun) * 1000)
        busy.append((time.process_time() - worked) * 1000)
    updates = []
    for number in range(20):
        calls = (EpisodeCall("tool_1", {}, "ok", effect=True), EpisodeCall("tool_2", {}, "ok", effect=True))
        episode = Episode(" ".join(draw.choices(_WORDS, k=10)), calls, run_id=f"run-{number}")
        worked = time.process_time()
        await playbook.feed(episode)
        updates.append((time.process_time() - worked) * 1000)
    times.sort()
    return {
        "strategies": size,
        "built_s": built,
        "p50_ms": times[len(times) // 2],
        "p95_ms": times[int(len(times) * 0.95)],
        "cpu_ms": statistics.median(busy),
        "update_ms": statistics.median(updates),
        **_index(size),
        "passed": times[len(times) // 2] < TARGET_MS,
    }


def _index(size: int, *, searches: int = 60) -> Row:
    """The index alone and a numpy scan of the same rows, turn by turn, so that both meet the same machine.

    ``found`` is how many of the twenty that are nearest, by comparing all, the index finds as well.
    """
    draw = np.random.default_rng(2)
    drawn = _BASE[draw.integers(0, 4096, size + searches)] + 0.5 * _BASE[draw.integers(0, 4096, size + searches)]
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    rows, queries = drawn[:size], drawn[size:]
    index = VectorIndex("sketched")
    index.put([str(number) for number in range(size)], rows)
    ours, plain, found = list[float](), list[float](), list[float]()
    for query in queries:
        begun = time.process_time()
        index.search(query, k=3)
        between = time.process_time()
        scores = rows @ query
        best = scores.argpartition(size - 3)[size - 3 :]
        best[scores[best].argsort()[::-1]]
        plain.append(time.process_time() - between)
        ours.append(between - begun)
        nearest = scores.argsort()[-NEAREST:]
        found.append(len({int(key) for key, _ in index.search(query, k=NEAREST)} & set(nearest.tolist())) / NEAREST)
    return {
        "index_ms": statistics.median(ours) * 1000,
        "numpy_ms": statistics.median(plain) * 1000,
        "ratio": statistics.median(ours) / statistics.median(plain),
        "found": statistics.fmean(found),
    }


async def domains(count: int, each: int, *, searches: int = 100) -> Row:
    """Many playbooks side by side, of which one is searched."""
    found = {}
    for number in range(count):
        found[number] = Playbook(f"domain-{number}", embedder=Instant(), settings=LearningSettings(holdout=0))
        await found[number].put(strategies(each, seed=number, domain=f"domain-{number}"))
    draw, times = random.Random(3), list[float]()
    for _ in range(searches):
        query = " ".join(draw.choices(_WORDS, k=10))
        begun = time.perf_counter()
        await found[draw.randrange(count)].ranked(query)
        times.append((time.perf_counter() - begun) * 1000)
    times.sort()
    p50 = times[len(times) // 2]
    return {
        "domains": count,
        "strategies": count * each,
        "p50_ms": p50,
        "p95_ms": times[-5],
        "passed": p50 < TARGET_MS,
    }

"""The exact index beside the numpy lines somebody would write by hand over the same matrix, in one run."""

import time
from statistics import median
from typing import Any

import numpy as np

from journeyman.core.protocols import Vectors
from journeyman.retrieval.index import VectorIndex

DIMENSIONS = 256
SIZES = {1_000: 400, 10_000: 200, 100_000: 60, 1_000_000: 15}
"""Vectors, and how many searches are timed."""
TARGET = 1.3
NEAREST = 5
CHUNK = 100_000


def scan(matrix: Vectors, query: Vectors) -> list[tuple[int, float]]:
    """The raw scan: one product, the best places, sorted."""
    scores = matrix @ query
    best = np.argpartition(scores, len(scores) - NEAREST)[-NEAREST:]
    best = best[np.argsort(-scores[best])]
    return list(zip(best.tolist(), scores[best].tolist(), strict=True))


def measure(size: int, searches: int) -> dict[str, Any]:
    """Median seconds of both, the searches taking turns, and the median of their ratios."""
    random = np.random.default_rng(size)
    index = VectorIndex("exact")
    for start in range(0, size, CHUNK):
        count = min(CHUNK, size - start)
        rows = random.standard_normal((count, DIMENSIONS), dtype=np.float32)
        index.put([str(number) for number in range(start, start + count)], rows)
    domain: Any = index._domains[""]
    matrix = domain.rows[:size]  # the same matrix, not a copy: caches must be equally warm
    raw: list[float] = []
    ours: list[float] = []
    product: list[float] = []
    for turn in range(searches + 3):
        query = random.standard_normal(DIMENSIONS, dtype=np.float32)
        query /= np.linalg.norm(query)
        times = [time.perf_counter()]
        first = scan(matrix, query)
        times.append(time.perf_counter())
        second = index.search(query, k=NEAREST)
        times.append(time.perf_counter())
        matrix @ query
        times.append(time.perf_counter())
        assert [str(place) for place, _ in first] == [key for key, _ in second]
        if turn >= 3:  # the first ones warm up
            for kind, began, ended in zip((raw, ours, product), times, times[1:], strict=False):
                kind.append(ended - began)
    ratio = median(mine / theirs for mine, theirs in zip(ours, raw, strict=True))
    return {
        "vectors": size,
        "raw_scan_ms": round(median(raw) * 1000, 4),
        "index_ms": round(median(ours) * 1000, 4),
        "product_alone_ms": round(median(product) * 1000, 4),
        "ratio": round(ratio, 3),
        "target": TARGET,
        "passed": ratio <= TARGET,
    }

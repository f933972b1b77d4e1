"""How each contender scores a case: the higher, the more it looks like a gap. And how scores are judged."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.gaps.corpus import Case
from benchmarks.gaps.vectors import RememberedVectors
from journeyman.retrieval.search import BM25
from journeyman.tools.library import searchable

RESAMPLED = 1_000
Scores = NDArray[np.float64]


def bm25(case: Case) -> float:
    """The best BM25 score among the request's tools."""
    index = BM25({str(number): searchable(tool) for number, tool in enumerate(case.tools)})
    return -max((score for _, score in index.rank(case.request, k=1)), default=0.0)


async def embedding(case: Case, embedder: RememberedVectors) -> float:
    """The cosine of the nearest tool."""
    rows = await embedder.embed([case.request, *map(searchable, case.tools)])
    return -float((rows[1:] @ rows[0]).max())


def auroc(scores: Scores, gaps: NDArray[np.bool_]) -> float:
    """How often a gap scores higher than a case with a fitting tool; ties count half."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    positive, negative = int(gaps.sum()), int((~gaps).sum())
    return float((ranks[gaps].sum() - positive * (positive + 1) / 2) / (positive * negative))


def interval(scores: Scores, gaps: NDArray[np.bool_], *, than: Scores | None = None) -> tuple[float, float]:
    """The middle 95 % over samples drawn again, the same in every run; ``than`` another's, of the difference."""
    drawing, found = np.random.default_rng(0), list[float]()
    while len(found) < RESAMPLED:
        drawn = drawing.integers(0, len(gaps), len(gaps))
        if 0 < gaps[drawn].sum() < len(drawn):
            value = auroc(scores[drawn], gaps[drawn])
            found.append(value if than is None else value - auroc(than[drawn], gaps[drawn]))
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def gaps_of(cases: Sequence[Case]) -> NDArray[np.bool_]:
    return np.array([case.gap for case in cases])

"""What ours is compared with, in the same harness: frequency, TF-IDF, BM25, vectors, and their fusion with a vote."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.learning.corpus import Turn
from journeyman.core.protocols import Embedder
from journeyman.retrieval.search import BM25, terms

Sequence_ = tuple[str, ...]
Ranker = Callable[[int], list[Sequence_]]
Matrix = Any

NEIGHBOURS, POWER = 5, 8.0
"""Of the fusion's vote; chosen on the same half as ours, by the share of right sequences."""


class Baselines:
    """All of them over one list of turns; what a turn's own group holds is never memory for it."""

    def __init__(self, turns: Sequence[Turn], vectors: Matrix) -> None:
        self.turns = turns
        groups = np.array([hash(turn.group) for turn in turns])
        self.own = groups[:, None] == groups[None, :]
        self.vectors = vectors @ vectors.T
        self.bm25 = self._bm25()
        self.tfidf = self._tfidf()

    @classmethod
    async def over(cls, turns: Sequence[Turn], embedder: Embedder) -> "Baselines":
        rows = np.asarray(await embedder.embed([turn.request for turn in turns]))
        return cls(turns, rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def rankers(self) -> dict[str, Ranker]:
        return {
            "most frequent": self._frequent,
            "TF-IDF": self._nearest(self.tfidf),
            "BM25": self._nearest(self.bm25),
            "embedding": self._nearest(self.vectors),
            "fusion + vote": self.fusion(),
        }

    def fusion(self, *, neighbours: int = NEIGHBOURS, power: float = POWER) -> Ranker:
        """Reciprocal ranks of BM25 and vectors, and a vote of the nearest."""
        fused = sum(1 / (60 + self._ranks(scores)) for scores in (self.bm25, self.vectors))

        def rank(at: int) -> list[Sequence_]:
            scores = np.where(self.own[at], -1.0, fused[at])
            nearest = np.argsort(-scores)[:neighbours]
            votes: dict[Sequence_, float] = defaultdict(float)
            for place in nearest:
                votes[self.turns[place].sequence] += float(scores[place] / scores[nearest[0]]) ** power
            return sorted(votes, key=lambda sequence: -votes[sequence])

        return rank

    def _ranks(self, scores: Matrix) -> Matrix:
        masked = np.where(self.own, -9.0, scores)
        return np.argsort(np.argsort(-masked, axis=1), axis=1)

    def _nearest(self, scores: Matrix) -> Ranker:
        def rank(at: int) -> list[Sequence_]:
            order = np.argsort(-np.where(self.own[at], -9.0, scores[at]))[:60]
            return list(dict.fromkeys(self.turns[place].sequence for place in order if not self.own[at][place]))

        return rank

    def _frequent(self, at: int) -> list[Sequence_]:
        counts = Counter(turn.sequence for turn in self.turns if turn.group != self.turns[at].group)
        return [sequence for sequence, _ in counts.most_common(10)]

    def _bm25(self) -> Matrix:
        index = BM25({str(at): turn.request for at, turn in enumerate(self.turns)})
        scores = np.zeros((len(self.turns), len(self.turns)))
        for at, turn in enumerate(self.turns):
            for key, share in index.shares(turn.request).items():
                scores[at, int(key)] = share
        return scores

    def _tfidf(self) -> Matrix:
        counts = [Counter(terms(turn.request)) for turn in self.turns]
        words = {word: at for at, word in enumerate(sorted({word for count in counts for word in count}))}
        held = Counter(word for count in counts for word in count)
        rows = np.zeros((len(counts), len(words)))
        for at, count in enumerate(counts):
            for word, times in count.items():
                rows[at, words[word]] = (1 + math.log(times)) * math.log(len(counts) / held[word])
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(lengths == 0, 1, lengths)
        return rows @ rows.T


def markov(turns: Sequence[Turn]) -> Callable[[int, Sequence[str]], list[str]]:
    """The next tool by which follows which alone, learned from the other groups."""
    every: dict[str, Counter[str]] = defaultdict(Counter)
    of_group: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for turn in turns:
        steps = [(turn.previous or "", turn.sequence[0]), *zip(turn.sequence, turn.sequence[1:], strict=False)]
        of_group[turn.group] += steps
        for before, after in steps:
            every[before][after] += 1

    def rank(at: int, done: Sequence[str]) -> list[str]:
        turn = turns[at]
        last = done[-1] if done else turn.previous or ""
        counts = Counter(every[last])
        counts.subtract(after for before, after in of_group[turn.group] if before == last)
        return [name for name, count in counts.most_common() if count > 0 and name in turn.tools]

    return rank

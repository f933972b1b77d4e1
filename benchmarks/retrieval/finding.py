"""Recall of one contender on every set, and what it costs. Each runs in a process of its own, for its memory's sake."""

import resource
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.retrieval import contenders, corpus
from benchmarks.retrieval.paraphrases import PAIRS
from journeyman.core.protocols import Embedder
from journeyman.retrieval.embedders import CachedEmbedder
from journeyman.retrieval.index import VectorIndex
from journeyman.retrieval.search import HybridIndex

SETS = ("written", "live", "together", "paraphrases")
TIMED = 50


def texts_and_questions(name: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    if name == "paraphrases":
        notes = {str(number): note for number, (note, _) in enumerate(PAIRS)}
        return notes, [(question, str(number)) for number, (_, question) in enumerate(PAIRS)]
    pool = corpus.load(name)
    return pool.texts, pool.questions


async def measure(name: str) -> dict[str, Any]:
    """Everything about one contender, as JSON."""
    contenders.install()
    start = time.perf_counter()
    bare = contenders.make(name)
    embedder = CachedEmbedder(bare, kept=100_000) if bare else None
    if bare:
        await bare.embed(["warm"])
    loading = time.perf_counter() - start
    found = {}
    for kind in SETS:
        texts, questions = texts_and_questions(kind)
        found[kind] = await recall(texts, questions, embedder)
    return {
        "megabytes_on_disk": round(contenders.megabytes(name), 1),
        "megabytes_peak": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        "seconds_to_load": round(loading, 2),
        "milliseconds_of_cpu_per_question": round(await question_cost(bare) * 1000, 2) if bare else 0.0,
        "sets": found,
    }


async def recall(
    texts: Mapping[str, str], questions: Sequence[tuple[str, str]], embedder: Embedder | None
) -> dict[str, Any]:
    """Of words and meaning together, and of meaning alone."""
    start = time.perf_counter()
    hybrid = HybridIndex(embedder=embedder)
    await hybrid.put(texts)
    indexing = time.perf_counter() - start
    together = [_place(right, [hit.id for hit in await hybrid.search(text, k=10)]) for text, right in questions]
    report: dict[str, Any] = {"texts": len(texts), "questions": len(questions)}
    report |= {"seconds_to_index": round(indexing, 2), **_recalls(together)}
    if embedder:
        vectors = VectorIndex("exact")
        vectors.put(list(texts), await embedder.embed(list(texts.values())))
        rows = await embedder.embed([text for text, _ in questions])
        alone = [
            _place(right, [key for key, _ in vectors.search(row, k=10)])
            for (_, right), row in zip(questions, rows, strict=True)
        ]
        report["meaning_alone"] = _recalls(alone)
    return report


async def question_cost(embedder: Embedder) -> float:
    """Seconds of CPU for embedding one question, over a sample of real ones."""
    questions = [text for text, _ in corpus.load("written").questions[:TIMED]]
    start = time.process_time()
    for text in questions:
        await embedder.embed([text])
    return (time.process_time() - start) / len(questions)


def _place(right: str, ranking: Sequence[str]) -> int:
    return ranking.index(right) + 1 if right in ranking else len(ranking) + 1_000


def _recalls(places: Sequence[int]) -> dict[str, float]:
    return {f"recall@{k}": round(sum(place <= k for place in places) / len(places), 3) for k in (1, 3, 5, 10)}

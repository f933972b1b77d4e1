"""10,000 documents with the real embedder: is the right one among the first, and how long does it take?"""

import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.memory import hard
from benchmarks.memory.corpus import load
from journeyman import Agent, Journeyman
from journeyman.retrieval.search import BM25
from journeyman.testing import ScriptedModel, say

DOCUMENTS = 10_000
AT_ONCE = 500
MESSAGES = 1_000
OWNER = "reader"


async def measure(count: int = DOCUMENTS) -> dict[str, Any]:
    corpus = load(count)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'memory.db'}"
        async with Journeyman(store=url) as app:
            items, began = list(corpus.documents.items()), time.perf_counter()
            for start in range(0, len(items), AT_ONCE):
                rows = [(text, None, key) for key, text in items[start : start + AT_ONCE]]
                await app.memory.store_documents(rows, principal=OWNER)
            stored = time.perf_counter() - began
            await app.memory.semantic_search("warm up", principal=OWNER)
            found = {"titles": await _found(app, corpus.titles), "notes": await _found(app, corpus.notes)}
        history = await _history(url)
    return {"documents": len(items), "seconds_to_store": round(stored, 1), **found, "history_ms": history}


async def measure_hard(kind: str, *, held_out: bool = False) -> dict[str, Any]:
    """A title looks for its body among 1,000: by the memory, and by words alone."""
    documents, *halves = hard.load(kind)
    bare = BM25(documents)
    queries = halves[held_out]
    ranked = [[key for key, _ in bare.rank(query, k=3)] for query, _ in queries]
    words = sum(right in keys for (_, right), keys in zip(queries, ranked, strict=True)) / len(queries)
    with tempfile.TemporaryDirectory() as folder:
        async with Journeyman(store=f"sqlite:///{Path(folder) / 'memory.db'}") as app:
            await app.memory.store_documents([(text, None, key) for key, text in documents.items()], principal=OWNER)
            async for _ in app.memory.index(principal=OWNER):
                pass
            return {**await _found(app, queries), "words@3": round(words, 3)}


async def _found(app: Journeyman, queries: list[tuple[str, str]]) -> dict[str, Any]:
    ranks, times = [], []
    for query, right in queries:
        began = time.perf_counter()
        hits = await app.memory.semantic_search(query, 10, principal=OWNER)
        times.append((time.perf_counter() - began) * 1000)
        keys = [hit.document.id for hit in hits]
        ranks.append(keys.index(right) + 1 if right in keys else 99)
    times.sort()
    shares = {f"recall@{k}": round(sum(rank <= k for rank in ranks) / len(ranks), 3) for k in (1, 3, 10)}
    return {
        "queries": len(queries),
        **shares,
        "p50_ms": round(times[len(times) // 2], 1),
        "p95_ms": round(times[int(len(times) * 0.95)], 1),
    }


async def _history(url: str) -> float:
    """Milliseconds to read the last messages of a conversation; the median of eleven."""
    agent = Agent(name="clerk", instruction="Answer.")
    async with Journeyman(
        store=url, model=ScriptedModel([say("Noted, and a sentence more to make it longer.")])
    ) as app:
        session = app.session("long")
        for number in range(MESSAGES // 2):
            handle = await session.send(agent, f"This is message {number} of a long conversation.")
            await handle.wait()
        times = []
        for _ in range(11):
            began = time.perf_counter()
            messages = await app.memory.history("long", MESSAGES)
            times.append((time.perf_counter() - began) * 1000)
        assert len(messages) == MESSAGES, len(messages)
    return round(sorted(times)[5], 1)

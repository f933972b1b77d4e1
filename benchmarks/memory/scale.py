"""100,000 documents on a database: storing, starting, searching, ten at once; beside plain numpy and pgvector.

The vectors are random ones of MiniLM's size, made from each text: how fast vectors are compared does not depend on what
they mean, and 100,000 real ones take half an hour to compute.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.memory.corpus import load
from journeyman.core.protocols import Vectors
from journeyman.memory.manager import MemoryManager
from journeyman.stores.store import SqlStore, open_store

DIMENSIONS = 384
AT_ONCE = 1_000
SEARCHES = 30
SESSIONS = 10
OWNER = "reader"


class RandomVectors:
    """The same vector for the same text, and no meaning."""

    name = "random-384"

    def __init__(self) -> None:
        self.count = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.count += len(texts)
        rows = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
            row[:] = np.random.default_rng(seed).standard_normal(DIMENSIONS, dtype=np.float32)
        return rows


async def measure(url: str, count: int) -> dict[str, Any]:
    corpus = load(count)
    store = open_store(url)
    await store.open()
    try:
        stored = await _store(store, list(corpus.documents.items()))
        queries = [query for query, _ in corpus.titles[:SEARCHES]]
        started = await _start(store, queries[0])
        memory = _manager(store, RandomVectors())
        await memory.semantic_search(queries[0], 10, principal=OWNER)
        searching = await _times(queries, lambda query: memory.semantic_search(query, 10, principal=OWNER))
        together = await _together(memory, queries)
        raw = await _raw(store, queries)
    finally:
        await store.close()
    return {"documents": count, **stored, **started, "search": searching, "ten_at_once": together, "raw": raw}


def _manager(store: SqlStore, embedder: RandomVectors) -> MemoryManager:
    return MemoryManager(store.memories, store.conversations, embedder=embedder)


async def _store(store: SqlStore, items: list[tuple[str, str]]) -> dict[str, Any]:
    memory, began = _manager(store, RandomVectors()), time.perf_counter()
    for start in range(0, len(items), AT_ONCE):
        rows = [(text, None, key) for key, text in items[start : start + AT_ONCE]]
        await memory.store_documents(rows, principal=OWNER)
    return {"seconds_to_store": round(time.perf_counter() - began, 1)}


async def _start(store: SqlStore, query: str) -> dict[str, Any]:
    """The first search of a process, and how many texts it had to embed besides the query."""
    embedder, began = RandomVectors(), time.perf_counter()
    await _manager(store, embedder).semantic_search(query, 10, principal=OWNER)
    return {"first_search_ms": _ms(time.perf_counter() - began), "embedded_at_start": embedder.count - 1}


async def _times(queries: Sequence[str], search: Callable[[str], Awaitable[Any]]) -> dict[str, float]:
    times, cpu = [], []
    for query in queries:
        began, spent = time.perf_counter(), time.process_time()
        await search(query)
        times.append(time.perf_counter() - began)
        cpu.append(time.process_time() - spent)
    times.sort()
    return {
        "p50_ms": _ms(times[len(times) // 2]),
        "p95_ms": _ms(times[int(len(times) * 0.95)]),
        "cpu_ms": _ms(sorted(cpu)[len(cpu) // 2]),
    }


async def _together(memory: MemoryManager, queries: Sequence[str]) -> dict[str, float]:
    async def one(session: int) -> list[float]:
        times = []
        for query in queries[session : session + 5]:
            began = time.perf_counter()
            await memory.semantic_search(query, 10, principal=OWNER)
            times.append(time.perf_counter() - began)
        return times

    times = sorted(taken for session in await asyncio.gather(*map(one, range(SESSIONS))) for taken in session)
    return {"p50_ms": _ms(times[len(times) // 2]), "p95_ms": _ms(times[int(len(times) * 0.95)])}


async def _raw(store: SqlStore, queries: Sequence[str]) -> dict[str, Any]:
    """The vectors alone: one product and a partial sort in numpy and, where there is pgvector, its own scan."""
    embedder = RandomVectors()
    rows: list[tuple[int, bytes]] = []
    while some := await store.memories.vectors(
        principal_id=OWNER, embedder=embedder.name, after=rows[-1][0] if rows else 0, limit=20_000
    ):
        rows += some
    matrix = np.frombuffer(b"".join(vector for _, vector in rows), dtype=np.float32).reshape(len(rows), -1)

    async def scan(query: str) -> Any:
        scores = matrix @ (await embedder.embed([query]))[0]
        best = np.argpartition(scores, -10)[-10:]
        return best[np.argsort(scores[best])]

    async def compared(query: str) -> Any:
        vector = (await embedder.embed([query]))[0]
        return await store.memories.nearest(vector.tobytes(), principal_id=OWNER, embedder=embedder.name, limit=10)

    found: dict[str, Any] = {"passages": len(rows), "numpy": await _times(queries, scan)}
    if await compared(queries[0]) is not None:
        found["pgvector"] = await _times(queries, compared)
    return found


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)

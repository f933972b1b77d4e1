"""Words and meaning together: what is found, what is computed, and what happens when the embedder is away."""

import asyncio
import logging
from collections.abc import Sequence

import numpy as np
import pytest

from journeyman.core.errors import ModelError
from journeyman.core.protocols import Vectors
from journeyman.retrieval.embedders.minilm import MiniLM
from journeyman.retrieval.index import VectorIndex
from journeyman.retrieval.search import HybridIndex

NOTES = {
    "dentist": "The dentist moved my appointment to Thursday at nine.",
    "rent": "Our landlord raises the rent by four percent from January.",
    "leak": "The roof leaks above the kitchen whenever it rains.",
}


class Letters:
    """Counts letters: a meaning that can be computed by hand. Remembers what it was asked, and can be away."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.asked: list[str] = []
        self.away = False
        self.gate: asyncio.Event | None = None
        self.waiting = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.away:
            raise ModelError("EMBEDDER_UNAVAILABLE", "away")
        self.asked += texts
        if self.gate is not None:
            self.waiting.set()
            await self.gate.wait()
        return np.array([[text.count(chr(97 + n)) for n in range(26)] for text in texts], dtype=np.float32)


async def test_without_an_embedder_words_alone_are_compared() -> None:
    index = HybridIndex()
    await index.put(NOTES)
    hits = await index.search("roof of the kitchen")
    assert [(hit.id, hit.similarity) for hit in hits] == [("leak", None)]
    assert hits[0].score == hits[0].words > 0
    assert await index.search("when do I get my teeth looked at?") == []


@pytest.mark.parametrize("vectors", ["exact", "faiss", VectorIndex("exact")])
async def test_with_an_embedder_a_text_is_found_that_shares_no_word(vectors: VectorIndex | str) -> None:
    index = HybridIndex(embedder=MiniLM(), vectors=vectors)
    await index.put(NOTES)
    hits = await index.search("When do they look at my teeth?", k=1)
    assert hits[0].id == "dentist"
    assert hits[0].words == 0.0
    assert hits[0].similarity is not None
    assert hits[0].similarity > 0.2


async def test_words_and_meaning_add_up() -> None:
    index = HybridIndex(embedder=Letters())
    await index.put({"both": "abc stu", "letters": "cba uts", "neither": "xyz"})
    hits = await index.search("abc")
    assert [hit.id for hit in hits] == ["both", "letters", "neither"]
    assert hits[0].score == hits[0].words + (hits[0].similarity or 0.0)
    assert (hits[1].words, hits[1].similarity) == (0.0, hits[0].similarity)
    assert hits[2].score == 0.0


async def test_only_new_and_changed_texts_are_embedded() -> None:
    embedder = Letters()
    index = HybridIndex(embedder=embedder)
    await index.put({"a": "first", "b": "second"})
    await index.put({"a": "first", "b": "changed", "c": "third"})
    assert embedder.asked == ["first", "second", "changed", "third"]


async def test_a_removed_text_is_found_no_more() -> None:
    index = HybridIndex(embedder=Letters())
    await index.put(NOTES)
    index.remove(["rent", "never there"])
    assert {hit.id for hit in await index.search("rent by the landlord")} == {"dentist", "leak"}


async def test_domains_do_not_see_each_other() -> None:
    index = HybridIndex(embedder=Letters())
    await index.put({"a": "apples"}, domain="one")
    await index.put({"b": "apples"}, domain="two")
    assert [hit.id for hit in await index.search("apples", domain="two")] == ["b"]
    assert await index.search("apples", domain="three") == []


@pytest.mark.parametrize("query", ["", "   "])
async def test_an_empty_query_finds_nothing(query: str) -> None:
    index = HybridIndex(embedder=Letters())
    await index.put(NOTES)
    assert await index.search(query) == []


async def test_while_the_embedder_is_away_words_are_compared(caplog: pytest.LogCaptureFixture) -> None:
    embedder = Letters()
    embedder.away = True
    index = HybridIndex(embedder=embedder)
    with caplog.at_level(logging.WARNING):
        await index.put({"a": "apples and pears", "b": "cherries"})
        hits = await index.search("pears")
    assert [(hit.id, hit.similarity) for hit in hits] == [("a", None)]
    assert "2 texts are found by their words alone" in caplog.text


async def test_an_embedder_that_is_back_catches_up() -> None:
    embedder = Letters()
    embedder.away = True
    index = HybridIndex(embedder=embedder)
    await index.put({"a": "aaa", "b": "bbb"})
    embedder.away = False
    hits = await index.search("ab b")
    assert hits[0].id == "b"
    assert hits[0].similarity == pytest.approx(0.894, abs=0.01)


async def test_a_text_replaced_while_it_is_embedded_keeps_the_newer_vector() -> None:
    embedder = Letters()
    embedder.gate = asyncio.Event()
    index = HybridIndex(embedder=embedder)
    slow = asyncio.create_task(index.put({"a": "xxx", "b": "yyy"}))
    await embedder.waiting.wait()
    gate, embedder.gate = embedder.gate, None
    await index.put({"a": "aaa"})
    index.remove(["b"])
    gate.set()
    await slow
    hits = await index.search("a x y")
    assert [hit.id for hit in hits] == ["a"]
    assert hits[0].similarity == pytest.approx(0.577, abs=0.01)


async def test_the_environment_chooses_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOURNEYMAN_INDEX", "faiss")
    assert getattr(HybridIndex(embedder=Letters())._vectors, "kind", None) == "faiss"

"""What is remembered: found by words and by meaning, by its owner alone, and gone when it is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from journeyman import Principal
from journeyman.core import InvalidDataError
from journeyman.core.data import new_id
from journeyman.core.errors import ModelError
from journeyman.core.protocols import Vectors
from journeyman.memory import manager
from journeyman.memory.manager import MemoryManager
from journeyman.memory.passages import LONGEST, split
from journeyman.stores.store import SqlStore, open_store
from journeyman.testing import FakeClock
from journeyman.testing.clock import START
from tests.stores.test_conversations import ended_in_session

CONCEPTS = (("car", "automobile", "vehicle"), ("doctor", "physician"), ("money", "cash", "price"), ("rain", "storm"))


class Concepts:
    """A meaning that can be computed by hand: which of a few concepts a text speaks of. Can be away."""

    def __init__(self, name: str = "concepts") -> None:
        self.name = name
        self.asked: list[str] = []
        self.away = False

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.away:
            raise ModelError("EMBEDDER_UNAVAILABLE", "away")
        self.asked += texts
        rows = [[float(any(word in text.lower() for word in words)) for words in CONCEPTS] for text in texts]
        return np.array([[*row, 0.01] for row in rows], dtype=np.float32)


@pytest.fixture
def embedder() -> Concepts:
    return Concepts()


@pytest.fixture
def memory(store: SqlStore, clock: FakeClock, embedder: Concepts) -> MemoryManager:
    return again(store, clock, embedder)


def again(store: SqlStore, clock: FakeClock, embedder: Concepts) -> MemoryManager:
    """As another process sees it."""
    return MemoryManager(store.memories, store.conversations, embedder=embedder, clock=clock)


@pytest_asyncio.fixture
async def small(tmp_path: Path, clock: FakeClock, embedder: Concepts) -> AsyncIterator[MemoryManager]:
    """Where the database does not matter."""
    opened = open_store(f"sqlite:///{tmp_path / 'small.db'}", clock=clock)
    await opened.open()
    yield again(opened, clock, embedder)
    await opened.close()


async def found(memory: MemoryManager, text: str, **options: Any) -> list[str]:
    return [hit.document.id for hit in await memory.semantic_search(text, **options)]


async def test_a_document_is_found_by_its_words_and_by_its_meaning(memory: MemoryManager) -> None:
    await memory.store_document("The automobile needs new brakes.", id="brakes")
    await memory.store_document("Order W-17 was sent on Monday.", id="order")
    await memory.store_document("A physician lives next door.", id="neighbour", metadata={"topic": "people"})
    assert (await found(memory, "my car"))[0] == "brakes"
    assert (await found(memory, "W-17"))[0] == "order"
    [hit] = await memory.semantic_search("doctor", 1)
    assert hit.document.metadata == {"topic": "people"}
    assert hit.excerpt == "A physician lives next door."
    assert hit.similarity == pytest.approx(1.0, abs=0.01)


async def test_nobody_finds_what_is_anothers(memory: MemoryManager) -> None:
    ada = Principal("ada")
    await memory.store_document("The price of the car is a secret.", principal=ada)
    for stranger in (None, "bob", Principal("ad"), Principal("ada@ada")):
        assert await memory.semantic_search("price of the car", principal=stranger) == []
        assert list(await memory.query(principal=stranger)) == []
    assert len(await memory.semantic_search("price of the car", principal="ada")) == 1


async def test_what_is_deleted_is_found_no_more_by_anybody(
    memory: MemoryManager,
    store: SqlStore,
    clock: FakeClock,
    embedder: Concepts,
) -> None:
    elsewhere = again(store, clock, embedder)
    kept = await memory.store_document("cash in the drawer")
    gone = await memory.store_document("cash in the safe")
    assert len(await found(elsewhere, "money")) == 2  # and it keeps their vectors now
    assert await memory.delete(gone)
    assert not await memory.delete(gone)
    for manager_ in (memory, elsewhere):
        for query in ("money", "cash safe"):
            assert await found(manager_, query) == [kept]


async def test_nothing_is_embedded_again_when_a_process_starts(
    memory: MemoryManager,
    store: SqlStore,
    clock: FakeClock,
) -> None:
    await memory.store_documents([(f"vehicle {n}", None, None) for n in range(20)])
    fresh = Concepts()
    assert len(await found(again(store, clock, fresh), "car", top_k=3)) == 3
    assert fresh.asked == ["car"]


async def test_what_another_process_stores_is_found_at_once(
    memory: MemoryManager,
    store: SqlStore,
    clock: FakeClock,
    embedder: Concepts,
) -> None:
    elsewhere = again(store, clock, embedder)
    await memory.store_document("the first automobile", id="1")
    assert await found(elsewhere, "car") == ["1"]
    await memory.store_document("the second vehicle", id="2")
    assert sorted(await found(elsewhere, "car")) == ["1", "2"]


async def test_while_the_embedder_is_away_words_do_and_vectors_come_later(
    memory: MemoryManager, embedder: Concepts
) -> None:
    embedder.away = True
    await memory.store_document("automobile", id="a")
    assert await found(memory, "automobile") == ["a"]
    assert await found(memory, "car") == []
    embedder.away = False
    assert await found(memory, "car") == ["a"]


class Slow(Concepts):
    """Takes a second for each passage."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.clock.advance(len(texts))
        return await super().embed(texts)


async def test_a_long_document_costs_a_bounded_time_and_says_what_is_missing(store: SqlStore, clock: FakeClock) -> None:
    slow = Slow(clock)
    memory, begun = again(store, clock, slow), clock.monotonic()
    text = "\n\n".join([*(f"Paragraph {n}: {'nothing at all ' * 60}" for n in range(150)), "My car is red."])
    [long] = await memory.store_documents([(text, None, "long")])
    assert clock.monotonic() - begun <= 2 * manager.STORING_SECONDS
    assert long.by_words_alone == len(split(text)) - len(slow.asked)
    assert long.by_words_alone > 100
    [short] = await memory.store_documents([("It will rain.", None, "short")])
    assert short.by_words_alone == 0
    assert (await found(memory, "paragraph 149"))[0] == "long"
    asked, begun = len(slow.asked), clock.monotonic()
    assert (await found(memory, "storm"))[0] == "short"
    assert clock.monotonic() - begun <= 1 + 4 * manager.SEARCHING_SECONDS  # a query, and a few passages more
    assert len(slow.asked) > asked + 1
    async for _ in memory.index():
        pass
    assert (await found(memory, "automobile"))[0] == "long"
    assert (await memory.get("long")).by_words_alone is None  # type: ignore[union-attr]


async def test_another_embedder_makes_its_own_vectors(
    memory: MemoryManager,
    store: SqlStore,
    clock: FakeClock,
) -> None:
    await memory.store_documents([(f"vehicle {n}", None, str(n)) for n in range(5)])
    newer = again(store, clock, Concepts("newer"))
    assert [made async for made in newer.index()] == [5]
    assert len(await found(newer, "car")) == 5


async def test_a_long_document_is_found_by_any_of_its_passages(memory: MemoryManager) -> None:
    filler = "Nothing of note happened on this day.\n\n" * 200
    await memory.store_document(f"{filler}The storm tore off the roof.\n\n{filler}", id="diary")
    await memory.store_document("A sunny day at the lake.", id="lake")
    [hit] = await memory.semantic_search("heavy rain", 1)
    assert hit.document.id == "diary"
    assert "storm" in hit.excerpt
    assert len(hit.excerpt) <= LONGEST


async def test_a_filter_leaves_out_the_others_however_many_they_are(
    small: MemoryManager,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(manager, "CANDIDATES", 4)
    await small.store_documents([(f"car {n}", {"kind": "noise"}, None) for n in range(60)])
    await small.store_document("a car and some money and a doctor", {"kind": "wanted", "n": 1}, id="x")
    clock.advance(10)
    await small.store_document("late car", id="late")
    assert await found(small, "car", metadata={"kind": "wanted"}) == ["x"]
    assert await found(small, "car", metadata={"kind": "wanted", "n": True}) == []
    assert await found(small, "car", since=datetime.fromtimestamp(START + 5, UTC)) == ["late"]


async def test_documents_are_listed_by_time_and_metadata(small: MemoryManager, clock: FakeClock) -> None:
    for number in range(3):
        await small.store_document(f"note {number}", {"even": number % 2 == 0}, id=str(number))
        clock.advance(60)
    assert [row.id for row in await small.query(metadata={"even": True})] == ["2", "0"]
    assert [row.id for row in await small.query(since=START + 60, until=START + 120)] == ["1"]


async def test_the_history_of_a_conversation_is_its_owners(store: SqlStore, memory: MemoryManager) -> None:
    await ended_in_session(store, "s", said="Hello", answer="Hi")
    assert [message.content for message in await memory.history("s", principal="ada")] == ["Hello", "Hi"]
    assert [message.content for message in await memory.history("s", 1, principal="ada")] == ["Hi"]
    assert list(await memory.history("s")) == []
    assert list(await memory.history("s", principal="bob")) == []


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("  ", {}, "text: is empty"),
        ("x" * 2_000_001, {}, "text: has 2,000,001 characters, at most 2,000,000"),
        ("x", {"metadata": {"k": "v" * 30_000}}, "metadata: has"),
        ("x", {"metadata": {"k": {1, 2}}}, "metadata: cannot be written as JSON"),
        ("x", {"metadata": {"k": float("nan")}}, "metadata: cannot be written as JSON"),
        ("x", {"id": ""}, "id: has 0 characters"),
    ],
)
async def test_what_cannot_be_kept_is_refused_in_words(
    small: MemoryManager, text: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidDataError, match=told):
        await small.store_document(text, **options)
    assert await small.count() == 0


async def test_odd_queries_find_nothing_and_break_nothing(small: MemoryManager) -> None:
    await small.store_document("a document about nothing")
    for odd in ("", "   ", "\0", '"', "' OR 1=1 --", "terms : x", "*", "NEAR(", "字" * 20_000, "AND OR NOT", "\ud800"):
        await small.semantic_search(odd)
    with pytest.raises(InvalidDataError, match="top_k"):
        await small.semantic_search("x", 0)


async def test_many_store_and_search_at_once(memory: MemoryManager) -> None:
    async def one(number: int) -> list[str]:
        principal = f"p{number}"
        await asyncio.gather(*(memory.store_document(f"car {n}", id=str(n), principal=principal) for n in range(5)))
        return await found(memory, "automobile", top_k=20, principal=principal)

    for result in await asyncio.gather(*map(one, range(10))):
        assert sorted(result) == ["0", "1", "2", "3", "4"]


WORDS = some.sampled_from([word for words in CONCEPTS for word in words])
OWNERS = some.sampled_from(["ada", "bob", "a b", None])


@settings(max_examples=15)
@given(steps=some.lists(some.tuples(some.sampled_from(["add", "delete", "find"]), OWNERS, WORDS), max_size=20))
def test_whatever_happens_each_sees_exactly_what_is_theirs(
    steps: list[tuple[str, str | None, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def play() -> None:
        opened = open_store(f"sqlite:///{tmp_path_factory.mktemp('memory') / 'store.db'}")
        await opened.open()
        memory = MemoryManager(opened.memories, opened.conversations, embedder=Concepts())
        theirs: dict[str | None, dict[str, str]] = {}
        try:
            for act, owner, word in steps:
                mine = theirs.setdefault(owner, {})
                if act == "add":
                    mine[word] = f"{word} of {owner}"
                    assert await memory.store_document(mine[word], id=word, principal=owner) == word
                elif act == "delete":
                    assert await memory.delete(word, principal=owner) is (mine.pop(word, None) is not None)
                else:
                    hits = await memory.semantic_search(word, 50, principal=owner)
                    assert {hit.document.text for hit in hits} <= set(mine.values())
                    assert word not in mine or mine[word] in {hit.document.text for hit in hits}
        finally:
            await opened.close()

    asyncio.run(play())


NAMES = some.sampled_from(["ada", "Ada", "ada ", "a b", "a-b", "a'b", "@", "ad", "*", "%", "Ąda"])


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    documents=some.lists(some.tuples(NAMES, WORDS, some.booleans()), min_size=1, max_size=12),
    asking=NAMES,
    query=WORDS,
)
def test_no_query_of_any_kind_reaches_anothers_documents_on_either_database(
    store_url: str, documents: list[tuple[str, str, bool]], asking: str, query: str
) -> None:
    """The same store for all examples, so that each also searches among the rows that earlier ones have left."""
    example = new_id("x")
    theirs: dict[str, set[str]] = {}

    async def play() -> None:
        opened = open_store(store_url)
        await opened.open()
        here, elsewhere = (MemoryManager(opened.memories, opened.conversations, embedder=Concepts()) for _ in range(2))
        try:
            for number, (owner, word, deleted) in enumerate(documents):
                text, who = f"{word} {number} of {owner}", f"{owner}{example}"
                kept = await here.store_document(text, {"word": word}, id=str(number), principal=who)
                await elsewhere.semantic_search(word, 50, principal=who)  # its vectors are in this index now
                if deleted:
                    await here.delete(kept, principal=who)
                else:
                    theirs.setdefault(owner, set()).add(text)
            mine, who = theirs.get(asking, set()), f"{asking}{example}"
            for memory in (here, elsewhere):
                found = await memory.semantic_search(query, 50, principal=who)
                filtered = await memory.semantic_search(query, 50, metadata={"word": query}, principal=who)
                assert {hit.document.text for hit in [*found, *filtered]} <= mine
                assert {text for text in mine if query in text} <= {hit.document.text for hit in found}
                assert {document.text for document in await memory.query(principal=who)} == mine
                assert await memory.count(principal=who) == len(mine)
                for number in range(len(documents)):
                    got = await memory.get(str(number), principal=who)
                    assert got is None or got.text in mine
        finally:
            await opened.close()

    asyncio.run(play())


@given(some.text(max_size=400), some.integers(5, 50))
def test_the_passages_of_a_text_hold_all_of_it(text: str, longest: int) -> None:
    parts = split(text, longest=longest)
    assert "".join("".join(text[a:b] for a, b in parts).split()) == "".join(text.split())
    assert all(0 < b - a <= longest for a, b in parts)
    assert all(first[1] <= second[0] for first, second in pairwise(parts))

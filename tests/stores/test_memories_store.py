"""What is remembered, on both databases."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import pytest

from journeyman.core.memory import MemoryDocument, Passage
from journeyman.stores.store import SqlStore, open_store
from tests.stores.samples import NOW


def document(key: str, text: str, *, owner: str | None = None, at: float = NOW, **metadata: Any) -> MemoryDocument:
    return MemoryDocument(id=key, text=text, metadata=metadata, principal_id=owner, created_at=at)


def vector(*values: float) -> bytes:
    return array("f", values).tobytes()


def whole(text: str, made: bytes | None = None) -> list[Passage]:
    return [Passage(0, len(text), " ".join(text.lower().split()), made)]


async def put(store: SqlStore, *documents: MemoryDocument, made: bytes | None = None) -> None:
    await store.memories.add([(each, whole(each.text, made)) for each in documents], embedder="toy")


async def test_a_document_comes_back_as_it_was_given(store: SqlStore, other: SqlStore) -> None:
    given = document("a", "Zürich ✈ 字", owner="ada", source="notes", pages=[1, 2], nested={"x": None})
    await put(store, given)
    assert await other.memories.get(["a", "b"], principal_id="ada") == {"a": given}
    assert await other.memories.count(principal_id="ada") == 1


async def test_nobody_sees_anothers(store: SqlStore) -> None:
    same = "the same words"
    await put(store, document("a", same, owner="ada"), document("a", same, owner="bob"), document("a", same))
    for owner in ("ada", "bob", None):
        [number] = await store.memories.matching(["same"], principal_id=owner, limit=10)
        [passage] = await store.memories.passages([number], principal_id=owner)
        assert passage.document_id == "a"
        for stranger in {"ada", "bob", None} - {owner}:
            assert await store.memories.passages([number], principal_id=stranger) == []
    assert await store.memories.delete(["a"], principal_id="eve") == 0
    assert await store.memories.delete(["a"], principal_id="bob") == 1
    assert await store.memories.get(["a"], principal_id="bob") == {}
    assert await store.memories.matching(["same"], principal_id="bob", limit=10) == []
    assert await store.memories.count(principal_id="ada") == await store.memories.count(principal_id=None) == 1


@pytest.mark.parametrize(
    ("mine", "theirs"), [("a b", "a-b"), ('a"b', "a b"), ("ada", "ada@ada"), ("@", "#"), ("x", "X")]
)
async def test_owners_whose_names_look_alike_are_not_mixed_up(store: SqlStore, mine: str, theirs: str) -> None:
    await put(store, document("1", "secret plan", owner=mine), document("2", "secret plan", owner=theirs))
    for owner, key in ((mine, "1"), (theirs, "2")):
        numbers = await store.memories.matching(["secret"], principal_id=owner, limit=10)
        assert [p.document_id for p in await store.memories.passages(numbers, principal_id=owner)] == [key]


async def test_a_word_that_nearly_all_have_finds_nothing_beside_rarer_ones(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("journeyman.stores.memories.COMMON", 3)
    await put(store, *(document(str(number), "red apple", owner="ada") for number in range(4)))
    await put(store, document("rare", "green apple", owner="ada"), document("mine", "apple", owner="bob"))

    async def found(*terms: str, owner: str = "ada") -> list[str]:
        numbers = await store.memories.matching(terms, principal_id=owner, limit=10)
        return [passage.document_id for passage in await store.memories.passages(numbers, principal_id=owner)]

    assert await found("green", "apple") == ["rare"]
    assert len(await found("apple")) == 5  # there is nothing rarer to go by
    assert await found("green", "apple", owner="bob") == ["mine"]  # what others have does not make it common


async def test_a_document_of_the_same_id_is_replaced(store: SqlStore) -> None:
    await put(store, document("a", "old words", kind="draft"))
    await put(store, document("a", "new words", kind="final"))
    assert await store.memories.matching(["old"], principal_id=None, limit=10) == []
    assert len(await store.memories.matching(["new"], principal_id=None, limit=10)) == 1
    assert await store.memories.query(principal_id=None, metadata={"kind": "draft"}) == ()
    assert await store.memories.count(principal_id=None) == 1


async def test_documents_are_listed_by_time_and_metadata(store: SqlStore) -> None:
    rows = [document(str(n), f"text {n}", at=NOW + n, kind="a" if n % 2 else "b", n=n) for n in range(6)]
    await put(store, *rows)
    assert list(await store.memories.query(principal_id=None, limit=2)) == [rows[5], rows[4]]
    assert list(await store.memories.query(principal_id=None, limit=2, offset=5)) == [rows[0]]
    found = await store.memories.query(principal_id=None, since=NOW + 2, until=NOW + 5, metadata={"kind": "b"})
    assert [row.id for row in found] == ["4", "2"]
    assert [row.id for row in await store.memories.query(principal_id=None, metadata={"n": 3, "kind": "a"})] == ["3"]
    assert await store.memories.query(principal_id=None, metadata={"n": "3"}) == ()


async def test_rare_words_count_more_than_common_ones(store: SqlStore) -> None:
    await put(store, *(document(str(n), f"report number {n} common") for n in range(30)), document("x", "zebra"))
    numbers = await store.memories.matching(["common", "zebra"], principal_id=None, limit=3)
    [first] = await store.memories.passages(numbers[:1], principal_id=None)
    assert first.document_id == "x"


async def test_what_is_compared_by_meaning_is_the_owners_too(store: SqlStore, other: SqlStore) -> None:
    await put(store, document("a", "alpha", owner="ada"), made=vector(1, 0))
    await put(store, document("b", "beta", owner="bob"), made=vector(0, 1))
    await put(store, document("c", "gamma", owner="ada"), made=vector(0.6, 0.8))
    kept = await other.memories.vectors(principal_id="ada", embedder="toy", after=0, limit=10)
    assert [made for _, made in kept] == [vector(1, 0), vector(0.6, 0.8)]
    assert await other.memories.vectors(principal_id="ada", embedder="other", after=0, limit=10) == []
    nearest = await other.memories.nearest(vector(0, 1), principal_id="ada", embedder="toy", limit=5)
    if nearest is not None:  # PostgreSQL with pgvector
        assert [number for number, _ in nearest] == [kept[1][0], kept[0][0]]
        assert [cosine for _, cosine in nearest] == pytest.approx([0.8, 0.0], abs=1e-6)


async def test_vectors_are_made_later_where_they_are_missing(store: SqlStore) -> None:
    await put(store, document("a", "alpha beta"))
    await put(store, document("b", "beta"), made=vector(0, 1))
    [(number, text)] = await store.memories.without_vector(principal_id=None, embedder="toy", limit=10)
    assert text == "alpha beta"
    await store.memories.put_vectors({number: vector(1, 0)}, embedder="toy")
    assert await store.memories.without_vector(principal_id=None, embedder="toy", limit=10) == []
    assert len(await store.memories.without_vector(principal_id=None, embedder="newer", limit=10)) == 2
    assert len(await store.memories.vectors(principal_id=None, embedder="toy", after=0, limit=10)) == 2


async def test_numbers_are_never_given_twice(store: SqlStore) -> None:
    await put(store, document("a", "alpha"))
    [first] = await store.memories.matching(["alpha"], principal_id=None, limit=10)
    await store.memories.delete(["a"], principal_id=None)
    await put(store, document("a", "alpha"))
    [second] = await store.memories.matching(["alpha"], principal_id=None, limit=10)
    assert second > first


async def test_a_backup_holds_what_is_remembered_and_finds_it_again(store: SqlStore, tmp_path: Path) -> None:
    await put(store, document("a", "alpha beta", owner="ada", kind="note"), made=vector(1, 0))
    await store.backup(tmp_path / "backup.db")
    restored = open_store(f"sqlite:///{tmp_path / 'restored.db'}")
    await restored.open()
    try:
        await restored.restore(tmp_path / "backup.db")
        assert len(await restored.memories.matching(["beta"], principal_id="ada", limit=5)) == 1
        assert len(await restored.memories.query(principal_id="ada", metadata={"kind": "note"})) == 1
        assert await restored.memories.vectors(principal_id="ada", embedder="toy", after=0, limit=5)
        await put(restored, document("b", "gamma", owner="ada"))
        assert await restored.memories.count(principal_id="ada") == 2
    finally:
        await restored.close()

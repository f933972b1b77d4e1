"""What every vector index must do, whichever library computes it."""

import re
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.core.protocols import Vectors
from journeyman.retrieval.index import INDEX_VARIABLE, VectorIndex

INDEXES: list[Callable[[], VectorIndex]] = [partial(VectorIndex, kind) for kind in ("exact", "sketched", "faiss")]
every_index = pytest.mark.parametrize("make", INDEXES)


@pytest.fixture(autouse=True)
def _no_choice_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INDEX_VARIABLE, raising=False)


def rows(count: int, *, seed: int = 0, dimensions: int = 8) -> Vectors:
    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def by_hand(vectors: dict[str, Vectors], query: Vectors, k: int) -> list[str]:
    def cosine(name: str) -> float:
        row = vectors[name]
        return float(row @ query / (np.linalg.norm(row) * np.linalg.norm(query)))

    return sorted(vectors, key=cosine, reverse=True)[:k]


@every_index
def test_the_nearest_are_found_best_first(make: Callable[[], VectorIndex]) -> None:
    index, vectors = make(), rows(200)
    index.put(names(200), vectors)
    query = rows(1, seed=1)[0]
    found = index.search(query, k=7)
    assert [name for name, _ in found] == by_hand(dict(zip(names(200), vectors, strict=True)), query, 7)
    assert found[0][1] == pytest.approx(max(score for _, score in found))


@every_index
def test_similarity_is_the_cosine_whatever_the_lengths(make: Callable[[], VectorIndex]) -> None:
    index = make()
    index.put(["long", "zero"], np.array([[3, 4], [0, 0]], dtype=np.float32))
    found = index.search(np.array([30, 40], dtype=np.float32))
    assert [name for name, _ in found] == ["long", "zero"]
    assert [score for _, score in found] == pytest.approx([1.0, 0.0])


@every_index
def test_single_vectors_are_compared_without_the_others(make: Callable[[], VectorIndex]) -> None:
    index, vectors = make(), rows(20)
    index.put(names(20), vectors)
    query = rows(1, seed=1)[0]
    found = index.similarities(query, ["n3", "never there", "n17"])
    everything = dict(index.search(query, k=20))
    assert found == pytest.approx({name: everything[name] for name in ("n3", "n17")})
    assert index.similarities(query, ["n3"], domain="other") == {}
    assert index.similarities(query, ["never there"]) == {}


@every_index
def test_domains_do_not_see_each_other(make: Callable[[], VectorIndex]) -> None:
    index, vectors = make(), rows(2)
    index.put(["a"], vectors[:1], domain="one")
    index.put(["b"], vectors[1:], domain="two")
    assert [name for name, _ in index.search(vectors[1], domain="one")] == ["a"]
    assert index.search(vectors[1]) == []


@every_index
def test_an_id_that_is_put_again_is_replaced(make: Callable[[], VectorIndex]) -> None:
    index, vectors = make(), rows(3)
    index.put(["a", "b"], vectors[:2])
    index.put(["a"], vectors[2:])
    assert dict(index.search(vectors[2], k=1)) == pytest.approx({"a": 1.0})
    assert len(index.search(vectors[2], k=10)) == 2


@every_index
def test_the_last_of_equal_ids_in_one_call_counts(make: Callable[[], VectorIndex]) -> None:
    index, vectors = make(), rows(2)
    index.put(["a", "a"], vectors)
    assert dict(index.search(vectors[1], k=5)) == pytest.approx({"a": 1.0})


@every_index
def test_a_removed_id_is_gone_and_the_others_stay(make: Callable[[], VectorIndex]) -> None:
    index, vectors = make(), rows(4)
    index.put(names(4), vectors)
    index.remove(["n1", "never there"])
    assert {name for name, _ in index.search(vectors[1], k=10)} == {"n0", "n2", "n3"}
    assert dict(index.search(vectors[3], k=1)) == pytest.approx({"n3": 1.0})
    index.remove(["n0", "n2", "n3"])
    index.remove(["n0"], domain="unknown")
    assert index.search(vectors[3]) == []


@every_index
def test_vectors_of_another_length_are_refused(make: Callable[[], VectorIndex]) -> None:
    index = make()
    index.put(["a"], rows(1))
    with pytest.raises(ValueError, match="vectors have 4 dimensions, the index has 8; use one embedder"):
        index.put(["b"], rows(1, dimensions=4))
    with pytest.raises(ValueError, match="4 dimensions"):
        index.search(rows(1, dimensions=4)[0])


@every_index
def test_ids_and_vectors_must_be_as_many(make: Callable[[], VectorIndex]) -> None:
    with pytest.raises(ValueError, match="2 ids came with 1 vectors"):
        make().put(["a", "b"], rows(1))


@every_index
def test_a_vector_that_is_no_number_is_refused(make: Callable[[], VectorIndex]) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        make().put(["a"], np.array([[1, np.nan]], dtype=np.float32))


@every_index
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.booleans(), st.integers(0, 30)), max_size=40))
def test_any_order_of_changes_leaves_what_a_plain_dictionary_would(
    make: Callable[[], VectorIndex], changes: list[tuple[str, bool, int]]
) -> None:
    index, vectors = make(), rows(31)
    expected: dict[str, Vectors] = {}
    for name, remove, row in changes:
        if remove:
            index.remove([name])
            expected.pop(name, None)
        else:
            index.put([name], vectors[row : row + 1])
            expected[name] = vectors[row]
    query = rows(1, seed=9)[0]
    scores = {name: row @ query / (np.linalg.norm(row) * np.linalg.norm(query)) for name, row in expected.items()}
    assert dict(index.search(query, k=10)) == pytest.approx(scores, abs=1e-5)


def test_an_index_is_chosen_by_name_and_then_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert VectorIndex().kind == "exact"
    monkeypatch.setenv(INDEX_VARIABLE, "faiss")
    assert VectorIndex().kind == "faiss"
    assert VectorIndex("exact").kind == "exact"
    assert VectorIndex(usual="sketched").kind == "faiss"
    monkeypatch.delenv(INDEX_VARIABLE)
    assert VectorIndex(usual="sketched").kind == "sketched"


def test_an_unknown_index_lists_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="no vector index is named 'hnsw'; use 'exact', 'sketched' or 'faiss'"):
        VectorIndex("hnsw")
    monkeypatch.setenv(INDEX_VARIABLE, "hnsw")
    with pytest.raises(ConfigurationError, match=r"named 'hnsw' \(JOURNEYMAN_INDEX\)"):
        VectorIndex()


def test_without_its_extra_faiss_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ConfigurationError, match=re.escape(install_command("faiss"))):
        VectorIndex("faiss")

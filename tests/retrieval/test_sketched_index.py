"""The index that looks at signs first: what is near is found, whatever was added, replaced and removed before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.protocols import Vectors
from journeyman.retrieval import index as sketches
from journeyman.retrieval.index import VectorIndex

DIMENSIONS = 100
"""No multiple of the bits in a word."""


@pytest.fixture(autouse=True)
def _sketches_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "SKETCHED", 8)
    monkeypatch.setattr(sketches, "candidates", lambda count, k: 3 + k)


def scattered(count: int, *, seed: int = 0) -> Vectors:
    return np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)


@given(
    st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["put", "put", "put", "remove"]), st.integers(0, 99))),
    st.integers(0, 30),
)
def test_every_vector_is_found_after_any_changes(changes: list[tuple[int, str, int]], at_first: int) -> None:
    vectors, index = scattered(100), VectorIndex("sketched")
    there = {f"n{number}": number for number in range(at_first)}
    index.put(list(there), vectors[:at_first])
    for number, change, row in changes:
        if change == "remove":
            index.remove([f"n{number}"])
            there.pop(f"n{number}", None)
        else:
            index.put([f"n{number}"], vectors[row : row + 1])
            there[f"n{number}"] = row
    for name, row in there.items():
        found = dict(index.search(3 * vectors[row], k=5))
        twins = [other for other, same in there.items() if same == row]
        assert max(found.values()) == pytest.approx(1.0, abs=1e-5)
        assert set(twins) & found.keys()
        assert len(twins) > 5 or name in found


def test_neighbours_are_found_and_ranked_as_by_comparing_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sketches, "candidates", lambda count, k: 60)
    draw = np.random.default_rng(3)
    middles = scattered(40, seed=4)
    rows = (middles[draw.integers(0, 40, 2_000)] + 0.4 * scattered(2_000, seed=5)).astype(np.float32)
    names = [f"n{number}" for number in range(2_000)]
    exact, sketched = VectorIndex("exact"), VectorIndex("sketched")
    for index in (exact, sketched):
        index.put(names[:1_500], rows[:1_500])
        index.put(names[1_500:], rows[1_500:])
    for query in middles:
        found, wanted = sketched.search(query, k=10), exact.search(query, k=10)
        assert [name for name, _ in found] == [name for name, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted])

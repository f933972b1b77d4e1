"""Vector indexes that compare a vector with every other one, in numpy or in FAISS; each domain is searched by itself.

Needs numpy, so only those who embed import this.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command

Matrix: TypeAlias = NDArray[np.float32]

INDEX_VARIABLE = "JOURNEYMAN_INDEX"
NOT_A_NUMBER = "a vector holds a value that is not a finite number; the embedder is at fault"

_SMALLEST = 16


class MatrixDomain:
    """A numpy matrix without gaps: the last row takes a removed one's place."""

    def __init__(self, rows: Matrix, ids: list[str]) -> None:
        self.rows = rows
        self.ids = ids
        self._places = {key: place for place, key in enumerate(ids)}

    @property
    def dimensions(self) -> int:
        return int(self.rows.shape[1])

    def put(self, ids: Sequence[str], rows: Matrix) -> None:
        self._make_room(len(self.ids) + sum(key not in self._places for key in ids))
        places = np.empty(len(ids), dtype=np.intp)
        for number, key in enumerate(ids):
            place = self._places.get(key)
            if place is None:
                place = self._places[key] = len(self.ids)
                self.ids.append(key)
            places[number] = place
        self.rows[places] = rows

    def _make_room(self, wanted: int) -> None:
        if wanted <= len(self.rows):
            return
        grown = np.empty((max(wanted, 2 * len(self.rows), _SMALLEST), self.dimensions), dtype=np.float32)
        grown[: len(self.ids)] = self.rows[: len(self.ids)]
        self.rows = grown

    def __len__(self) -> int:
        return len(self.ids)

    def remove(self, ids: Iterable[str]) -> None:
        for key in ids:
            place = self._places.pop(key, None)
            if place is None:
                continue
            last = self.ids.pop()
            if last != key:
                self.rows[place] = self.rows[len(self.ids)]
                self.ids[place] = last
                self._places[last] = place

    def search(self, query: Matrix, k: int) -> list[tuple[str, float]]:
        return [(self.ids[place], score) for place, score in best_of(self.rows[: len(self.ids)] @ query, k)]

    def scores(self, query: Matrix, ids: Sequence[str]) -> list[tuple[str, float]]:
        known = [key for key in ids if key in self._places]
        rows = self.rows[[self._places[key] for key in known]]
        return list(zip(known, (rows @ query).tolist(), strict=True))

    @classmethod
    def empty(cls, dimensions: int) -> Self:
        return cls(np.empty((0, dimensions), dtype=np.float32), [])


def best_of(scores: Matrix, k: int) -> list[tuple[int, float]]:
    """Places and scores of the highest, best first."""
    count = len(scores)
    best = scores.argpartition(count - k)[count - k :] if k < count else np.arange(count)
    best = best[scores[best].argsort()[::-1]]
    return list(zip(best.tolist(), scores[best].tolist(), strict=True))


class _FaissDomain:
    """FAISS's flat index of inner products. It knows numbers only; this keeps which id has which."""

    def __init__(self, flat: Any, ids: Iterable[str]) -> None:
        self._flat = flat
        self._numbers = dict(zip(ids, self._row_numbers(), strict=True))
        self._names = {number: key for key, number in self._numbers.items()}
        self._next = max(self._names, default=-1) + 1

    def _row_numbers(self) -> list[int]:
        numbers: list[int] = _faiss().vector_to_array(self._flat.id_map).tolist()
        return numbers

    @property
    def dimensions(self) -> int:
        return int(self._flat.d)

    @property
    def ids(self) -> list[str]:
        """In the order of the rows."""
        return [self._names[number] for number in self._row_numbers()]

    def __len__(self) -> int:
        return len(self._names)

    def put(self, ids: Sequence[str], rows: Matrix) -> None:
        latest = {key: row for row, key in enumerate(ids)}
        self.remove(latest)
        numbers = np.arange(self._next, self._next + len(latest), dtype=np.int64)
        self._next += len(latest)
        self._flat.add_with_ids(np.ascontiguousarray(rows[list(latest.values())]), numbers)
        for key, number in zip(latest, numbers.tolist(), strict=True):
            self._numbers[key] = number
            self._names[number] = key

    def remove(self, ids: Iterable[str]) -> None:
        numbers = [self._numbers.pop(key) for key in list(ids) if key in self._numbers]
        if numbers:
            self._flat.remove_ids(np.asarray(numbers, dtype=np.int64))
        for number in numbers:
            del self._names[number]

    def search(self, query: Matrix, k: int) -> list[tuple[str, float]]:
        scores, numbers = self._flat.search(query[None], min(k, len(self)))
        nearest = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
        return [(self._names[number], score) for number, score in nearest]

    def scores(self, query: Matrix, ids: Sequence[str]) -> list[tuple[str, float]]:
        known = [key for key in ids if key in self._numbers]
        rows = [self._flat.reconstruct(self._numbers[key]) for key in known]
        return list(zip(known, (np.stack(rows) @ query).tolist(), strict=True)) if rows else []

    @classmethod
    def empty(cls, dimensions: int) -> Self:
        faiss = _faiss()
        return cls(faiss.IndexIDMap2(faiss.IndexFlatIP(dimensions)), ())


_Domain: TypeAlias = MatrixDomain | _FaissDomain


def _faiss() -> Any:
    try:
        return import_module("faiss")
    except ImportError:
        raise ConfigurationError(f"FAISS is not installed; run: {install_command('faiss')}") from None


class VectorIndex:
    """Vectors by id, in domains that do not see each other; similarity is the cosine.

    An ``exact`` one finds the nearest vectors, surely; fast enough up to about a million in one domain. ``faiss`` is
    the same on FAISS, for those who run it already (extra ``faiss``). A ``sketched`` one is exact up to ``SKETCHED``
    vectors in one domain; above that, exact among those that are near by their sketches. None: what JOURNEYMAN_INDEX
    says, else the ``usual`` one.
    """

    def __init__(self, kind: str | None = None, *, usual: str = "exact") -> None:
        kinds: dict[str, type[_Domain]] = {
            "exact": MatrixDomain,
            "sketched": SketchedDomain,
            "faiss": _FaissDomain,
        }
        self.kind = kind or os.environ.get(INDEX_VARIABLE) or usual
        if self.kind not in kinds:
            where = "" if kind else f" ({INDEX_VARIABLE})"
            raise ConfigurationError(
                f"no vector index is named {self.kind!r}{where}; use 'exact', 'sketched' or 'faiss'"
            )
        if self.kind == "faiss":
            _faiss()
        self._domain = kinds[self.kind]
        """The vectors of one domain; their rows have length 1."""
        self._domains: dict[str, _Domain] = {}

    def put(self, ids: Sequence[str], vectors: Matrix, *, domain: str = "") -> None:
        if not ids:
            return
        rows = unit(vectors)
        known = self._domains.get(domain)
        _check_rows(ids, rows, dimensions=None if known is None else known.dimensions)
        if known is None:
            known = self._domains[domain] = self._domain.empty(rows.shape[1])
        known.put(ids, rows)

    def remove(self, ids: Iterable[str], *, domain: str = "") -> None:
        known = self._domains.get(domain)
        if known is None:
            return
        known.remove(ids)
        if not len(known):
            del self._domains[domain]

    def search(self, vector: Matrix, *, k: int = 5, domain: str = "") -> list[tuple[str, float]]:
        known = self._domains.get(domain)
        if known is None or k < 1:
            return []
        query, length = _query(vector, known)
        # Only what is returned is brought to the scale of cosines; at a thousand vectors anything more would show.
        return [(key, score / length) for key, score in known.search(query, k)]

    def similarities(self, vector: Matrix, ids: Sequence[str], *, domain: str = "") -> dict[str, float]:
        """The cosines of these vectors, as far as they are here."""
        known = self._domains.get(domain)
        if known is None:
            return {}
        query, length = _query(vector, known)
        return {key: score / length for key, score in known.scores(query, ids)}


def unit(vectors: Matrix) -> Matrix:
    """Rows of length 1, so that a product is a cosine; a zero row stays zero. Refuses what is no number."""
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    if not np.isfinite(lengths).all():
        raise ValueError(NOT_A_NUMBER)
    lengths[lengths == 0] = 1
    scaled: Matrix = rows / lengths
    return scaled


def _query(vector: Matrix, domain: _Domain) -> tuple[Matrix, float]:
    """What is looked for, and its length."""
    query = np.asarray(vector, dtype=np.float32).reshape(-1)
    _check_rows([""], query[None], dimensions=domain.dimensions)
    length = math.sqrt(query @ query) or 1.0
    if not math.isfinite(length):
        raise ValueError(NOT_A_NUMBER)
    return query, length


def _check_rows(ids: Sequence[str], rows: Matrix, *, dimensions: int | None) -> None:
    """Refuse vectors that do not fit their ids or the vectors before them."""
    if len(ids) != len(rows):
        raise ValueError(f"{len(ids)} ids came with {len(rows)} vectors; give one vector for each id")
    if dimensions not in (None, rows.shape[1]):
        raise ValueError(f"vectors have {rows.shape[1]} dimensions, the index has {dimensions}; use one embedder")


# --- for large domains: a rough look at every vector, an exact one at the likeliest
#
# The rough look compares signs. A vector's sketch is one bit for each coordinate, whether it is above the domain's
# mean: a thirty-second of its size, and two vectors differ in the more bits the wider the angle between them. Reading
# every vector is what an exact search spends its time on; this reads every sketch, and the vectors of ``candidates()``.
# The order among the found is exact. Of requests embedded by MiniLM, with the share of candidates that a hundred
# thousand have, it finds the nearest always, 99.9 % of the nearest five and 99 % of the nearest twenty; what it misses
# is farther.


SKETCHED = 20_000
"""Vectors in a domain from which on they are sketched: fewer are compared one by one within two milliseconds."""
_BITS = 64
_ROWS_AT_ONCE = 8_192


def candidates(count: int, k: int) -> int:
    """How many of so many vectors are looked at exactly."""
    return 4_000 + count // 200 + 10 * k


class SketchedDomain(MatrixDomain):
    """A matrix with the sketches of its rows. Small ones have none."""

    def __init__(self, rows: Matrix, ids: list[str]) -> None:
        super().__init__(rows, ids)
        self._sketches: NDArray[np.uint64] | None = None
        """A column for each row of the matrix."""
        self._mean: Matrix = np.zeros(self.dimensions, dtype=np.float32)

    def put(self, ids: Sequence[str], rows: Matrix) -> None:
        super().put(ids, rows)
        if len(self.ids) < SKETCHED:
            return
        if self._sketches is None or len(self.ids) > self._sketches.shape[1]:
            self._sketch_all()
        else:
            self._sketches[:, [self._places[key] for key in ids]] = self._sketch(rows)

    def remove(self, ids: Iterable[str]) -> None:
        gone = list(ids)
        places = [place for key in gone if (place := self._places.get(key)) is not None]
        super().remove(gone)
        if self._sketches is not None and (moved := [place for place in places if place < len(self.ids)]):
            self._sketches[:, moved] = self._sketch(self.rows[moved])

    def search(self, query: Matrix, k: int) -> list[tuple[str, float]]:
        count, looked_at = len(self.ids), candidates(len(self.ids), k)
        if count < SKETCHED or looked_at >= count:
            return super().search(query, k)
        if self._sketches is None:
            self._sketch_all()
        places = self._likeliest(query, count, looked_at)
        scores = self.rows.take(places, axis=0) @ query
        return [(self.ids[places[at]], score) for at, score in best_of(scores, k)]

    def _likeliest(self, query: Matrix, count: int, wanted: int) -> NDArray[np.intp]:
        """The places of those vectors whose sketches differ least from the query's: as many as wanted, or some more."""
        assert self._sketches is not None
        asked = self._sketch((query / (np.linalg.norm(query) or 1.0))[None])[:, 0]
        differing = np.zeros(count, dtype=np.uint16)
        for known, bits in zip(self._sketches, asked, strict=True):
            differing += np.bitwise_count(known[:count] ^ bits)
        at_most = np.searchsorted(np.bincount(differing).cumsum(), wanted)
        return np.flatnonzero(differing <= at_most)

    def _sketch_all(self) -> None:
        """Sketch every row, with room to grow: when that is used up, the mean is another and all are sketched again."""
        count = len(self.ids)
        self._mean = self.rows[:count].mean(axis=0)
        words = -(-self.dimensions // _BITS)
        self._sketches = np.empty((words, 2 * count), dtype=np.uint64)
        for begin in range(0, count, _ROWS_AT_ONCE):
            end = min(begin + _ROWS_AT_ONCE, count)
            self._sketches[:, begin:end] = self._sketch(self.rows[begin:end])

    def _sketch(self, rows: Matrix) -> NDArray[np.uint64]:
        bits = np.packbits(rows > self._mean, axis=1)
        whole = np.zeros((len(rows), -(-self.dimensions // _BITS) * 8), dtype=np.uint8)
        whole[:, : bits.shape[1]] = bits
        return whole.view(np.uint64).T

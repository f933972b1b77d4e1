"""Vector indexes that compare a vector with every other one, in numpy or in FAISS; each domain is searched by itself.

On disk an index is one file for each domain and a list of ids. Needs numpy, so only those who embed import this.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from journeyman.core.errors import ConfigurationError
from journeyman.core.extras import install_command
from journeyman.core.protocols import VectorIndex

Matrix: TypeAlias = NDArray[np.float32]

INDEX_VARIABLE = "JOURNEYMAN_INDEX"
NOT_A_NUMBER = "a vector holds a value that is not a finite number; the embedder is at fault"

_SMALLEST = 16
_IDS = "ids.json"


def vector_index(kind: str | None = None, *, usual: str = "exact") -> VectorIndex:
    """An empty index: ``exact``, ``sketched``, or ``faiss`` (extra ``faiss``).

    None: what JOURNEYMAN_INDEX says, else the ``usual`` one.
    """
    from journeyman.retrieval.sketches import SketchedIndex

    wanted = kind or os.environ.get(INDEX_VARIABLE) or usual
    for index in (ExactIndex, SketchedIndex, FaissIndex):
        if index.kind == wanted:
            return index()
    where = "" if kind else f" ({INDEX_VARIABLE})"
    raise ConfigurationError(f"no vector index is named {wanted!r}{where}; use 'exact', 'sketched' or 'faiss'")


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

    def save(self, file: Path) -> None:
        with file.open("wb") as opened:
            np.save(opened, self.rows[: len(self.ids)])

    @classmethod
    def load(cls, file: Path, ids: list[str]) -> Self:
        # Mode "c": what changes later stays in memory, and the file as it is. Nothing is read before a search.
        return cls(np.load(file, mmap_mode="c"), ids)

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
        found = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
        return [(self._names[number], score) for number, score in found]

    def scores(self, query: Matrix, ids: Sequence[str]) -> list[tuple[str, float]]:
        known = [key for key in ids if key in self._numbers]
        rows = [self._flat.reconstruct(self._numbers[key]) for key in known]
        return list(zip(known, (np.stack(rows) @ query).tolist(), strict=True)) if rows else []

    def save(self, file: Path) -> None:
        _faiss().write_index(self._flat, str(file))

    @classmethod
    def load(cls, file: Path, ids: list[str]) -> Self:
        return cls(_faiss().read_index(str(file)), ids)

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


class ExactIndex:
    """Finds the nearest vectors, surely. Fast enough up to about a million in one domain."""

    kind: ClassVar[str] = "exact"
    _domain: ClassVar[type[_Domain]] = MatrixDomain
    """The vectors of one domain; their rows have length 1."""

    def __init__(self) -> None:
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

    def save(self, folder: Path) -> None:
        """Write everything into a folder; a reader sees the old state or the new one, never half of each."""
        folder.mkdir(parents=True, exist_ok=True)
        before = json.loads((folder / _IDS).read_text(encoding="utf-8")) if (folder / _IDS).exists() else {}
        generation = int(before.get("generation", 0)) + 1
        domains = {}
        for number, (domain, known) in enumerate(self._domains.items()):
            name = f"{generation}-{number}.{self.kind}"
            known.save(folder / name)
            domains[domain] = {"file": name, "ids": known.ids}
        fresh = folder / f"{_IDS}.new"
        fresh.write_text(json.dumps({"generation": generation, "domains": domains}), encoding="utf-8")
        os.replace(fresh, folder / _IDS)
        for stale in folder.glob(f"*.{self.kind}"):
            if not stale.name.startswith(f"{generation}-"):
                stale.unlink()

    def load(self, folder: Path) -> None:
        saved = json.loads((folder / _IDS).read_text(encoding="utf-8"))["domains"]
        self._domains = {
            domain: self._domain.load(folder / entry["file"], entry["ids"]) for domain, entry in saved.items()
        }


class FaissIndex(ExactIndex):
    """The same on FAISS, for those who run it already. Exact too; needs the extra ``faiss``."""

    kind = "faiss"
    _domain = _FaissDomain

    def __init__(self) -> None:
        _faiss()
        super().__init__()


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

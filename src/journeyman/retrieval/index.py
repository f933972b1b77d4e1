"""The exact vector index: one matrix for each domain, compared as a whole. Needs numpy, which only its makers import.

On disk it is one ``.npy`` file per domain and a list of ids; loading maps the files and reads nothing until a search.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float32]

NOT_A_NUMBER = "a vector holds a value that is not a finite number; the embedder is at fault"

_SMALLEST = 16
_IDS = "ids.json"


def unit(vectors: Matrix) -> Matrix:
    """Rows of length 1, so that a product is a cosine; a zero row stays zero. Refuses what is no number."""
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    if not np.isfinite(lengths).all():
        raise ValueError(NOT_A_NUMBER)
    lengths[lengths == 0] = 1
    scaled: Matrix = rows / lengths
    return scaled


def check_rows(ids: Sequence[str], rows: Matrix, *, dimensions: int | None) -> None:
    """Refuse vectors that do not fit their ids or the vectors before them."""
    if len(ids) != len(rows):
        raise ValueError(f"{len(ids)} ids came with {len(rows)} vectors; give one vector for each id")
    if dimensions not in (None, rows.shape[1]):
        raise ValueError(f"vectors have {rows.shape[1]} dimensions, the index has {dimensions}; use one embedder")


class _Domain:
    """Ids and their rows, without gaps: the last row takes a removed one's place."""

    def __init__(self, rows: Matrix, ids: list[str]) -> None:
        self.rows = rows
        self.ids = ids
        self.places = {key: place for place, key in enumerate(ids)}

    def put(self, ids: Sequence[str], rows: Matrix) -> None:
        self._make_room(len(self.ids) + sum(key not in self.places for key in ids))
        places = np.empty(len(ids), dtype=np.intp)
        for number, key in enumerate(ids):
            place = self.places.get(key)
            if place is None:
                place = self.places[key] = len(self.ids)
                self.ids.append(key)
            places[number] = place
        self.rows[places] = rows

    def _make_room(self, wanted: int) -> None:
        if wanted <= len(self.rows):
            return
        grown = np.empty((max(wanted, 2 * len(self.rows), _SMALLEST), self.rows.shape[1]), dtype=np.float32)
        grown[: len(self.ids)] = self.rows[: len(self.ids)]
        self.rows = grown

    def remove(self, key: str) -> None:
        place = self.places.pop(key, None)
        if place is None:
            return
        last = self.ids.pop()
        if last != key:
            self.rows[place] = self.rows[len(self.ids)]
            self.ids[place] = last
            self.places[last] = place


class ExactIndex:
    """Finds the nearest vectors, surely. Fast enough up to about a million in one domain."""

    def __init__(self) -> None:
        self._domains: dict[str, _Domain] = {}

    def put(self, ids: Sequence[str], vectors: Matrix, *, domain: str = "") -> None:
        """Add vectors, or replace those of ids that are there."""
        if not ids:
            return
        rows = unit(vectors)
        known = self._domains.get(domain)
        check_rows(ids, rows, dimensions=known.rows.shape[1] if known else None)
        if known is None:
            known = self._domains[domain] = _Domain(np.empty((0, rows.shape[1]), dtype=np.float32), [])
        known.put(ids, rows)

    def remove(self, ids: Iterable[str], *, domain: str = "") -> None:
        """Forget ids; those that are not there are no error."""
        known = self._domains.get(domain)
        if known is None:
            return
        for key in ids:
            known.remove(key)
        if not known.ids:
            del self._domains[domain]

    def search(self, vector: Matrix, *, k: int = 5, domain: str = "") -> list[tuple[str, float]]:
        """The ids with the highest similarity, best first."""
        known = self._domains.get(domain)
        if known is None or k < 1:
            return []
        query = np.asarray(vector, dtype=np.float32).reshape(-1)
        check_rows([domain], query[None], dimensions=known.rows.shape[1])
        length = math.sqrt(query @ query) or 1.0
        if not math.isfinite(length):
            raise ValueError(NOT_A_NUMBER)
        count = len(known.ids)
        scores = known.rows[:count] @ query
        best = scores.argpartition(count - k)[count - k :] if k < count else np.arange(count)
        best = best[scores[best].argsort()[::-1]]
        # Only what is returned is brought to the scale of cosines; at a thousand vectors anything more would show.
        ids = known.ids
        return [(ids[place], score / length) for place, score in zip(best.tolist(), scores[best].tolist(), strict=True)]

    def save(self, folder: Path) -> None:
        """Write everything into a folder; a reader sees the old state or the new one, never half of each."""
        folder.mkdir(parents=True, exist_ok=True)
        generation = _generation(folder) + 1
        domains = {}
        for number, (domain, known) in enumerate(self._domains.items()):
            name = f"{generation}-{number}.npy"
            np.save(folder / name, known.rows[: len(known.ids)])
            domains[domain] = {"file": name, "ids": known.ids}
        fresh = folder / f"{_IDS}.new"
        fresh.write_text(json.dumps({"generation": generation, "domains": domains}), encoding="utf-8")
        os.replace(fresh, folder / _IDS)
        for stale in folder.glob("*.npy"):
            if not stale.name.startswith(f"{generation}-"):
                stale.unlink()

    def load(self, folder: Path) -> None:
        """Take over what ``save`` left there, in place of what is here."""
        saved = json.loads((folder / _IDS).read_text(encoding="utf-8"))["domains"]
        # Mode "c": what changes later stays in memory, and the file as it is.
        self._domains = {
            domain: _Domain(np.load(folder / entry["file"], mmap_mode="c"), entry["ids"])
            for domain, entry in saved.items()
        }


def _generation(folder: Path) -> int:
    try:
        return int(json.loads((folder / _IDS).read_text(encoding="utf-8"))["generation"])
    except FileNotFoundError:
        return 0

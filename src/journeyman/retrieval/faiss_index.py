"""The same index on FAISS, for those who run it already. Exact too; needs the extra ``faiss``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.core.errors import ConfigurationError
from journeyman.retrieval.index import Matrix, check_rows, unit

_IDS = "ids.json"


class _Domain:
    """A FAISS index knows numbers only; this keeps which id has which."""

    def __init__(self, flat: Any, numbers: dict[str, int]) -> None:
        self.flat = flat
        self.numbers = numbers
        self.ids = {number: key for key, number in numbers.items()}
        self.next = max(self.ids, default=-1) + 1


class FaissIndex:
    """Finds the nearest vectors by FAISS's flat index of inner products."""

    def __init__(self) -> None:
        try:
            self._faiss: Any = import_module("faiss")
        except ImportError:
            raise ConfigurationError("FAISS is not installed; run: pip install 'journeyman[faiss]'") from None
        self._domains: dict[str, _Domain] = {}

    def put(self, ids: Sequence[str], vectors: Matrix, *, domain: str = "") -> None:
        """Add vectors, or replace those of ids that are there."""
        if not ids:
            return
        rows = unit(vectors)
        known = self._domains.get(domain)
        check_rows(ids, rows, dimensions=known.flat.d if known else None)
        if known is None:
            known = _Domain(self._faiss.IndexIDMap2(self._faiss.IndexFlatIP(rows.shape[1])), {})
            self._domains[domain] = known
        latest = {key: row for row, key in enumerate(ids)}
        _remove(known, latest)
        numbers = np.arange(known.next, known.next + len(latest), dtype=np.int64)
        known.next += len(latest)
        known.flat.add_with_ids(np.ascontiguousarray(rows[list(latest.values())]), numbers)
        for key, number in zip(latest, numbers.tolist(), strict=True):
            known.numbers[key] = number
            known.ids[number] = key

    def remove(self, ids: Iterable[str], *, domain: str = "") -> None:
        """Forget ids; those that are not there are no error."""
        known = self._domains.get(domain)
        if known is None:
            return
        _remove(known, ids)
        if not known.ids:
            del self._domains[domain]

    def search(self, vector: Matrix, *, k: int = 5, domain: str = "") -> list[tuple[str, float]]:
        """The ids with the highest similarity, best first."""
        known = self._domains.get(domain)
        if known is None or k < 1:
            return []
        query = unit(vector)
        check_rows([domain], query, dimensions=known.flat.d)
        scores, numbers = known.flat.search(query, min(k, len(known.ids)))
        return [(known.ids[int(number)], float(score)) for number, score in zip(numbers[0], scores[0], strict=True)]

    def save(self, folder: Path) -> None:
        """Write everything into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        domains = {}
        for number, (domain, known) in enumerate(self._domains.items()):
            name = f"{number}.faiss"
            self._faiss.write_index(known.flat, str(folder / name))
            domains[domain] = {"file": name, "numbers": known.numbers}
        (folder / _IDS).write_text(json.dumps(domains), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Take over what ``save`` left there, in place of what is here."""
        saved = json.loads((folder / _IDS).read_text(encoding="utf-8"))
        self._domains = {
            domain: _Domain(self._faiss.read_index(str(folder / entry["file"])), entry["numbers"])
            for domain, entry in saved.items()
        }


def _remove(known: _Domain, ids: Iterable[str]) -> None:
    numbers = [known.numbers.pop(key) for key in list(ids) if key in known.numbers]
    if numbers:
        known.flat.remove_ids(np.asarray(numbers, dtype=np.int64))
    for number in numbers:
        del known.ids[number]

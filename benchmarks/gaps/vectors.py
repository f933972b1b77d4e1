"""The default embedder with its vectors kept on disk: making them takes minutes, and nobody changes the weights."""

import pickle
from collections.abc import Sequence

import numpy as np

from benchmarks import packages
from journeyman.core.protocols import Vectors
from journeyman.retrieval.embedders.minilm import MiniLM

FILE = packages.HOME / "gaps" / "vectors.pickle"


class RememberedVectors:
    """Embeds only texts that are new."""

    name = MiniLM.name

    def __init__(self) -> None:
        self._rows: dict[str, Vectors] = pickle.loads(FILE.read_bytes()) if FILE.exists() else {}
        self._model = MiniLM()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if missing := [text for text in dict.fromkeys(texts) if text not in self._rows]:
            made = await self._model.embed(missing)
            self._rows.update(zip(missing, made / np.linalg.norm(made, axis=1, keepdims=True), strict=True))
        return np.stack([self._rows[text] for text in texts])

    def save(self) -> None:
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_bytes(pickle.dumps(self._rows))

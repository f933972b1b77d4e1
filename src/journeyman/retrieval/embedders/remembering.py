"""An embedder that remembers what it was asked lately: one request is searched among tools, memory and strategies."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from journeyman.core.protocols import Embedder, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT = 2048


class Remembering:
    """Asks the embedder behind it only for texts that are new. May be shared by everything in a process."""

    def __init__(self, embedder: Embedder, *, kept: int = KEPT) -> None:
        self._embedder = embedder
        self._kept = kept
        self._rows: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    @property
    def name(self) -> str:
        return self._embedder.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text."""
        import numpy as np

        if not texts:
            return await self._embedder.embed(texts)
        rows = {text: self._rows[text] for text in texts if text in self._rows}
        missing = [text for text in dict.fromkeys(texts) if text not in rows]
        if missing:
            made = np.asarray(await self._embedder.embed(missing), dtype=np.float32)
            rows.update(zip(missing, made, strict=True))
        for text, row in rows.items():
            self._rows[text] = row
            self._rows.move_to_end(text)
        while len(self._rows) > self._kept:
            self._rows.popitem(last=False)
        return np.stack([rows[text] for text in texts])

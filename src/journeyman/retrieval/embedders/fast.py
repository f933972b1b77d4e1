"""Models of the fastembed library, e.g. bge-small (extra ``fastembed``). Naming one is leave to download it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from journeyman.core.errors import ConfigurationError, ErrorCategory, ModelError
from journeyman.core.protocols import Vectors


class FastEmbed:
    """A model by fastembed's name. It is downloaded at first use, once, unless ``path`` says where its files are."""

    def __init__(self, model: str, *, path: Path | None = None) -> None:
        if find_spec("fastembed") is None:
            raise ConfigurationError("fastembed is not installed; run: pip install 'journeyman[fastembed]'")
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

        rows = list(self._loaded().embed(texts))
        return np.asarray(rows, dtype=np.float32)

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

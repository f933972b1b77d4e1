"""Vectors from a server that speaks OpenAI's ``/embeddings``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import aiohttp
from pydantic import BaseModel, ValidationError

from journeyman.core.data import VECTORS_BYTES, read_at_most
from journeyman.core.errors import ErrorCategory, ModelError
from journeyman.core.protocols import Vectors
from journeyman.sensitive.tokens import bare_url, redacted

PUBLIC_ENDPOINT = "https://api.openai.com/v1"
BATCH = 128
SHOWN = 200


class _Row(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Row]


class EndpointEmbedder:
    """A model behind an OpenAI-compatible server.

    The key of the environment goes only to the server of the environment: a ``base_url`` given here that is another
    one gets ``api_key``, or none.
    """

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 30.0
    ) -> None:
        usual = os.environ.get("OPENAI_BASE_URL") or PUBLIC_ENDPOINT
        server = (base_url or usual).rstrip("/")
        if api_key is None and server == usual.rstrip("/"):
            api_key = os.environ.get("OPENAI_API_KEY")
        self.name = f"{server}#{model}"
        self._model = model
        self._url = f"{server}/embeddings"
        self._headers = {"User-Agent": "journeyman"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        self._timeout = timeout

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text. Connections are not kept: embedding is rare and the loop may change."""
        import numpy as np

        rows: list[list[float]] = []
        limits = aiohttp.ClientTimeout(total=self._timeout)
        async with aiohttp.ClientSession(headers=self._headers, timeout=limits, trust_env=True) as session:
            for start in range(0, len(texts), BATCH):
                rows += await self._ask(session, texts[start : start + BATCH])
        return np.asarray(rows, dtype=np.float32)

    async def _ask(self, session: aiohttp.ClientSession, texts: Sequence[str]) -> list[list[float]]:
        body: dict[str, Any] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            async with session.post(self._url, json=body) as answer:
                content, complete = await read_at_most(answer.content.iter_any(), VECTORS_BYTES)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._error(str(error) or type(error).__name__, ErrorCategory.NETWORK, retryable=True) from error
        if answer.status != 200:
            said = content.decode("utf-8", "replace")[:SHOWN]
            refused = ErrorCategory.AUTHENTICATION if answer.status in {401, 403} else ErrorCategory.SYSTEM_ERROR
            raise self._error(f"status {answer.status}: {said}", refused, retryable=answer.status >= 429)
        if not complete:
            raise self._error(f"an answer of more than {VECTORS_BYTES:,} bytes")
        try:
            rows = sorted(_Answer.model_validate_json(content).data, key=lambda row: row.index)
        except ValidationError as error:
            raise self._error(f"not an embeddings answer: {error.errors()[0]['msg']}") from error
        if [row.index for row in rows] != list(range(len(texts))):
            raise self._error(f"{len(rows)} vectors for {len(texts)} texts")
        return [row.embedding for row in rows]

    def _error(
        self, problem: str, category: ErrorCategory = ErrorCategory.SYSTEM_ERROR, *, retryable: bool = False
    ) -> ModelError:
        return ModelError(
            "EMBEDDER_UNAVAILABLE",
            f"{bare_url(self.name)!r} gave no vectors: {redacted(problem)}",
            category=category,
            retryable=retryable,
            user_guidance="start the server, or check its address, its key and the model's name",
        )

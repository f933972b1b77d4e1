"""The environment of whoever runs the tests must not decide them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_MODEL",
        "OLLAMA_HOST",
        "JOURNEYMAN_MODEL",
        "JOURNEYMAN_GGUF",
    ):
        monkeypatch.delenv(name, raising=False)

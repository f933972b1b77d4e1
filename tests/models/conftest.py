"""The environment of whoever runs the tests must not decide them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

OURS = re.compile(
    r"OPENAI_|OLLAMA_HOST|JOURNEYMAN_|AWS_|AZURE_|GOOGLE_|GEMINI_|HF_TOKEN|VERCEL_OIDC|\w+_(?:API|INFERENCE)_KEY"
)


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if OURS.match(name)]:
        monkeypatch.delenv(name)
    # Where Amazon's and Google's SDKs would look for credentials next.
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "nowhere"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_GCE_CHECK", "true")

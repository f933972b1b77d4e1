"""Addresses in models' names, and whether the user's own environment names the same server.

A document somebody else wrote may name any server as its model, and everything that its agent reads is sent there.
"""

from __future__ import annotations

import os
from urllib.parse import SplitResult, urlsplit

from journeyman.models.resolve import MODEL_VARIABLE, ollama_address


def address_of(name: str) -> str | None:
    """The address that a model's name holds; None where it names a provider, a file or the embedded model."""
    kind = name.partition(":")[0].strip().lower()
    # Factories of other packages may read an address behind their own prefix.
    return name.partition("#")[0] if kind in ("http", "https") or "://" in name else None


def is_configured(address: str) -> bool:
    """Whether the environment names this very server: JOURNEYMAN_MODEL, OPENAI_BASE_URL or OLLAMA_HOST."""
    environment = os.environ
    named = [address_of(environment.get(MODEL_VARIABLE, "")), environment.get("OPENAI_BASE_URL")]
    if host := environment.get("OLLAMA_HOST"):
        named.append(ollama_address(host))
    wanted = _parts(address)
    return wanted is not None and any(known is not None and _parts(known) == wanted for known in named)


def _parts(address: str) -> tuple[object, ...] | None:
    try:
        parts: SplitResult = urlsplit(address.strip())
        scheme, port = parts.scheme.lower(), parts.port
    except ValueError:
        return None
    port = port or {"http": 80, "https": 443}.get(scheme)
    return scheme, parts.username, parts.password, parts.hostname, port, parts.path.rstrip("/"), parts.query

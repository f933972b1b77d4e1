"""From a model's name, as people write it, to a model. Adapters are imported only when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping

from journeyman.core.errors import ConfigurationError
from journeyman.core.protocols import Model

DEFAULT_OPENAI_MODEL = "gpt-5-mini"
OLLAMA_PORT = 11434
KNOWN = "'auto', 'openai:NAME', 'ollama:NAME', 'http://HOST:PORT/v1#NAME' (any OpenAI-compatible server)"


def model_from_name(name: str) -> Model:
    """The model that ``name`` stands for.

    ``auto`` takes what the environment offers, in this order: OPENAI_API_KEY (with OPENAI_MODEL or the default model),
    then OPENAI_BASE_URL together with OPENAI_MODEL (a server that needs no key).
    """
    if name == "auto":
        chosen = _choice(os.environ)
        if chosen is None:
            raise ConfigurationError(
                "no model: set OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL for a server without a key, "
                f"or name a model: {KNOWN}"
            )
        return model_from_name(f"openai:{chosen}")
    kind, _, rest = name.partition(":")
    if kind in ("http", "https"):
        address, _, model = name.partition("#")
        return _openai(model, name, base_url=address)
    if kind == "openai":
        return _openai(rest, name)
    if kind == "ollama":
        return _openai(rest, name, base_url=ollama_address(os.environ.get("OLLAMA_HOST", "")))
    raise ConfigurationError(f"model {name!r} is unknown; known are {KNOWN}")


def explain_choice() -> list[str]:
    """What ``auto`` found in the environment and what it takes, a line each. Shows no key."""
    environment = os.environ
    lines = [
        f"{variable}: {_shown(variable, environment)}"
        for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")
    ]
    chosen = _choice(environment)
    if chosen is None:
        return [*lines, "auto: nothing found; set OPENAI_API_KEY, or OPENAI_BASE_URL and OPENAI_MODEL"]
    return [*lines, f"auto: openai:{chosen}"]


def ollama_address(host: str) -> str:
    """The API of the Ollama server that OLLAMA_HOST names; Ollama itself allows it to be short."""
    scheme, _, rest = host.strip().rpartition("://")
    address, _, path = rest.partition("/")
    machine, colon, port = address.rpartition(":")
    if not colon or port.endswith("]"):
        machine, port = address, ""
    # As an address to listen on, 0.0.0.0 means "everywhere"; it is nowhere one can call.
    if machine in ("", "0.0.0.0"):
        machine = "127.0.0.1"
    if not port:
        port = {"http": "80", "https": "443"}.get(scheme, str(OLLAMA_PORT))
    return f"{scheme or 'http'}://{machine}:{port}/{(path.rstrip('/') + '/v1').lstrip('/')}"


def _openai(model: str, name: str, *, base_url: str | None = None) -> Model:
    if not model:
        raise ConfigurationError(f"model {name!r} names no model; write {KNOWN}")
    from journeyman.models.openai import OpenAIModel

    return OpenAIModel(model, base_url=base_url)


def _choice(environment: Mapping[str, str]) -> str | None:
    if environment.get("OPENAI_API_KEY"):
        return environment.get("OPENAI_MODEL") or DEFAULT_OPENAI_MODEL
    if environment.get("OPENAI_BASE_URL"):
        return environment.get("OPENAI_MODEL") or None
    return None


def _shown(variable: str, environment: Mapping[str, str]) -> str:
    value = environment.get(variable)
    if not value:
        return "not set"
    if variable == "OPENAI_API_KEY":
        return "set"
    # An address may carry a password before its "@".
    return value if "@" not in value else f"{value.partition('://')[0]}://***@{value.rpartition('@')[2]}"

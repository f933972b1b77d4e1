"""From a model's name, as people write it, to a model; and which model is meant when none is named.

Adapters are imported only when they are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from journeyman.core.errors import ConfigurationError, ModelError
from journeyman.core.protocols import Model

if TYPE_CHECKING:
    from journeyman.models.embedded.model import Rank

DEFAULT_OPENAI_MODEL = "gpt-5-mini"
OLLAMA_PORT = 11434
KNOWN = (
    "'auto', 'openai:NAME', 'ollama:NAME', 'http://HOST:PORT/v1#NAME' (any OpenAI-compatible server), "
    "'gguf:PATH', 'embedded'"
)
MODEL_VARIABLE = "JOURNEYMAN_MODEL"
GGUF_VARIABLE = "JOURNEYMAN_GGUF"


def model_from_name(name: str, *, rank: Rank | None = None) -> Model:
    """The model that ``name`` stands for. ``auto`` is the first that ``explain_choice`` finds.

    ``rank`` helps a model that cannot weigh many tools at once.
    """
    if name == "auto":
        steps = list(_steps())
        if steps[-1].chosen is None:
            raise ConfigurationError(
                f"no model: {steps[-1].told}; or set OPENAI_API_KEY, or {MODEL_VARIABLE} to one of {KNOWN}"
            )
        name = steps[-1].chosen
    kind, _, rest = name.partition(":")
    if kind in ("http", "https"):
        address, _, model = name.partition("#")
        return _openai(model, name, base_url=address)
    if kind == "openai":
        return _openai(rest, name)
    if kind == "ollama":
        return _openai(rest, name, base_url=ollama_address(os.environ.get("OLLAMA_HOST", "")))
    if kind == "gguf":
        return _gguf(rest, name)
    if name == "embedded":
        return _embedded(rank)
    raise ConfigurationError(f"model {name!r} is unknown; known are {KNOWN}")


def explain_choice() -> list[str]:
    """What was looked at when no model is named, in order, and what is taken; a line each. Shows no key."""
    steps = list(_steps())
    lines = [step.told for step in steps]
    return [*lines, f"auto: {steps[-1].chosen or 'nothing found'}"]


# --- choosing


@dataclass(frozen=True, slots=True)
class _Step:
    told: str
    chosen: str | None = None


def _steps() -> Iterator[_Step]:
    """Where a model is looked for, up to the first that is there. What comes later is not even asked."""
    for step in _places():
        yield step
        if step.chosen is not None:
            return


def _places() -> Iterator[_Step]:
    environment = os.environ
    named = environment.get(MODEL_VARIABLE, "")
    yield _Step(f"{MODEL_VARIABLE}: {_shown(named)}", named if named not in ("", "auto") else None)
    model, key = environment.get("OPENAI_MODEL", ""), environment.get("OPENAI_API_KEY")
    yield _Step(
        f"OPENAI_API_KEY: {'set' if key else 'not set'}", f"openai:{model or DEFAULT_OPENAI_MODEL}" if key else None
    )
    address = environment.get("OPENAI_BASE_URL", "")
    both = f"OPENAI_BASE_URL: {_shown(address)}, OPENAI_MODEL: {_shown(model)}"
    yield _Step(both, f"openai:{model}" if address and model else None)
    from journeyman.models import local_servers

    server = local_servers.find_server()
    if server is not None:
        yield _Step(f"servers on this machine: {server.kind} at port {server.port}", server.name)
    else:
        ports = ", ".join(f"{kind} {port}" for kind, port in local_servers.SERVERS.items())
        yield _Step(f"servers on this machine: none at the usual ports ({ports})")
    path = environment.get(GGUF_VARIABLE, "")
    yield _Step(f"{GGUF_VARIABLE}: {_shown(path)}", f"gguf:{path}" if path else None)
    trouble = _embedded_trouble()
    yield _Step(trouble or "the embedded model: installed", None if trouble else "embedded")


def _shown(value: str) -> str:
    # An address may carry a password before its "@".
    hidden = "://" in value and "@" in value
    return f"{value.partition('://')[0]}://***@{value.rpartition('@')[2]}" if hidden else value or "not set"


# --- making


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


def _gguf(path: str, name: str) -> Model:
    if not path:
        raise ConfigurationError(f"model {name!r} names no file; write 'gguf:PATH'")
    from journeyman.models.gguf import GgufModel

    return GgufModel(path)


def _embedded(rank: Rank | None) -> Model:
    if trouble := _embedded_trouble():
        raise ConfigurationError(trouble)
    from journeyman.models.embedded import EmbeddedModel

    return EmbeddedModel(rank=rank)


def _embedded_trouble() -> str | None:
    """Why the embedded model cannot be used here; None when it can."""
    from journeyman.models.embedded.files import engine_files

    try:
        engine_files()
    except ModelError as error:
        return f"{error.info.message}; {error.info.user_guidance}"
    return None

"""From a model's name, as people write it, to a model; and which model is meant when none is named.

What comes before a name's first colon is its prefix, and each prefix has a factory: a function that takes the whole
name and returns a ``Model``. Other packages add prefixes by entry points of the group ``journeyman.models``, in their
``pyproject.toml``::

    [project.entry-points."journeyman.models"]
    acme = "acme.journeyman:model"          # def model(name: str) -> Model, called with e.g. "acme:large"

One with a second parameter is given the ``ModelSettings``, too. A factory raises ``ConfigurationError`` where it cannot
read the name. A model that has an attribute ``rank`` is given the function that ranks tools by a text.
Adapters are imported only when their prefix is asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import SplitResult, urlsplit

from journeyman.core.errors import ConfigurationError, ModelError
from journeyman.core.model_settings import ModelSettings
from journeyman.core.protocols import Model
from journeyman.core.words import packaged_json
from journeyman.sensitive.tokens import bare_url

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


Factory: TypeAlias = Callable[[str, ModelSettings], Model]

GROUP = "journeyman.models"
PROVIDERS = (
    *("anthropic", "google", "bedrock", "groq", "mistral", "openrouter", "alibaba", "azure", "cerebras", "cohere"),
    *("deepseek", "fireworks", "google-cloud", "heroku", "huggingface", "meta", "moonshotai", "nebius", "ovhcloud"),
    *("sambanova", "snowflake", "together", "vercel", "xai", "zai"),
)
"""Names of pydantic-ai's."""
BUILT_IN: Mapping[str, str] = {
    **dict.fromkeys(("openai", "ollama", "http", "https"), "journeyman.models.resolve:openai_model"),
    "gguf": "journeyman.models.resolve:gguf_model",
    "embedded": "journeyman.models.resolve:embedded_model",
    **dict.fromkeys(PROVIDERS, "journeyman.models.providers:ProviderModel"),
}
"""The same as our entry points: found without reading the metadata of every installed package."""

DEFAULT_OPENAI_MODEL = "gpt-5-mini"
OLLAMA_PORT = 11434
KNOWN = (
    "'auto', 'openai:NAME', 'ollama:NAME', 'http://HOST:PORT/v1#NAME' (any OpenAI-compatible server), "
    f"'gguf:PATH', 'embedded', and PROVIDER:NAME for {', '.join(PROVIDERS)}"
)
MODEL_VARIABLE = "JOURNEYMAN_MODEL"
GGUF_VARIABLE = "JOURNEYMAN_GGUF"


def model_from_name(model: str | ModelSettings) -> Model:
    """The model that a name or settings stand for. ``auto`` is the first that ``explain_choice`` finds.

    ``rank`` helps a model that cannot weigh many tools at once.
    """
    settings, named_by = ModelSettings.of(model), ""
    if settings.name == "auto":
        *_, last = _steps()
        if last.chosen is None:
            raise ConfigurationError(
                f"no model: {last.told}; or set OPENAI_API_KEY, or {MODEL_VARIABLE} to one of {KNOWN}"
            )
        settings, named_by = settings.over(last.chosen), last.named_by
    try:
        settings = settings.resolved(_from_environment)
        made = _factory(settings.name)(settings.name, settings)
    except ConfigurationError as error:
        if named_by:
            raise ConfigurationError(f"{named_by}: {error}") from error
        raise
    if named_by and hasattr(made, "say_named_by"):
        made.say_named_by(named_by)
    return made


def _from_environment(text: str) -> str:
    """A text with what ``${NAME}`` stands for."""

    def value(match: re.Match[str]) -> str:
        if not (known := os.environ.get(match[1], "")):
            raise ConfigurationError(
                f"the environment variable {match[1]}, which the model's settings name, is not set"
            )
        return known

    return re.sub(r"\$\{(\w+)\}", value, text)


def _factory(name: str) -> Factory:
    prefix, colon, _ = name.partition(":")
    if prefix in BUILT_IN and (colon or prefix == "embedded"):
        module, _, attribute = BUILT_IN[prefix].partition(":")
        factory: Factory = getattr(import_module(module), attribute)
        return factory
    others = _entry_points()
    if prefix in others:
        return _loaded(name, others[prefix])
    also = f", and from other packages {', '.join(sorted(others))}" if others else ""
    raise ConfigurationError(f"model {name!r} is unknown{_hint(name, [*BUILT_IN, *others])}; known are {KNOWN}{also}")


def _entry_points() -> dict[str, EntryPoint]:
    """The prefixes that other packages add."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in BUILT_IN}


def _loaded(name: str, entry: EntryPoint) -> Factory:
    try:
        factory: Any = entry.load()
    except Exception as error:  # it is somebody else's code that is imported here
        reason = f"{type(error).__name__}: {error}"
    else:
        if callable(factory):
            return _with_settings(factory)
        reason = f"it is a {type(factory).__name__}, not a function"
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"
    raise ConfigurationError(
        f"model {name!r}: the entry point {entry.name} = {entry.value!r} of {package} cannot be used: {reason}; "
        "update or remove that package"
    )


def _with_settings(factory: Any) -> Factory:
    """Another package's factory, which may take the settings or the name alone."""
    from inspect import signature

    def made(name: str, settings: ModelSettings) -> Model:
        if len(signature(factory).parameters) > 1:
            return factory(name, settings)  # type: ignore[no-any-return]  # what it returns is for it to keep
        _without_settings(name, settings)
        return factory(name)  # type: ignore[no-any-return]

    return made


def _without_settings(name: str, settings: ModelSettings) -> None:
    if settings.given:
        raise ConfigurationError(f"model {name!r} takes no settings, and was given {', '.join(settings.given)}")


def _hint(name: str, prefixes: list[str]) -> str:
    """What was probably meant: a prefix that is left out or misspelt."""
    from difflib import get_close_matches

    prefix, colon, rest = name.partition(":")
    # How names of well-known models begin, and whose they are.
    families: dict[str, str] = packaged_json("journeyman.models", "families.json")
    meant = next((f"{owner}:{name}" for begin, owner in families.items() if name.startswith(begin)), "")
    if name.endswith(".gguf") and not colon:
        meant = f"gguf:{name}"
    elif name in prefixes:
        meant = f"{name}:NAME"
    elif not meant and (near := get_close_matches(prefix.lower(), prefixes, n=1)):
        meant = f"{near[0]}:{rest}" if near[0] != "embedded" else "embedded"
    return f" (did you mean {meant!r}?)" if meant else ""


def explain_choice() -> list[str]:
    """What was looked at when no model is named, in order, and what is taken; a line each. Shows no key."""
    steps = list(_steps())
    lines = [step.told for step in steps]
    chosen = steps[-1].chosen
    return [*lines, f"auto: {_shown(chosen) if chosen else 'nothing found'}"]


# --- choosing


@dataclass(frozen=True, slots=True)
class _Step:
    told: str
    chosen: str | None = None
    named_by: str = ""
    """The environment variable that holds the model's name, if one does."""


def _steps() -> Iterator[_Step]:
    """Where a model is looked for, up to the first that is there. What comes later is not even asked."""
    for step in _places():
        yield step
        if step.chosen is not None:
            return


def _places() -> Iterator[_Step]:
    environment = os.environ
    named = environment.get(MODEL_VARIABLE, "")
    yield _Step(f"{MODEL_VARIABLE}: {_shown(named)}", named if named not in ("", "auto") else None, MODEL_VARIABLE)
    model, key = environment.get("OPENAI_MODEL", ""), environment.get("OPENAI_API_KEY")
    by = "OPENAI_MODEL" if model else ""
    yield _Step(
        f"OPENAI_API_KEY: {'set' if key else 'not set'}", f"openai:{model or DEFAULT_OPENAI_MODEL}" if key else None, by
    )
    address = environment.get("OPENAI_BASE_URL", "")
    both = f"OPENAI_BASE_URL: {_redacted(address)}, OPENAI_MODEL: {_redacted(model)}"
    yield _Step(both, f"openai:{model}" if address and model else None, by)
    from journeyman.models import local_servers

    server = local_servers.find_server()
    if server is not None:
        yield _Step(f"servers on this machine: {server.kind} at port {server.port}", server.name)
    else:
        ports = ", ".join(f"{kind} {port}" for kind, port in local_servers.SERVERS.items())
        yield _Step(f"servers on this machine: none at the usual ports ({ports})")
    path = environment.get(GGUF_VARIABLE, "")
    yield _Step(f"{GGUF_VARIABLE}: {_redacted(path)}", f"gguf:{path}" if path else None, GGUF_VARIABLE)
    trouble = _embedded_trouble()
    yield _Step(trouble or "the embedded model: installed", None if trouble else "embedded")


def _shown(model: str) -> str:
    """A model for people; of settings that may hold a key, what is set."""
    if not model.lstrip().startswith("{"):
        return _redacted(model)
    try:
        settings = ModelSettings.of(model)
    except ConfigurationError as error:
        return str(error)
    return f"{_redacted(settings.name)} with {', '.join(settings.given) or 'no settings'}"


def _redacted(value: str) -> str:
    # An address may carry a password before its "@", and a key in its query; a model's name stands behind its "#".
    if "://" not in value:
        return value or "not set"
    address, mark, model = value.partition("#")
    scheme, _, rest = bare_url(address).partition("://")
    return f"{scheme}://{'***@' if '@' in address else ''}{rest}{mark}{model}"


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


def openai_model(name: str, settings: ModelSettings) -> Model:
    """``openai:NAME``, ``ollama:NAME`` or ``http://HOST:PORT/v1#NAME``."""
    kind, _, model = name.partition(":")
    from journeyman.models.faults import IN_NAME

    base_url, address = settings.base_url, None
    if kind == "ollama" and base_url is None:
        base_url, address = ollama_address(os.environ.get("OLLAMA_HOST", "")), "OLLAMA_HOST"
    elif kind in ("http", "https"):
        (base_url, _, model), address = name.partition("#"), IN_NAME
    if not model:
        raise ConfigurationError(f"model {name!r} names no model; write {KNOWN}")
    from journeyman.models.openai import OpenAIModel

    return OpenAIModel.of(settings, model, base_url=base_url, address=address)


def gguf_model(name: str, settings: ModelSettings) -> Model:
    """``gguf:PATH``."""
    path = name.partition(":")[2]
    if not path:
        raise ConfigurationError(f"model {name!r} names no file; write 'gguf:PATH'")
    _without_settings(name, settings)
    from journeyman.models.gguf import GgufModel

    return GgufModel(path)


def embedded_model(name: str, settings: ModelSettings) -> Model:
    """``embedded``, for which settings mean nothing: where nothing else is found, it answers as it does."""
    if name != "embedded":
        raise ConfigurationError(f"model {name!r} is unknown (did you mean 'embedded'?); known are {KNOWN}")
    if trouble := _embedded_trouble():
        raise ConfigurationError(trouble)
    from journeyman.models.embedded import EmbeddedModel

    return EmbeddedModel()


def _embedded_trouble() -> str | None:
    """Why the embedded model cannot be used here; None when it can."""
    from journeyman.models.embedded.files import engine_files

    try:
        engine_files()
    except ModelError as error:
        return f"{error.info.message}; {error.info.user_guidance}"
    return None


# --- addresses in names: a document somebody else wrote may name any server as its model, and everything that its agent
# reads is sent there


def address_of(model: str | ModelSettings) -> str | None:
    """The address that a model's name or settings hold; None where they name a provider, a file, the embedded model."""
    try:
        settings = ModelSettings.of(model)
    except ConfigurationError:
        return None  # it cannot be asked
    if settings.base_url is not None:
        return settings.base_url
    name = settings.name
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

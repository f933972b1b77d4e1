"""Settings as they hold, value by value, each with where it comes from. Secrets are not shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from journeyman.core.policy import RateLimit
from journeyman.sensitive.references import shown
from journeyman.settings.problems import Key, key_text
from journeyman.settings.reading import Loaded, is_secret
from journeyman.settings.values import FOREVER

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Value:
    """One value that holds."""

    key: str
    value: Any
    origin: str
    """``default``, ``FILE:LINE``, ``environment variable NAME`` or ``option NAME``."""


def setting_values(loaded: Loaded) -> list[Value]:
    """Every value, in the order of the reference; a tool's are those of the environment that holds."""
    return list(_walk(loaded, loaded.settings, ()))


def _walk(loaded: Loaded, section: BaseModel, key: Key) -> Iterator[Value]:
    for name, field in type(section).model_fields.items():
        alias = field.alias or name
        value = getattr(section, name)
        inner = (*key, alias)
        if key[:1] == ("tools",) and len(key) == 2:
            if alias == "environments":
                continue
            value, inner = _in_environment(loaded, key, name, alias)
        yield from _value(loaded, value, (*key, alias), inner)


def _in_environment(loaded: Loaded, key: Key, name: str, alias: str) -> tuple[Any, Key]:
    """A tool's value with the environment's over it, and where it stands."""
    tool, environment = loaded.settings.tools[str(key[1])], loaded.settings.environment
    value = getattr(tool.in_environment(environment), name)
    over = tool.environments.get(environment)
    if over is not None and name in over.model_fields_set:
        for word in ("environments", "environment_overrides"):
            if (place := (*key, word, environment, alias)) in loaded.document.positions:
                return value, place
    return value, (*key, alias)


def _value(loaded: Loaded, value: Any, key: Key, place: Key) -> Iterator[Value]:
    if isinstance(value, BaseModel) and not isinstance(value, RateLimit):
        yield from _walk(loaded, value, key)
    elif isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _value(loaded, item, (*key, name), (*place, name))
    else:
        where = origin(loaded, place)
        written = _written(loaded, place) if where != DEFAULT and place not in loaded.origins else value
        yield Value(key_text(key), _plain(written, place), where)


def _written(loaded: Loaded, place: Key) -> Any:
    """A value as the file has it: 30m, not 1800."""
    value = loaded.document.value
    for step in place:
        value = value.get(step, value.get(f"{step}s")) if isinstance(value, dict) else value[step]
    return value


def origin(loaded: Loaded, key: Key) -> str:
    """Where a value comes from. A list stands where its key does."""
    if elsewhere := loaded.elsewhere(key):
        return elsewhere
    if key not in loaded.document.positions:
        other = {"rate_limit": "rate_limits"}.get(str(key[-1]))
        if other is None or (*key[:-1], other) not in loaded.document.positions:
            return DEFAULT
        key = (*key[:-1], other)
    return f"{loaded.path}:{loaded.document.positions[key].line}"


def _plain(value: Any, key: Key) -> Any:
    named = next((str(step) for step in reversed(key) if isinstance(step, str)), "")
    match value:
        case RateLimit():
            per = " per principal" if value.per == "principal" else ""
            return f"{value.calls}/{value.seconds:g}s{per}, burst {value.burst:g}×"
        case Enum():
            return value.value
        case Path():
            return str(value)
        case float() if math.isinf(value):
            return FOREVER
        case str():
            free = is_secret(key) or "global_config" in key or "parameters" in key
            return shown(named if free else "", value)
        case list() | tuple():
            return [_plain(item, key) for item in value]
        case _:
            return value

"""The JSON Schema of the file, as editors use it, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from journeyman.settings.problems import Key
from journeyman.settings.schema import Settings
from journeyman.settings.values import LATE, SECRET_MARK

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@cache
def json_schema() -> dict[str, Any]:
    """The schema, for programs and editors."""
    made = Settings.model_json_schema(by_alias=True)
    return {
        "$schema": DIALECT,
        "title": "journeyman.yaml",
        **{name: value for name, value in made.items() if name != "title"},
    }


def fields_at(key: Key) -> list[str]:
    """Which keys may stand at a place."""
    return list(dict.fromkeys(name for found in _at(key) for name in found.get("properties", {})))


def is_secret(key: Key) -> bool:
    """Whether what stands there may stand for a secret."""
    return any(SECRET_MARK in found for found in _at(key))


def is_late(key: Key) -> bool:
    """Whether what stands there is a secret that only one command looks up."""
    return any(found.get(SECRET_MARK) == LATE for found in _at(key))


def _at(key: Key) -> list[dict[str, Any]]:
    found = list(_choices(json_schema()))
    for step in key:
        found = [choice for outer in found for inner in _below(outer, step) for choice in _choices(inner)]
    return found


def _below(schema: dict[str, Any], step: str | int) -> Iterator[dict[str, Any]]:
    if isinstance(step, int):
        inner = schema.get("items")
    else:
        inner = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    if isinstance(inner, dict):
        yield inner


def _choices(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema without references, each of its alternatives."""
    if (reference := schema.get("$ref")) is not None:
        yield from _choices(json_schema()["$defs"][reference.rpartition("/")[2]])
    elif "anyOf" in schema:
        for inner in schema["anyOf"]:
            yield from _choices(inner)
    else:
        yield schema

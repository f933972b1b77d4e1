"""Pydantic's JSON Schemas made short, with no titles and definitions where they are used; and what they list.

A definition that contains itself has no such place; it stays under ``$defs``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_PREFIX = "#/$defs/"
# Of these, ``uniqueItems`` comes from sets, which take duplicates and drop them.
_NOISE = frozenset({"title", "discriminator", "uniqueItems"})
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"})


def tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, shorter. The given one is left as it is."""
    definitions = schema.get("$defs", {})
    recursive = {name for name in definitions if name in _reachable(name, definitions)}
    inline = {name: schema for name, schema in definitions.items() if name not in recursive}
    tidied = _tidy({key: value for key, value in schema.items() if key != "$defs"}, inline)
    if recursive:
        tidied["$defs"] = {name: _tidy(definitions[name], inline) for name in definitions if name in recursive}
    return tidied


def _tidy(schema: dict[str, Any], inline: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").removeprefix(_PREFIX)
    if name in inline:
        # What stands beside the reference is about this use of it, so it wins.
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _tidy({**inline[name], **beside}, inline)
    return {key: _tidy_value(key, value, inline) for key, value in schema.items() if key not in _NOISE}


def _tidy_value(key: str, value: Any, inline: dict[str, Any]) -> Any:
    # Only schemas are entered: a default or an enum may well hold a "title" of its own.
    if key in _NAMED:
        return {name: _tidy(inner, inline) for name, inner in value.items()}
    if key in _LISTED:
        return [_tidy(inner, inline) for inner in value]
    if key in _SINGLE and isinstance(value, dict):
        return _tidy(value, inline)
    return value


def _reachable(name: str, definitions: dict[str, Any]) -> set[str]:
    found: set[str] = set()
    waiting = list(_references(definitions[name]))
    while waiting:
        reference = waiting.pop()
        if reference not in found and reference in definitions:
            found.add(reference)
            waiting += _references(definitions[reference])
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(_PREFIX)
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from _references(inner)


def choices_of(schema: dict[str, Any]) -> list[Any]:
    """The values a schema lists, where Python could take one of them for another: to Python, True is 1."""
    listed: list[Any] = []
    for member in schema.get("anyOf", [schema]):
        if "enum" not in member and "const" not in member and member.get("type") != "null":
            return []
        listed += member.get("enum", [member.get("const")])
    return listed if any(isinstance(value, int) for value in listed) else []


def is_mistaken(value: Any, choices: list[Any]) -> bool:
    """Whether a truth value passes for a number among the choices, or the other way round."""
    same = [choice for choice in choices if choice == value]
    return bool(same) and all(isinstance(choice, bool) is not isinstance(value, bool) for choice in same)

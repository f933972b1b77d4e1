"""Kinds of values that are told by how they are written: addresses, files, dates, amounts. In requests and in tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from journeyman.choosing import vocabulary, wording
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import patterns, stem, word_lists, words

MOST_OPTIONS = 50
FORMATS = {"email": "email", "uri": "url", "date": "date", "date-time": "date", "time": "time"}


def said() -> dict[str, re.Pattern[str]]:
    """How values of each kind are written in a request."""
    return patterns("journeyman.choosing", "value_patterns.txt")


def kinds_said(text: str) -> frozenset[str]:
    """The kinds of which a value stands in a request."""
    kinds = {kind for kind, pattern in said().items() if pattern.search(text)}
    if "email" in kinds or "url" in kinds:
        kinds -= {"file", "mention"} - {kind for kind in ("mention",) if said()["mention"].search(text)}
    return frozenset(kinds)


def kinds_of(name: str, schema: Mapping[str, Any]) -> frozenset[str]:
    """The kinds of value that a parameter takes, by its format or its name."""
    if (kind := FORMATS.get(str(schema.get("format")))) is not None:
        return frozenset((kind,))
    if schema.get("type") == "boolean" or schema.get("enum"):
        return frozenset()
    spelled = frozenset(words(name)) | frozenset(words(str(schema.get("description", "")))[:8])
    taken = word_lists("journeyman.choosing", "value_kinds.txt")
    return frozenset(kind for kind, those in taken.items() if spelled & those)


def _parameters(tool: ToolSpecification) -> Iterator[tuple[str, Mapping[str, Any]]]:
    properties = tool.parameters.get("properties", {})
    if isinstance(properties, Mapping):
        yield from ((str(name), schema) for name, schema in properties.items() if isinstance(schema, Mapping))


def kinds_taken(tool: ToolSpecification) -> frozenset[str]:
    """The kinds that any parameter of a tool takes."""
    return frozenset().union(*(kinds_of(name, schema) for name, schema in _parameters(tool)))


def kinds_required(tool: ToolSpecification) -> frozenset[str]:
    """The kinds that a tool cannot do without, each told by one parameter alone."""
    required = set(tool.parameters.get("required", ()))
    kinds = (kinds_of(name, schema) for name, schema in _parameters(tool) if name in required)
    return frozenset().union(*(each for each in kinds if len(each) == 1))


def shapes_of(text: str) -> frozenset[str]:
    """How the identifiers of a text are written: a run of letters as A or a, of digits as 9."""
    shapes = (
        re.sub(r"\d+", "9", re.sub(r"[A-Z]+", "A", re.sub(r"[a-z]+", "a", one[0])))
        for one in wording.coded.finditer(text)
    )
    return frozenset(shapes)


def example_shapes(tool: ToolSpecification) -> frozenset[str]:
    """The shapes of the identifiers that a tool's parameters give as examples."""
    shapes: set[str] = set()
    for _, schema in _parameters(tool):
        for example in wording.examples.finditer(str(schema.get("description", ""))):
            shapes |= shapes_of(example[1])
        for example in schema.get("examples") or ():
            shapes |= shapes_of(str(example))
    return frozenset(shapes)


def identifier_prefixes(text: str) -> frozenset[str]:
    """The letters that identifiers begin with: ``inc`` of INC-17."""
    return frozenset(one[1].lower() for one in re.finditer(r"\b([A-Za-z]{2,8})[-_ ]?\d{2,}\b", text))


def takes_identifier(tool: ToolSpecification) -> bool:
    """Whether one of a tool's parameters is the identifier of one thing."""
    return any(vocabulary.identifiers.intersection(words(name)[-1:]) for name, _ in _parameters(tool))


def needs_identifier(tool: ToolSpecification) -> bool:
    """Whether a tool cannot be called without naming one thing by its identifier."""
    required = set(tool.parameters.get("required", ()))
    return any(words(name)[-1:] in (["id"], ["key"], ["number"]) for name, _ in _parameters(tool) if name in required)


def optional_values(tool: ToolSpecification) -> tuple[frozenset[str], ...]:
    """The words of each value that an optional choice of a tool can have, and of each of its flags."""
    required = set(tool.parameters.get("required", ()))
    options = []
    for name, schema in _parameters(tool):
        if name not in required:
            values = [name] if schema.get("type") == "boolean" else (schema.get("enum") or ())[:MOST_OPTIONS]
            options += [frozenset(stem(word) for word in words(str(value))) for value in values]
    return tuple(one for one in options if one)

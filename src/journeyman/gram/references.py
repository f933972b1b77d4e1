"""References in JSON Schemas. A schema of ours is whole: nothing is fetched to understand it, from nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
NAMED_KEYWORDS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that hold schemas by names of the schema's author."""
DATA_KEYWORDS = frozenset({"default", "const", "enum", "examples", "example", "dependentRequired"})
"""Keywords that hold values and no schemas."""


def schemas_in(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all that it holds."""
    # An explicit stack: a schema from elsewhere can be nested deeper than Python recurses.
    stack = [schema]
    while stack:
        match stack.pop():
            case list() as items:
                stack.extend(items)
            case dict() as found:
                yield found
                for keyword, value in found.items():
                    if keyword in NAMED_KEYWORDS and isinstance(value, dict):
                        stack.extend(value.values())  # its keys are names of the schema's author
                    elif keyword not in DATA_KEYWORDS:
                        stack.append(value)


def with_schemas(schema: dict[str, Any], change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """A schema with what ``change`` makes of each schema right inside it; values and names stay as they are."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(item) for item in value]
        return change(value) if isinstance(value, dict) else value

    made: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in NAMED_KEYWORDS and isinstance(value, dict):
            made[keyword] = {name: changed(inner) for name, inner in value.items()}
        else:
            made[keyword] = value if keyword in DATA_KEYWORDS else changed(value)
    return made


def outside_reference(schema: Any) -> str | None:
    """The first reference in a schema that leads out of it, to a file or an address; None where there is none."""
    held = (inner.get(keyword) for inner in schemas_in(schema) for keyword in _REFERENCES)
    return next((value for value in held if isinstance(value, str) and not value.startswith("#")), None)


def expanded_size(schema: Any) -> int:
    """How many schemas a schema holds with a copy of its target in the place of each reference; each copy takes time.

    A few lines of references to references make millions. What refers back to itself counts once.
    """
    return _expanded(schema, schema, {})


def _expanded(schema: Any, root: Any, known: dict[str, int]) -> int:
    if isinstance(schema, list):
        return sum(_expanded(item, root, known) for item in schema)
    if not isinstance(schema, dict):
        return 0
    size = 1
    for keyword, value in schema.items():
        if keyword in NAMED_KEYWORDS and isinstance(value, dict):
            if keyword not in ("$defs", "definitions"):  # these count where they are referred to
                size += sum(_expanded(item, root, known) for item in value.values())
        elif keyword in _REFERENCES and isinstance(value, str):
            if value not in known:
                known[value] = 1
                known[value] = _expanded(target(root, value), root, known)
            size += known[value]
        elif keyword not in DATA_KEYWORDS:
            size += _expanded(value, root, known)
    return size


def target(root: Any, reference: str) -> Any:
    """What a reference inside the schema leads to; None where that is nothing, or has a name of its own."""
    place = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and name.isdecimal() and int(name) < len(place):
            place = place[int(name)]
        else:
            place = place.get(name) if isinstance(place, dict) else None
    return place

"""The corpus's function documents as tool specifications: thousands of real schemas that nobody here wrote.

Their dialect names Python types; those become JSON Schema's. Types of Java alone have no JSON form and are refused.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bfcl.corpus import HOME
from journeyman import ToolSpecification
from journeyman.interop.openai import from_openai

TYPES = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    **{name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")},
}


def function_documents() -> list[dict[str, Any]]:
    """Every different function document of the corpus."""
    found = {json.dumps(function, sort_keys=True): function for function in _all()}
    return list(found.values())


def _all() -> Iterator[dict[str, Any]]:
    data = HOME / "bfcl_eval" / "data"
    for path in sorted(data.glob("BFCL_v4_*.json")):
        if path.stem != "BFCL_v4_format_sensitivity":  # a list of identifiers
            for entry in _lines(path):
                yield from entry.get("function", [])
    for path in sorted((data / "multi_turn_func_doc").glob("*.json")):
        yield from _lines(path)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def specification(function: dict[str, Any]) -> ToolSpecification:
    """A function document as a specification. ValueError says which type has no JSON form, and where it stands."""
    parameters = _schema(function["parameters"], "parameters")
    return from_openai({**function, "name": function["name"].replace(" ", "_"), "parameters": parameters})


def _schema(schema: Any, path: str) -> Any:
    if not isinstance(schema, dict):
        return schema
    converted = dict(schema)
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "any":
        if kind not in TYPES:
            raise ValueError(f"{path}: the type {kind!r} has no JSON form")
        converted["type"] = TYPES[kind]
    elif kind == "any":
        del converted["type"]
    if isinstance(properties := schema.get("properties"), dict):
        converted["properties"] = {name: _schema(each, f"{path}.{name}") for name, each in properties.items()}
    for key in ("items", "additionalProperties"):
        if key in schema:
            converted[key] = _schema(schema[key], f"{path}.{key}")
    return converted

"""Why an implementation does not fit a specification, for people to read."""

from __future__ import annotations

from typing import Any

from journeyman.core.errors import SignatureError
from journeyman.core.signature import schema_differences, write_signature
from journeyman.core.specification import ToolSpecification

_LONGEST = 300


def specification_mismatches(
    wanted: ToolSpecification, found: ToolSpecification, *, descriptions: bool = True
) -> list[str]:
    """Every difference in description and structure of the schema; the last one shows both sides as signatures."""
    if wanted is found:
        return []
    problems = []
    if descriptions and wanted.description != found.description:
        problems.append(f"{wanted.name}: descriptions differ: {wanted.description!r} != {found.description!r}")
    differences = schema_differences(wanted.parameters, found.parameters)
    problems += [f"{wanted.name}: {line}" for line in differences]
    if differences:
        problems[-1] += _sides(wanted.parameters, found.parameters)
    return problems


def _sides(wanted: dict[str, Any], found: dict[str, Any]) -> str:
    """The parameters that differ, as either side has them; nothing where none can be singled out."""
    names = dict.fromkeys([*_properties(wanted), *_properties(found)])
    differing = [name for name in names if schema_differences(_one(wanted, name), _one(found, name))]
    if not differing:
        return ""
    try:
        sides = {"specification": _written(wanted, differing), "tool": _written(found, differing)}
    except SignatureError:
        return ""
    return "".join(f"\n      {side + ':':15}{_shortened(text)}" for side, text in sides.items())


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _one(schema: dict[str, Any], name: str, *, beside: bool = True) -> dict[str, Any]:
    """An object's schema with just one of its properties, and the definitions it may refer to."""
    properties, required = _properties(schema), schema.get("required")
    part: dict[str, Any] = {"type": "object"}
    if name in properties:
        part["properties"] = {name: properties[name]}
    if isinstance(required, list) and name in required:
        part["required"] = [name]
    return part | {key: schema[key] for key in ("$defs", "definitions") if beside and key in schema}


def _written(schema: dict[str, Any], names: list[str]) -> str:
    parts = [write_signature(_one(schema, name, beside=False), None) for name in names if name in _properties(schema)]
    return "".join(part.removesuffix("()") for part in parts).removesuffix("==>") or "nothing"

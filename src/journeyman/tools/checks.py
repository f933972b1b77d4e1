"""What can be said about a specification: advice on how it is described, and why an implementation does not fit it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from journeyman.core.errors import SignatureError
from journeyman.core.specification import ToolSpecification
from journeyman.core.words import Patterns, patterns
from journeyman.gram.references import schemas_in
from journeyman.gram.signature import schema_differences, write_signature

_LONGEST_SIDE = 300
SHORTEST, LONGEST = 10, 500
_says = Patterns("journeyman.tools", "described.txt")
_VERB_NOUN = re.compile(r"[a-z]+(_[a-z0-9]+)+")
_MOST_SEARCHED = 20_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a model may stumble over."""

    tool: str
    rule: str
    message: str


def lint_tools(specifications: Iterable[ToolSpecification]) -> list[Finding]:
    """All findings, tool by tool."""
    return [Finding(item.name, rule, message) for item in specifications for rule, message in _problems(item)]


def _problems(item: ToolSpecification) -> Iterable[tuple[str, str]]:
    length = len(item.description)
    if not SHORTEST <= length <= LONGEST:
        yield "description-length", f"the description has {length} characters; {SHORTEST}–{LONGEST} work best"
    if not _says.use_when.search(item.description):
        yield "no-use-when", "the description does not say when to use the tool; add a sentence 'Use when …'"
    for where, text in _texts(item):
        for what, pattern in patterns("journeyman.tools", "instructing.txt").items():
            if pattern.search(text):
                yield "description-instructs", f"{where} {what.replace('_', ' ')}; look at it before a model does"
    if not _VERB_NOUN.fullmatch(item.name.rpartition(".")[2]):
        yield "name-not-verb-noun", f"{item.name!r} is not of the form verb_noun, e.g. 'lookup_order'"
    for name, schema in item.parameters.get("properties", {}).items():
        if isinstance(schema, dict) and not schema.get("description"):
            yield "parameter-undescribed", f"parameter {name!r} has no description"
    if item.risk is None and not item.read_only:
        # What returns nothing reads nothing.
        reads = _says.reads.match(item.name) and item.returns != {"type": "null"}
        seems = "; by its name it only reads: then say read_only=True" if reads else ""
        yield "risk-undeclared", f"no risk is declared, so a person is asked before each call{seems}"
    if item.reads is None and _says.of_others.search(item.name) and (item.read_only or _says.reads.match(item.name)):
        yield "reads-undeclared", "it seems to read what others write; declare reads='untrusted', or reads=() if not"
    if item.deprecated:
        instead = f": {item.deprecated}" if isinstance(item.deprecated, str) else ""
        yield "deprecated", f"the tool is deprecated{instead}"


def _texts(item: ToolSpecification) -> Iterable[tuple[str, str]]:
    """What a model reads of a tool besides names."""
    yield "the description", item.description[:_MOST_SEARCHED]
    for name, schema in item.parameters.get("properties", {}).items():
        texts = (inner.get(key) for inner in schemas_in(schema) for key in ("description", "title"))
        text = "\n".join(text for text in texts if isinstance(text, str))
        yield f"the description of parameter {name!r}", text[:_MOST_SEARCHED]


# -- fitting


def specification_mismatches(
    wanted: ToolSpecification, there: ToolSpecification, *, descriptions: bool = True
) -> list[str]:
    """Every difference in description and structure of the schema; the last one shows both sides as signatures."""
    problems = []
    if descriptions and wanted.description != there.description:
        problems.append(f"{wanted.name}: descriptions differ: {wanted.description!r} != {there.description!r}")
    differences = schema_differences(wanted.parameters, there.parameters)
    problems += [f"{wanted.name}: {line}" for line in differences]
    if differences:
        problems[-1] += _sides(wanted.parameters, there.parameters)
    return problems


def _sides(wanted: dict[str, Any], there: dict[str, Any]) -> str:
    """The parameters that differ, as either side has them; nothing where none can be singled out."""
    names = dict.fromkeys([*_properties(wanted), *_properties(there)])
    differing = [name for name in names if schema_differences(_one(wanted, name), _one(there, name))]
    if not differing:
        return ""
    try:
        sides = {"specification": _written(wanted, differing), "tool": _written(there, differing)}
    except SignatureError:
        return ""
    return "".join(
        f"\n      {side + ':':15}{text if len(text) <= _LONGEST_SIDE else text[:_LONGEST_SIDE] + '…'}"
        for side, text in sides.items()
    )


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

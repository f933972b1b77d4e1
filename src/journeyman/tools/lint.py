"""Advice on how tools are described: findings, never refusals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from journeyman.core.specification import ToolSpecification

SHORTEST, LONGEST = 10, 500
_USE_WHEN = re.compile(
    r"\b(use|call)\b[^.]{0,40}\b(when|if|for|to|after|before|whenever)\b|\bwhen(ever)? the user\b", re.IGNORECASE
)
_VERB_NOUN = re.compile(r"[a-z]+(_[a-z0-9]+)+")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a model may stumble over."""

    tool: str
    rule: str
    message: str


def lint_tools(specifications: Iterable[ToolSpecification]) -> list[Finding]:
    """All findings, tool by tool."""
    found: list[Finding] = []
    for item in specifications:
        found += [Finding(item.name, rule, message) for rule, message in _problems(item)]
    return found


def _problems(item: ToolSpecification) -> Iterable[tuple[str, str]]:
    length = len(item.description)
    if not SHORTEST <= length <= LONGEST:
        yield "description-length", f"the description has {length} characters; {SHORTEST}–{LONGEST} work best"
    if not _USE_WHEN.search(item.description):
        yield "no-use-when", "the description does not say when to use the tool; add a sentence 'Use when …'"
    if not _VERB_NOUN.fullmatch(item.name):
        yield "name-not-verb-noun", f"{item.name!r} is not of the form verb_noun, e.g. 'lookup_order'"
    for name, schema in item.parameters.get("properties", {}).items():
        if isinstance(schema, dict) and not schema.get("description"):
            yield "parameter-undescribed", f"parameter {name!r} has no description"
    if item.risk is None and not item.read_only:
        yield "risk-undeclared", "no risk is declared; the policy's default (irreversible) will ask a person each time"
    if item.deprecated:
        instead = f": {item.deprecated}" if isinstance(item.deprecated, str) else ""
        yield "deprecated", f"the tool is deprecated{instead}"

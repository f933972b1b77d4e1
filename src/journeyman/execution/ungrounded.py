"""The refusal of a call with identifiers that stand nowhere: what the model is told to look up, and with which tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from journeyman.core.calls import CallStatus
from journeyman.core.errors import ErrorCategory, Severity, shortened_json
from journeyman.core.grounding import value_at
from journeyman.core.specification import RESERVED_NAMES, ToolSpecification
from journeyman.core.words import stem, words
from journeyman.execution.outcome import Refusal, refuse
from journeyman.tools.library import AnyTool

UNGROUNDED = "UNGROUNDED_ARGUMENT"
MOST_NAMED = 3
"""Arguments, and tools, that a refusal names."""

_SAYS_NOTHING = frozenset(map(stem, ("id", "ids", "number", "the", "a", "of", "by", "to", "get", "new", "with", "for")))
_place = re.compile(r"[.\[]").split


def not_grounded(
    specification: ToolSpecification, arguments: dict[str, Any], missing: Sequence[str], others: Iterable[AnyTool]
) -> Refusal:
    """The refusal that says which identifiers nobody has said, and where such a thing can be looked up."""
    named = "; ".join(f"{path} = {shortened_json(value_at(arguments, path))}" for path in missing[:MOST_NAMED])
    tools = lookup_tools(specification, missing, [other.specification for other in others])
    look = f"look it up first with {' or '.join(tools)}" if tools else "look it up first"
    return refuse(
        CallStatus.DENIED,
        UNGROUNDED,
        f"{specification.name!r} was not run: {named} stands neither in the request nor in any result so far",
        f"Do not invent it: {look}, or ask the user for it; then call {specification.name} with what was found",
        category=ErrorCategory.INVALID_INPUT,
        severity=Severity.LOW,
        guidance="Say which one you mean, e.g. with its full name or number",
    )


def lookup_tools(
    specification: ToolSpecification, missing: Sequence[str], others: Sequence[ToolSpecification]
) -> list[str]:
    """Tools that read and can be called without knowing it, those first that speak of the same thing."""
    parameters = {_parameter(path) for path in missing}
    wanted = _stems(" ".join(parameters)) or _stems(specification.name)
    ranked: list[tuple[int, str]] = []
    for other in others:
        required = other.parameters.get("required", ())
        if not other.read_only or other.name == specification.name or other.name in RESERVED_NAMES:
            continue
        if parameters & set(required):
            continue
        shared = 2 * len(wanted & _stems(other.name)) + len(wanted & _stems(other.description))
        if shared:
            ranked.append((-shared, other.name))
    return [name for _, name in sorted(ranked)[:MOST_NAMED]]


def _parameter(path: str) -> str:
    """The name of the parameter, or of the field in it, that a place among the arguments is about."""
    names = [name for name in _place(path) if name and not name.rstrip("]").isdigit()]
    return names[-1] if names else path


def _stems(text: str) -> set[str]:
    return {stem(word) for word in words(text)} - _SAYS_NOTHING

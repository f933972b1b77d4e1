"""OpenAI's function JSON ⇄ specifications. Plain data: needs no extra, and no OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from journeyman.core.errors import ToolDefinitionError
from journeyman.core.specification import ToolSpecification, no_parameters
from journeyman.tools.tool import Tool


def to_openai(item: ToolSpecification | Tool[..., Any]) -> dict[str, Any]:
    """A tool as the chat-completions format has it: ``{"type": "function", "function": {…}}``."""
    item = item.specification if isinstance(item, Tool) else item
    function = {"name": item.name, "description": item.description, "parameters": deepcopy(item.parameters)}
    return {"type": "function", "function": function}


def from_openai(function: Mapping[str, Any], **fields: Any) -> ToolSpecification:
    """A specification from function JSON, with or without its envelope; ``fields`` are the specification's others.

    What OpenAI says beyond name, description and parameters (``strict``) is about its models, and is left behind.
    """
    inner = function.get("function", function)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise ToolDefinitionError(f"this is no function JSON, it has no 'name': {str(function)[:200]}")
    parameters = inner.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise ToolDefinitionError(f"{inner['name']!r}: 'parameters' is no JSON Schema but {parameters!r}")
    described = {"name": inner["name"], "description": inner.get("description") or ""}
    return ToolSpecification(**{**described, "parameters": deepcopy(parameters) or no_parameters(), **fields})

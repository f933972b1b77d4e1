"""What all ways in share: from a foreign tool's facts to a specification of ours."""

from __future__ import annotations

from typing import Any

from journeyman.core.errors import InvalidDataError, ToolDefinitionError
from journeyman.core.specification import ToolSpecification, no_parameters
from journeyman.tools.json_schemas import tidy

_ABOUT_THE_TOOL = ("title", "description", "$schema")


def specification(
    name: str, description: str, parameters: dict[str, Any] | None, fields: dict[str, Any]
) -> ToolSpecification:
    """A foreign tool's specification; ``fields`` are the user's and win."""
    facts = {"name": name, "description": description, "parameters": parameters or no_parameters()}
    try:
        return ToolSpecification.model_validate({**facts, **fields})
    except InvalidDataError as error:
        raise ToolDefinitionError(f"{name!r} cannot become a tool: {error.problems}") from None


def plain_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """A pydantic model's schema as that of a tool's parameters."""
    return tidy({key: value for key, value in schema.items() if key not in _ABOUT_THE_TOOL})

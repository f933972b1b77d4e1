"""Arguments of tools whose JSON Schema was not made from a Python function: documents, MCP servers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pydantic_core import from_json

from journeyman.core.errors import ToolDefinitionError
from journeyman.tools.tool import ArgumentsError

MOST_PROBLEMS = 10


class ForeignSchema:
    """Validates with a compiled JSON Schema; fills in the defaults of the top level."""

    context_parameter: str | None = None
    positional_only: tuple[str, ...] = ()

    def __init__(self, parameters: dict[str, Any]) -> None:
        import jsonschema_rs

        self._defaults = {
            name: schema["default"]
            for name, schema in parameters.get("properties", {}).items()
            if isinstance(schema, dict) and "default" in schema
        }
        try:
            self._validator = jsonschema_rs.Draft202012Validator(parameters)
        except (ValueError, jsonschema_rs.ValidationError) as error:
            raise ToolDefinitionError(f"parameters are not a valid JSON Schema: {error}") from error

    def read(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        try:
            given = from_json(text, allow_inf_nan=False)
        except ValueError as error:
            raise ArgumentsError(f"not valid JSON: {error}") from error
        if not isinstance(given, dict):
            raise ArgumentsError(f"must be a JSON object, got {type(given).__name__}")
        problems = []
        for found in self._validator.iter_errors(given):
            path = ".".join(str(part) for part in found.instance_path) or "arguments"
            problems.append(f"{path}: {found.message[:200]}")
            if len(problems) == MOST_PROBLEMS:
                break
        if problems:
            raise ArgumentsError("; ".join(problems))
        frozen = {**deepcopy(self._defaults), **given}
        return deepcopy(frozen), frozen

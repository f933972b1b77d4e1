"""Resources and prompts of an MCP server, as tools: a model looks through the list and reads what it needs.

They belong to the server like its tools, and are graded like tools that declare nothing, unless it is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mcp_types as types
from pydantic import TypeAdapter

from journeyman.core.data import visible
from journeyman.core.specification import ToolSpecification
from journeyman.sources.mcp.tools import complete, prompt_value, resource_value
from journeyman.tools.tool import Tool

if TYPE_CHECKING:
    from journeyman.sources.mcp.connection import Connection
    from journeyman.sources.mcp.server import Options

_READ: TypeAdapter[Any] = TypeAdapter(types.ReadResourceResult | types.InputRequiredResult)
_PROMPT: TypeAdapter[Any] = TypeAdapter(types.GetPromptResult | types.InputRequiredResult)
_MOST_LISTED = 1_000
_LONGEST_TEXT = 500


def extra_tools(connection: Connection, options: Options, *, resources: bool, prompts: bool) -> list[Tool[..., Any]]:
    """Those that the server's capabilities ask for."""
    capabilities = connection.capabilities
    found = []
    if resources and capabilities.resources is not None:
        found += _resource_tools(connection, options)
    if prompts and capabilities.prompts is not None:
        found += _prompt_tools(connection, options)
    return found


def _resource_tools(connection: Connection, options: Options) -> list[Tool[..., Any]]:
    async def list_resources() -> Any:
        held = await _all(connection, types.ListResourcesRequest, types.ListResourcesResult, "resources")
        templates = await _all(
            connection, types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult, "resource_templates"
        )
        return {
            "resources": [_told(item, "uri", "name", "description", "mime_type", "size") for item in held],
            "templates": [_told(item, "uri_template", "name", "description", "mime_type") for item in templates],
        }

    async def read_resource(uri: str) -> Any:
        params = types.ReadResourceRequestParams(uri=uri)
        result = await connection.request(types.ReadResourceRequest(params=params), _READ)
        return resource_value(complete(result))

    server = options.namespace
    return [
        _tool(options, list_resources, f"List what can be read from {server!r}: resources and address templates. "
              "Use when you need a resource and do not know its address.", {}),
        _tool(options, read_resource, f"Read a resource of {server!r}. Use when you know its address.",
              {"uri": {"type": "string", "description": "The resource's address, as listed or made of a template."}},
              required=["uri"]),
    ]  # fmt: skip


def _prompt_tools(connection: Connection, options: Options) -> list[Tool[..., Any]]:
    async def list_prompts() -> Any:
        found = await _all(connection, types.ListPromptsRequest, types.ListPromptsResult, "prompts")
        return {"prompts": [_prompt(item) for item in found]}

    async def get_prompt(name: str, arguments: dict[str, str] | None = None) -> Any:
        params = types.GetPromptRequestParams(name=name, arguments=arguments)
        result = await connection.request(types.GetPromptRequest(params=params), _PROMPT)
        return prompt_value(complete(result))

    server = options.namespace
    named = {
        "name": {"type": "string", "description": "As listed."},
        "arguments": {"type": "object", "additionalProperties": {"type": "string"}, "description": "By name."},
    }
    return [
        _tool(options, list_prompts, f"List the prompt templates of {server!r}. Use when you look for one.", {}),
        _tool(options, get_prompt, f"Fill in a prompt template of {server!r}. Use when the user wants one.", named,
              required=["name"]),
    ]  # fmt: skip


def _tool(
    options: Options,
    function: Callable[..., Any],
    description: str,
    properties: dict[str, Any],
    *,
    required: list[str] | None = None,
) -> Tool[..., Any]:
    trusted = options.trust_annotations
    specification = ToolSpecification(
        name=f"{options.namespace}.{function.__name__}",
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": required or [],
            "additionalProperties": False,
        },
        read_only=trusted,
        **options.declared,
        metadata={"mcp": {"server": options.fingerprint}},
    )
    cache_seconds = options.cache_seconds if trusted else None
    return Tool.from_specification(specification, function, cache_seconds=cache_seconds)


async def _all(connection: Connection, request: type[Any], result: type[Any], field: str) -> list[Any]:
    """All entries of a list, at most so many."""

    async def ask(params: types.PaginatedRequestParams) -> Any:
        return await connection.request(request(params=params), result)

    found, _ = await connection.listed(field, ask, most=_MOST_LISTED)
    return found[:_MOST_LISTED]


def _told(item: Any, *fields: str) -> dict[str, Any]:
    found = {name: getattr(item, name) for name in fields}
    return {
        name: visible(str(value)[:_LONGEST_TEXT]) if not isinstance(value, int) else value
        for name, value in found.items()
        if value is not None
    }


def _prompt(item: types.Prompt) -> dict[str, Any]:
    arguments = [
        {**_told(each, "name", "description"), "required": bool(each.required)} for each in item.arguments or ()
    ]
    return {**_told(item, "name", "description"), "arguments": arguments}

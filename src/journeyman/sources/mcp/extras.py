"""Resources and prompts of an MCP server, as tools: a model looks through the list and reads what it needs.

They belong to the server like its tools, and are graded like tools that declare nothing, unless it is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mcp_types as types
from pydantic import TypeAdapter

from journeyman.core.calls import ToolContext
from journeyman.core.data import visible
from journeyman.core.specification import ToolSpecification
from journeyman.sources.mcp.tools import prompt_value, resource_value
from journeyman.tools.sources import CONTEXT
from journeyman.tools.tool import ForeignSchema, Tool

if TYPE_CHECKING:
    from journeyman.sources.mcp.connection import Connection
    from journeyman.sources.mcp.server import McpServer

_READ: TypeAdapter[Any] = TypeAdapter(types.ReadResourceResult | types.InputRequiredResult)
_PROMPT: TypeAdapter[Any] = TypeAdapter(types.GetPromptResult | types.InputRequiredResult)
_READING = {"uri": {"type": "string", "description": "The resource's address, as listed or made of a template."}}
_FILLING = {
    "name": {"type": "string", "description": "As listed."},
    "arguments": {"type": "object", "additionalProperties": {"type": "string"}, "description": "By name."},
}
_MOST_LISTED = 1_000
_LONGEST_TEXT = 500


def extra_tools(connection: Connection, source: McpServer, *, resources: bool, prompts: bool) -> list[Tool[..., Any]]:
    """Those that the server's capabilities ask for."""
    can, content, server = connection.capabilities, Content(connection), repr(source.name)
    wanted: list[tuple[Callable[..., Any], str, dict[str, Any]]] = []
    if resources and can.resources is not None:
        listing = f"List what can be read from {server}: resources and address templates."
        wanted += [
            (content.list_resources, f"{listing} Use when you need a resource and do not know its address.", {}),
            (content.read_resource, f"Read a resource of {server}. Use when you know its address.", _READING),
        ]
    if prompts and can.prompts is not None:
        wanted += [
            (content.list_prompts, f"List the prompt templates of {server}. Use when you look for one.", {}),
            (content.get_prompt, f"Fill in a prompt template of {server}. Use when the user wants one.", _FILLING),
        ]
    return [_tool(source, content, *each) for each in wanted]


@dataclass(slots=True, eq=False)
class Content:
    """What a server has besides tools, as the protocol has it; for doors that pass it on as it is."""

    connection: Connection

    @property
    def listeners(self) -> set[Callable[[str, str | None], None]]:
        return self.connection.listeners

    async def resources(self) -> list[types.Resource]:
        return await _all(self.connection, types.ListResourcesRequest, types.ListResourcesResult, "resources")

    async def templates(self) -> list[types.ResourceTemplate]:
        request, result = types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult
        return await _all(self.connection, request, result, "resource_templates")

    async def prompts(self) -> list[types.Prompt]:
        return await _all(self.connection, types.ListPromptsRequest, types.ListPromptsResult, "prompts")

    async def complete(self, params: types.CompleteRequestParams) -> types.CompleteResult:
        if self.connection.capabilities.completions is None:
            return types.CompleteResult(completion=types.Completion(values=[]))
        result: types.CompleteResult = await self.connection.request(
            types.CompleteRequest(params=params), types.CompleteResult
        )
        return result

    async def subscribe(self, uri: str, *, wanted: bool = True) -> None:
        can = self.connection.capabilities.resources
        if can is not None and can.subscribe:
            await self.connection.subscribe(uri, wanted=wanted)

    # --- as tools

    async def list_resources(self, context: ToolContext | None) -> Any:
        held, templates = await self.resources(), await self.templates()
        return {
            "resources": [_told(item, "uri", "name", "description", "mime_type", "size") for item in held],
            "templates": [_told(item, "uri_template", "name", "description", "mime_type") for item in templates],
        }

    async def read_resource(self, context: ToolContext | None, uri: str) -> Any:
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
        return resource_value(await self.connection.exchange(request, _READ, context), uri)

    async def list_prompts(self, context: ToolContext | None) -> Any:
        return {"prompts": [_prompt(item) for item in await self.prompts()]}

    async def get_prompt(self, context: ToolContext | None, name: str, arguments: dict[str, str] | None = None) -> Any:
        request = types.GetPromptRequest(params=types.GetPromptRequestParams(name=name, arguments=arguments))
        return prompt_value(await self.connection.exchange(request, _PROMPT, context))


@dataclass(slots=True, eq=False)
class ContentTool:
    """Calls one of the methods above."""

    content: Content
    method: Callable[..., Any]

    async def __call__(self, **values: Any) -> Any:
        return await self.method(values.pop(CONTEXT), **values)


def _tool(
    source: McpServer, content: Content, method: Callable[..., Any], description: str, properties: dict[str, Any]
) -> Tool[..., Any]:
    trusted = source.trust_annotations
    name = f"{source.name}.{method.__name__}"
    specification = ToolSpecification(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties)[:1],
            "additionalProperties": False,
        },
        read_only=trusted,
        **source.declared,
        metadata={"mcp": {"server": source.fingerprint, "content": method.__name__}},
    )
    schema = ForeignSchema(specification.parameters, where=f"tool {name!r}")
    return source.made_tool(specification, ContentTool(content, method), schema, cached=trusted)


async def _all(connection: Connection, request: type[Any], result: type[Any], field: str) -> list[Any]:
    """All entries of a list, at most so many."""

    async def ask(params: types.PaginatedRequestParams) -> Any:
        return await connection.request(request(params=params), result)

    entries, _ = await connection.listed(field, ask, most=_MOST_LISTED)
    return entries[:_MOST_LISTED]


def _told(item: Any, *fields: str) -> dict[str, Any]:
    values = {name: getattr(item, name) for name in fields}
    return {
        name: visible(str(value)[:_LONGEST_TEXT]) if not isinstance(value, int) else value
        for name, value in values.items()
        if value is not None
    }


def _prompt(item: types.Prompt) -> dict[str, Any]:
    arguments = [
        {**_told(each, "name", "description"), "required": bool(each.required)} for each in item.arguments or ()
    ]
    return {**_told(item, "name", "description"), "arguments": arguments}

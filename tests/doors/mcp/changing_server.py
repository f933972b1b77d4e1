"""A server of the SDK whose lists and resource change when it is told to; it knows who has subscribed."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

Context = ServerRequestContext[Any, Any]
NOTE = "note://one"
bus = InMemorySubscriptionBus()
subscribed: list[str] = []
more: list[str] = []
NO_ARGUMENTS = {"type": "object", "properties": {}}


async def list_tools(ctx: Context, params: Any) -> types.ListToolsResult:
    names = ["touch", "extend", "subscribers", *more]
    return types.ListToolsResult(
        tools=[types.Tool(name=name, description=f"Tests {name}.", input_schema=NO_ARGUMENTS) for name in names]
    )


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    modern = ctx.protocol_version == "2026-07-28"
    if params.name == "touch":
        await (bus.publish(ResourceUpdated(NOTE)) if modern else ctx.session.send_resource_updated(NOTE))
    elif params.name == "extend":
        more.append("added")
        events: list[ServerEvent] = [ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()]
        session = ctx.session
        sends = [session.send_tool_list_changed, session.send_prompt_list_changed, session.send_resource_list_changed]
        for event, send in zip(events, sends, strict=True):
            await (bus.publish(event) if modern else send())
    return types.CallToolResult(content=[types.TextContent(text=",".join(subscribed))])


async def list_resources(ctx: Context, params: Any) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[types.Resource(uri=uri, name=uri) for uri in [NOTE, *(f"note://{name}" for name in more)]]
    )


async def read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    text = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text="a note")
    return types.ReadResourceResult(contents=[text])


async def list_prompts(ctx: Context, params: Any) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[types.Prompt(name=name) for name in ["greet", *more]])


async def get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    return types.GetPromptResult(messages=[])


async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.append(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.remove(str(params.uri))
    return types.EmptyResult()


server: Server[Any] = Server(
    "changing",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus),
)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())

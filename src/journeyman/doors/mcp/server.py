"""The server: which request is answered by what, for whom, and who is told when the tools change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any
from weakref import WeakSet

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from journeyman.app.desk import Desk
from journeyman.app.service import Service
from journeyman.core.budgets import MCP_MESSAGE_BYTES, TOOL_NAME_CHARS
from journeyman.core.principals import Principal
from journeyman.core.risk import RiskLevel
from journeyman.core.specification import ToolSpecification
from journeyman.doors.mcp import records
from journeyman.doors.mcp.calls import Calls, Context, Places, connection_of, declares_object
from journeyman.doors.mcp.stdin import TOO_LARGE

PAGE = 200
"""Tools on one page."""
LOOK_SECONDS = 1.0
"""How often it is looked whether the tools have changed."""
INSTRUCTIONS = (
    "Every call is checked, graded by risk and recorded. A call that waits for a person's approval has not run: "
    "say so, and make the same call again once it is decided."
)


class Gateway:
    """Answers the requests of MCP clients from a service."""

    def __init__(
        self, service: Service, *, principal: Callable[[Context], Principal], places: Places, elicit: bool = True
    ) -> None:
        self._service = service
        self._principal = principal
        self._calls = Calls(places, elicit=elicit)
        self._bus = InMemorySubscriptionBus()
        self._connections: WeakSet[Connection] = WeakSet()
        self._names: tuple[int, Mapping[str, str]] = (-1, {})
        self.server = _Server(
            "journeyman",
            version=version("journeyman"),
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=ListenHandler(self._bus),
            get_tool_input_schema=self._input_schema,
        )
        self.server.middleware.append(self._refuse_large)
        self.server.middleware.append(self._note_cancellations)
        self.server.middleware.append(
            RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="journeyman")
        )

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Tell clients when the tools change, as long as it is open."""
        task = asyncio.create_task(self._watch(), name="tools of the MCP server")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    async def _watch(self) -> None:
        library = self._service.app.library
        known = library.version
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if library.version == known:
                continue
            known = library.version
            await self._bus.publish(ToolsListChanged())
            for connection in tuple(self._connections):
                with suppress(Exception):  # it is gone
                    await connection.send_tool_list_changed()

    async def _refuse_large(self, ctx: Context, call_next: Any) -> Any:
        if ctx.method == TOO_LARGE:
            why = f"the message has more than {MCP_MESSAGE_BYTES:,} bytes; send less at once"
            raise MCPError(types.INVALID_REQUEST, why)
        return await call_next(ctx)

    async def _note_cancellations(self, ctx: Context, call_next: Any) -> Any:
        if ctx.method == "notifications/cancelled":
            key = (id(connection_of(ctx)), (ctx.params or {}).get("requestId"))
            self._calls.cancelled.add(key)
            asyncio.get_running_loop().call_later(5, self._calls.cancelled.discard, key)
        return await call_next(ctx)

    def _desk(self, ctx: Context) -> Desk:
        return Desk(self._service.app, self._principal(ctx))

    # --- tools

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._connections.add(connection_of(ctx))
        principal = self._principal(ctx)
        start = records.offset_of(None if params is None else params.cursor)
        offered = [item for item in self._service.app.library.specifications() if _is_offered(item, principal)]
        return types.ListToolsResult(
            tools=[self._told(item) for item in offered[start : start + PAGE]],
            next_cursor=str(start + PAGE) if len(offered) > start + PAGE else None,
        )

    def _told(self, item: ToolSpecification) -> types.Tool:
        risk = self._service.risk_of(item.name)
        return types.Tool(
            name=self._aliases().get(item.name, item.name),
            title=item.name,
            description=item.description_for_models,
            input_schema=item.parameters,
            output_schema=item.returns if declares_object(item) else None,
            annotations=types.ToolAnnotations(
                read_only_hint=item.read_only,
                destructive_hint=risk is RiskLevel.IRREVERSIBLE,
                idempotent_hint=item.repeat_safe,
            ),
        )

    def _aliases(self) -> Mapping[str, str]:
        """Names as every client takes them: some hand them to a model's provider as they are."""
        library = self._service.app.library
        if self._names[0] != library.version:
            made: dict[str, str] = {}
            taken: set[str] = set()
            for item in sorted(library.specifications(), key=lambda each: each.name != each.name_for_models):
                alias = item.name_for_models
                made[item.name] = item.name if alias in taken else alias
                taken.add(alias)
            self._names = (library.version, made)
        return self._names[1]

    def _found(self, name: str) -> ToolSpecification | None:
        """The tool that a client calls by the name it was told, or by ours."""
        library = self._service.app.library
        known = name if name in library else next((ours for ours, told in self._aliases().items() if told == name), "")
        found = library.lookup(known)
        return None if found is None else found.specification

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        desk = self._desk(ctx)
        item = self._found(params.name)
        if item is None or not _is_offered(item, desk.principal):
            if item is None:
                await desk.miss_tool(params.name[:TOOL_NAME_CHARS])
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:TOOL_NAME_CHARS]}")
        return await self._calls.call(ctx, desk, item, params)

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        item = self._found(name)
        return None if item is None else item.parameters

    # --- runs and agents

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await records.list_runs(self._desk(ctx), None if params is None else params.cursor)

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return records.templates()

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await records.read_run(self._desk(ctx), str(params.uri), protocol_version=ctx.protocol_version)

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return records.list_prompts(self._service.agents)

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return records.get_prompt(self._service.agents, params.name, params.arguments)


def _is_offered(item: ToolSpecification, principal: Principal) -> bool:
    return item.enabled and all(principal.may(permission) for permission in item.permissions)


class _Server(Server[Any]):
    """Says that its tools may change, whichever transport asks."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changing, experimental_capabilities, extensions)

"""The server: which request is answered by what, for whom, and who is told when the tools change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib.metadata import version
from typing import Any
from weakref import WeakSet

import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from journeyman.app.desk import Desk, DeskError
from journeyman.app.service import Service
from journeyman.core.data import MCP_MESSAGE_BYTES, TOOL_NAME_CHARS, one_line
from journeyman.core.policy import Principal, RiskLevel
from journeyman.core.protocols import beside
from journeyman.core.specification import PROMPT, RESOURCE, ToolSpecification
from journeyman.core.storing import RunRow
from journeyman.doors.mcp.asking import LEVEL, Context
from journeyman.doors.mcp.calls import TASKS, Calls, Places, cancellation_key, connection_of, declares_object
from journeyman.doors.mcp.content import BYTES, Behind, Contents
from journeyman.doors.mcp.results import contents, prompt
from journeyman.doors.mcp.tasks import TaskParams, Tasks

TOO_LARGE = "journeyman/too-large"
"""The method of a request in the place of one that was dropped."""
PAGE, RUNS_PAGE = 200, 50
"""Tools and runs on one page."""
SCHEME = "journeyman://runs/"
JSON = "application/json"
_NOT_FOUND = -32002
"""What the older protocol answers where there is no such resource; the newer one calls it a wrong parameter."""
MOST_CHANGES = 1_000
"""Changes that wait to be told, and resources that clients subscribe to."""
LOOK_SECONDS = 1.0
"""How often it is looked whether the tools have changed."""
INSTRUCTIONS = (
    "Every call is checked, graded by risk and recorded. A call that waits for a person's approval has not run: "
    "say so, and make the same call again once it is decided."
)


class Gateway:
    """Answers the requests of MCP clients from a service."""

    def __init__(
        self,
        service: Service,
        *,
        principal: Callable[[Context], Principal],
        places: Places,
        elicit: bool = True,
        bare_names: bool = False,
    ) -> None:
        self._service = service
        self._principal = principal
        self._bare = bare_names
        self._contents = Contents()
        self._calls = Calls(places, elicit=elicit, note_links=self._contents.note_links)
        self._subscribers: dict[str, WeakSet[Connection]] = {}
        self._changes: asyncio.Queue[tuple[str, str | None]] = asyncio.Queue(MOST_CHANGES)
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self._connections: WeakSet[Connection] = WeakSet()
        self._names: tuple[int, Mapping[str, str]] = (-1, {})
        self.server: Server[Any] = Server(
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
            on_subscribe_resource=self._subscribe,
            on_unsubscribe_resource=self._unsubscribe,
            on_completion=self._complete,
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=self._input_schema,
        )
        # Its lists may change, whichever transport asks.
        changing = NotificationOptions(tools_changed=True, prompts_changed=True, resources_changed=True)
        made = partial(self.server.create_initialization_options, changing)
        self.server.create_initialization_options = made  # type: ignore[method-assign]  # asked without arguments
        # Not by its name: the package warns of what the newer protocol has given up.
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        tasks = Tasks(self._calls)
        self.server.extensions[TASKS] = {}
        for method, answer in {"get": tasks.get, "update": tasks.update, "cancel": tasks.cancel}.items():
            self.server.add_request_handler(f"tasks/{method}", TaskParams, partial(self._answer_task, answer))
        executors = service.app.runner.shared.executors
        executors.recall = partial(self._calls.recall, executors.callers)
        self.server.middleware.append(self._refuse_large)
        self.server.middleware.append(self._note_cancellations)
        self.server.middleware.append(
            RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="journeyman")
        )

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Tell clients when the tools change, as long as it is open."""
        async with beside(self._watch(), self._pass_on()):
            yield

    async def _watch(self) -> None:
        library = self._service.app.library
        loop, known, published = asyncio.get_running_loop(), -1, _published(library)

        def listener(uri: str) -> None:
            loop.call_soon_threadsafe(self._changed, "resources", uri)

        library.listeners.add(listener)
        try:
            while True:
                if library.version != known:
                    for item in library:
                        if (content := getattr(item.function, "content", None)) is not None:
                            content.listeners.add(self._changed)
                    now = _published(library)
                    for kind in ("tools", *(kind for kind in now if now[kind] != published[kind])):
                        if known >= 0:
                            self._changed(kind, None)
                    known, published = library.version, now
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            library.listeners.discard(listener)

    def _changed(self, kind: str, uri: str | None) -> None:
        with suppress(asyncio.QueueFull):  # a client that hears of some of them looks again anyway
            self._changes.put_nowait((kind, uri))

    async def _pass_on(self) -> None:
        """Tell clients of both protocols what has changed, here or at a server behind."""
        while True:
            kind, uri = await self._changes.get()
            event: Any = {"tools": ToolsListChanged, "prompts": PromptsListChanged, "resources": ResourcesListChanged}
            await self._bus.publish(event[kind]() if uri is None else ResourceUpdated(uri))
            connections = self._connections if uri is None else self._subscribers.get(uri, ())
            for connection in tuple(connections):
                with suppress(Exception):  # it is gone
                    if uri is not None:
                        await connection.notify("notifications/resources/updated", {"uri": uri})
                    else:
                        await connection.notify(f"notifications/{kind}/list_changed", None)

    async def _refuse_large(self, ctx: Context, call_next: Any) -> Any:
        if ctx.method == TOO_LARGE:
            why = f"the message has more than {MCP_MESSAGE_BYTES:,} bytes; send less at once"
            raise MCPError(types.INVALID_REQUEST, why)
        return await call_next(ctx)

    async def _note_cancellations(self, ctx: Context, call_next: Any) -> Any:
        if ctx.method == "notifications/cancelled":
            key = cancellation_key(ctx, (ctx.params or {}).get("requestId"))
            self._calls.cancelled.add(key)
            asyncio.get_running_loop().call_later(5, self._calls.cancelled.discard, key)
        return await call_next(ctx)

    def _desk(self, ctx: Context) -> Desk:
        return Desk(self._service.app, self._principal(ctx))

    # --- tools

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        self._hears(ctx)
        desk, start = self._desk(ctx), _offset(params)
        tools = self._service.app.library.specifications()
        offered = [item for item in tools if desk.may_use(item) and not {RESOURCE, PROMPT} & item.metadata.keys()]
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
            bare = [_bare_name(item) for item in library.specifications()]
            for item in sorted(library.specifications(), key=lambda each: each.name != each.name_for_models):
                alias = item.name_for_models
                if self._bare and bare.count(_bare_name(item)) == 1:
                    alias = _bare_name(item)
                made[item.name] = item.name if alias in taken else alias
                taken.add(alias)
            self._names = (library.version, made)
        return self._names[1]

    def _found(self, name: str) -> ToolSpecification | None:
        """The tool that a client calls by the name it was told, or by ours."""
        library = self._service.app.library
        known = name if name in library else next((ours for ours, it in self._aliases().items() if it == name), "")
        if not known:
            bare = [item for item in library.specifications() if _bare_name(item) == name]
            return bare[0] if len(bare) == 1 else None
        return library[known].specification

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        desk = self._desk(ctx)
        item = self._found(params.name)
        if item is None or not desk.may_use(item):
            if item is None:
                await desk.miss_tool(params.name[:TOOL_NAME_CHARS])
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:TOOL_NAME_CHARS]}")
        return await self._calls.call(ctx, desk, item, params)

    async def _answer_task(self, answer: Any, ctx: Context, params: TaskParams) -> Any:
        return await answer(ctx, self._desk(ctx), params)

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        item = self._found(name)
        return None if item is None else item.parameters

    # --- runs as resources, agents as prompts

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """What the servers behind have, and then the runs that the caller may see, newest first."""
        offset, desk = _offset(params), self._desk(ctx)
        self._hears(ctx)
        rows = await desk.runs(limit=RUNS_PAGE + 1, offset=offset)
        theirs = [] if offset else await self._contents.resources(desk)
        return types.ListResourcesResult(
            resources=[*theirs, *(_resource(row) for row in rows[:RUNS_PAGE])],
            next_cursor=str(offset + RUNS_PAGE) if len(rows) > RUNS_PAGE else None,
        )

    async def _list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template=f"{SCHEME}{{run_id}}", name="run", description="A run by its id.", mime_type=JSON
        )
        theirs = await self._contents.templates(self._desk(ctx))
        return types.ListResourceTemplatesResult(resource_templates=[*theirs, template])

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        """What a server behind has; or a run as JSON: how it stands, what it waits for, its calls and its answer."""
        desk, uri = self._desk(ctx), str(params.uri)
        try:
            if not uri.startswith(SCHEME):
                each = await self._contents.holding(desk, uri)
                if each is None or (given := each.reading(uri)) is None:
                    raise DeskError("NOT_FOUND", "")
                kind, binary = getattr(each.content, "mime_type", None), each.tool.returns == BYTES
                render = partial(contents, uri=uri, kind=kind, binary=binary)
                return await self._read(ctx, desk, each, given, params, render)
            row = await desk.run(uri.removeprefix(SCHEME))
        except (DeskError, MCPError) as error:
            if isinstance(error, MCPError) and error.code != types.INVALID_PARAMS:
                raise
            code = types.INVALID_PARAMS if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND
            raise MCPError(code, "Resource not found", data={"uri": uri}) from None
        handle = await desk.app.handle(row.id)
        response = await handle.so_far()
        run: dict[str, Any] = {
            "run_id": row.id,
            "agent": row.agent_name,
            "status": row.status.value,
            "waits_for": [approval.model_dump(mode="json") for approval in await desk.approvals(run_id=row.id)],
            "unknown": [record.model_dump(mode="json") for record in await handle.unknown()],
            "answer": None if response is None else response.answer,
            "error": None if response is None or response.error is None else response.error.model_dump(mode="json"),
            "calls": [] if response is None else [record.model_dump(mode="json") for record in response.tool_calls],
        }
        text = types.TextResourceContents(uri=uri, mime_type=JSON, text=to_json(run).decode())
        return types.ReadResourceResult(contents=[text])

    async def _read(
        self, ctx: Context, desk: Desk, each: Behind, arguments: dict[str, Any], params: Any, render: Any
    ) -> Any:
        """Read what a server has, as a call of the tool that reads it."""
        call = types.CallToolRequestParams(
            name=each.tool.name,
            arguments=arguments,
            meta=params.meta,
            input_responses=params.input_responses,
            request_state=params.request_state,
        )
        return await self._calls.call(ctx, desk, each.tool, call, render)

    async def _subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        each = await self._contents.holding(self._desk(ctx), uri)
        if each is not None and len(self._subscribers) < MOST_CHANGES:
            await each.content.subscribe(uri)
            self._subscribers.setdefault(uri, WeakSet()).add(connection_of(ctx))
        return types.EmptyResult()

    async def _unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        uri = str(params.uri)
        held = self._subscribers.get(uri, WeakSet())
        held.discard(connection_of(ctx))
        each = await self._contents.holding(self._desk(ctx), uri)
        if not held and self._subscribers.pop(uri, None) is not None and each is not None:
            await each.content.subscribe(uri, wanted=False)
        return types.EmptyResult()

    async def _listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        readable = []
        for uri in (params.notifications.resource_subscriptions or ())[:MOST_CHANGES]:
            if (each := await self._contents.holding(self._desk(ctx), str(uri))) is not None:
                await each.content.subscribe(str(uri))
                readable.append(uri)
        wanted = params.notifications.model_copy(update={"resource_subscriptions": readable or None})
        return await self._listening(ctx, params.model_copy(update={"notifications": wanted}))

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """What a server behind suggests for an argument. Whoever may not read there is suggested nothing."""
        desk, ref = self._desk(ctx), params.ref
        if isinstance(ref, types.PromptReference):
            held = await self._prompt(desk, ref.name)
            each = None if held is None else held[0]
            if held is not None:
                ref = ref.model_copy(update={"name": held[1].name})
        else:
            entries = await self._contents.listed(desk, "read_resource", lambda content: content.templates())
            each = next((each for each, entry in entries if entry.uri_template == ref.uri), None)
        if each is None:
            return types.CompleteResult(completion=types.Completion(values=[]))
        result: types.CompleteResult = await each.content.complete(params.model_copy(update={"ref": ref, "meta": None}))
        return result

    async def _set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        connection_of(ctx).state[LEVEL] = params.level
        return types.EmptyResult()

    def _hears(self, ctx: Context) -> None:
        """Clients of the older protocol that look at lists are told when these change."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._connections.add(connection_of(ctx))

    async def _prompt(self, desk: Desk, name: str) -> tuple[Behind, types.Prompt] | None:
        """A server's prompt by the name it is told under, or by its own where only one server has it."""
        for bare in (self._bare, True):
            if (held := (await self._contents.prompts(desk, bare=bare)).get(name)) is not None:
                return held
        return None

    async def _list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        """One for each agent, and those of the servers behind."""
        self._hears(ctx)
        task = types.PromptArgument(name="task", description="What to do.", required=True)
        prompts = [
            types.Prompt(
                name=agent.name, description=agent.description or f"Work as {agent.name!r} does.", arguments=[task]
            )
            for agent in self._service.agents.values()
        ]
        theirs = await self._contents.prompts(self._desk(ctx), bare=self._bare)
        prompts += [entry.model_copy(update={"name": name}) for name, (_, entry) in theirs.items()]
        return types.ListPromptsResult(prompts=prompts)

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        """An agent's instruction with a task, for the client's own model; or what a server behind has."""
        agents, desk = self._service.agents, self._desk(ctx)
        agent = agents.get(params.name)
        if agent is None and (held := await self._prompt(desk, params.name)) is not None:
            each, entry = held
            return await self._read(ctx, desk, each, each.filling(entry.name, params.arguments), params, prompt)
        if agent is None:
            known = ", ".join([*agents, *await self._contents.prompts(desk, bare=self._bare)]) or "none"
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name!r}; there are {known}")
        task = (params.arguments or {}).get("task", "").strip()
        if not task:
            raise MCPError(types.INVALID_PARAMS, "the argument 'task' must say what to do")
        text = types.TextContent(text=f"{agent.instruction}\n\nTask: {task}")
        return types.GetPromptResult(
            description=agent.description or None, messages=[types.PromptMessage(role="user", content=text)]
        )


def _published(library: Any) -> dict[str, list[Any]]:
    """What there is of each kind whose list clients are told of when it changes."""
    return {
        f"{kind}s": [item for item in library if kind in item.specification.metadata] for kind in (RESOURCE, PROMPT)
    }


def _bare_name(item: ToolSpecification) -> str:
    """What a server behind calls its tool; of any other its name."""
    return item.name.partition(".")[2] if "mcp" in item.metadata else item.name


def _offset(params: types.PaginatedRequestParams | None) -> int:
    cursor = None if params is None else params.cursor
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 9:
        raise MCPError(types.INVALID_PARAMS, "there is no such cursor")
    return int(cursor)


def _resource(row: RunRow) -> types.Resource:
    return types.Resource(
        uri=f"{SCHEME}{row.id}",
        name=row.id,
        title=one_line(f"{row.agent_name}: {row.status.value}", most=100),
        description="A run: its calls, what came of them, and its answer.",
        mime_type=JSON,
    )

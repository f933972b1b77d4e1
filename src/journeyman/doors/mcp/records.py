"""Runs as resources and agents as prompts: what a client can read of the work done here, and start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from journeyman.app.desk import Desk, DeskError
from journeyman.core.storing import RunRow
from journeyman.core.visible import one_line

SCHEME = "journeyman://runs/"
PAGE = 50
JSON = "application/json"
_NOT_FOUND = -32002
"""What the older protocol answers where there is no such resource; the newer one calls it a wrong parameter."""


class HasInstruction(Protocol):
    """What a prompt needs to know of an agent."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def instruction(self) -> str: ...


async def list_runs(desk: Desk, cursor: str | None) -> types.ListResourcesResult:
    """The runs that the caller may see, newest first."""
    offset = offset_of(cursor)
    rows = await desk.runs(limit=PAGE + 1, offset=offset)
    return types.ListResourcesResult(
        resources=[_resource(row) for row in rows[:PAGE]],
        next_cursor=str(offset + PAGE) if len(rows) > PAGE else None,
    )


def offset_of(cursor: str | None) -> int:
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


def templates() -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(
        uri_template=f"{SCHEME}{{run_id}}", name="run", description="A run by its id.", mime_type=JSON
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_run(desk: Desk, uri: str, *, protocol_version: str) -> types.ReadResourceResult:
    """A run as JSON: how it stands, what it waits for, its calls and its answer."""
    try:
        if not uri.startswith(SCHEME):
            raise DeskError("NOT_FOUND", "")
        row = await desk.run(uri.removeprefix(SCHEME))
    except DeskError:
        code = types.INVALID_PARAMS if protocol_version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND
        raise MCPError(code, "Resource not found", data={"uri": uri}) from None
    handle = await desk.app.handle(row.id)
    response = await handle.so_far()
    told: dict[str, Any] = {
        "run_id": row.id,
        "agent": row.agent_name,
        "status": row.status.value,
        "waits_for": [approval.model_dump(mode="json") for approval in await desk.approvals(run_id=row.id)],
        "unknown": [record.model_dump(mode="json") for record in await handle.unknown()],
        "answer": None if response is None else response.answer,
        "error": None if response is None or response.error is None else response.error.model_dump(mode="json"),
        "calls": [] if response is None else [record.model_dump(mode="json") for record in response.tool_calls],
    }
    text = types.TextResourceContents(uri=uri, mime_type=JSON, text=to_json(told).decode())
    return types.ReadResourceResult(contents=[text])


def list_prompts(agents: Mapping[str, HasInstruction]) -> types.ListPromptsResult:
    """One for each agent."""
    task = types.PromptArgument(name="task", description="What to do.", required=True)
    prompts = [
        types.Prompt(
            name=agent.name, description=agent.description or f"Work as {agent.name!r} does.", arguments=[task]
        )
        for agent in agents.values()
    ]
    return types.ListPromptsResult(prompts=prompts)


def get_prompt(
    agents: Mapping[str, HasInstruction], name: str, arguments: Mapping[str, str] | None
) -> types.GetPromptResult:
    """An agent's instruction with a task, for the client's own model."""
    agent = agents.get(name)
    if agent is None:
        raise MCPError(types.INVALID_PARAMS, f"there is no agent {name!r}; there are {', '.join(agents)}")
    task = (arguments or {}).get("task", "").strip()
    if not task:
        raise MCPError(types.INVALID_PARAMS, "the argument 'task' must say what to do")
    text = types.TextContent(text=f"{agent.instruction}\n\nTask: {task}")
    return types.GetPromptResult(
        description=agent.description or None, messages=[types.PromptMessage(role="user", content=text)]
    )

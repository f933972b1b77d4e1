"""What a server behind the gateway has besides tools, and what it asks, reach the official client; and are governed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.memory import create_client_server_memory_streams

from journeyman import Policy, Principal, RiskLevel, ToolLibrary
from journeyman.app.service import Service, open_service
from journeyman.core.runs import RunStatus
from journeyman.doors.mcp import Gateway
from journeyman.doors.mcp.calls import Places
from journeyman.doors.mcp.content import variables
from journeyman.sources import McpServer
from tests.waiting import until

SERVER = Path(__file__).with_name("whole_server.py")
PLACES = Places(decide=lambda approval: f"Decide about {approval.id}.", settle=lambda run, call: f"Settle {call}.")
BOTH = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
slow = pytest.mark.slow


@asynccontextmanager
async def gateway(
    folder: Path,
    mode: str,
    *,
    answers: Any = None,
    risk: RiskLevel = RiskLevel.REVERSIBLE,
    servers: tuple[str, ...] = ("whole",),
    **options: Any,
) -> AsyncIterator[tuple[Client, Service]]:
    """The official client, the gateway, and servers behind it."""
    protocol = "2025-11-25" if mode == "legacy" else mode
    sources = [
        McpServer(
            name=name,
            command=[sys.executable, str(SERVER), str(folder / "notes")],
            start_seconds=60,
            **{"protocol": protocol, **options},
        )
        for name in servers
    ]
    principal = Principal("ada", permissions={"approvals:decide"})
    opening = open_service(
        store=f"sqlite:///{folder}/runs.db", library=ToolLibrary(sources=sources), policy=Policy(default_risk=risk)
    )
    async with opening as service, create_client_server_memory_streams() as (client_side, (read, write)):
        door = Gateway(service, principal=lambda _: principal, places=PLACES)
        serving = asyncio.ensure_future(door.server.run(read, write, door.server.create_initialization_options()))

        @asynccontextmanager
        async def transport() -> AsyncIterator[Any]:
            yield client_side

        try:
            async with door.watching(), Client(transport(), mode=mode, elicitation_callback=answers) as client:
                yield client, service
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))


@slow
@BOTH
async def test_blocks_come_in_their_order_with_annotations_and_links_can_be_read(tmp_path: Path, mode: str) -> None:
    async with gateway(tmp_path, mode, servers=("other", "whole")) as (client, _):
        result = await client.call_tool("whole.mixed", {})
        assert [block.type for block in result.content] == ["image", "text", "resource_link", "text"]
        _, first, link, second = result.content
        assert isinstance(first, types.TextContent)
        assert first.text == "first\nline"
        assert first.annotations == types.Annotations(audience=["user"], priority=0.5)
        assert isinstance(second, types.TextContent)
        assert second.text == "second"
        assert isinstance(link, types.ResourceLink)
        assert (link.title, result.structured_content) == ("A link", {"total": 2})
        [read] = (await client.read_resource(str(link.uri))).contents
        assert isinstance(read, types.TextResourceContents)
        assert read.text == "what the link leads to"


@slow
@BOTH
async def test_resources_prompts_and_completion_pass_and_reads_are_runs(tmp_path: Path, mode: str) -> None:
    async with gateway(tmp_path, mode) as (client, service):
        uris = [str(item.uri) for item in (await client.list_resources()).resources]
        assert uris[:2] == ["note://fixed", "note://linked"]
        templates = [item.uri_template for item in (await client.list_resource_templates()).resource_templates]
        assert "note://by/{name}" in templates
        [fixed] = (await client.read_resource("note://fixed")).contents
        assert fixed == types.TextResourceContents(
            uri="note://fixed", mime_type="application/json", text='{"fixed": true}'
        )
        [made] = (await client.read_resource("note://by/Ada")).contents
        assert isinstance(made, types.TextResourceContents)
        assert made.text == "by Ada"
        with pytest.raises(MCPError, match="Resource not found"):
            await client.read_resource("note://nowhere/at/all")
        assert "whole.greet" in [item.name for item in (await client.list_prompts()).prompts]
        prompt = await client.get_prompt("whole.greet", {"name": "Bob"})
        assert [
            message.content.text for message in prompt.messages if isinstance(message.content, types.TextContent)
        ] == ["Say hello to Bob."]
        ref = types.PromptReference(name="whole.greet")
        found = await client.complete(ref, {"name": "name", "value": ""})
        assert found.completion.values == ["Ada", "Bob"]
        called = [call.tool_name for call in reversed(await service.store.calls.list())]
        assert called == ["whole.read_resource"] * 3 + ["whole.get_prompt"]


@slow
async def test_a_read_waits_for_a_person_where_its_risk_wants_it(tmp_path: Path) -> None:
    asked: list[str] = []

    async def yes(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"approve": True})

    async with gateway(tmp_path, "2026-07-28", answers=yes, risk=RiskLevel.IRREVERSIBLE) as (client, _):
        [fixed] = (await client.read_resource("note://fixed")).contents
        assert isinstance(fixed, types.TextResourceContents)
    assert len(asked) == 1
    assert asked[0].startswith("Allow the call of 'whole.read_resource'")


@slow
@pytest.mark.parametrize(
    ("mode", "protocol", "tool"),
    [
        ("legacy", "2025-11-25", "order_now"),
        ("2026-07-28", "2025-11-25", "order_now"),
        ("legacy", "2026-07-28", "order_later"),
        ("2026-07-28", "2026-07-28", "order_later"),
    ],
)
async def test_a_servers_question_reaches_the_person_marked_as_the_servers(
    tmp_path: Path, mode: str, protocol: str, tool: str
) -> None:
    asked: list[str] = []

    async def large(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"size": "large"})

    async with gateway(tmp_path, mode, answers=large, protocol=protocol) as (client, _):
        assert text_of(await client.call_tool(f"whole.{tool}", {})) == "ordered large"
    assert asked == ["The MCP server 'whole' asks: Which size?"]


@slow
async def test_without_anybody_to_ask_and_for_what_is_not_allowed_the_call_says_so(tmp_path: Path) -> None:
    async with gateway(tmp_path, "2026-07-28") as (client, _):
        with pytest.raises(MCPError, match="'elicitation/create', which the client does not answer"):
            await client.call_tool("whole.order_later", {})
        assert "MCP_INPUT_REFUSED" in text_of(await client.call_tool("whole.sample", {}))


@slow
@BOTH
async def test_the_server_is_told_of_a_cancelled_call(tmp_path: Path, mode: str) -> None:
    notes = tmp_path / "notes"
    async with gateway(tmp_path, mode) as (client, service):
        calling = asyncio.ensure_future(client.call_tool("whole.hang", {}))
        await until(lambda: notes.exists() and notes.read_text() == "begun")
        calling.cancel()
        await asyncio.wait((calling,))
        await until(lambda: notes.read_text() == "cancelled")

        async def ended() -> bool:
            return [row.status for row in await service.app.store.runs.list()] == [RunStatus.CANCELLED]

        await until(ended)


@pytest.mark.parametrize(
    ("template", "uri", "right"),
    [
        ("note://by/{name}", "note://by/Ada", True),
        ("note://by/{name}", "note://by/Ada/more", False),
        ("note://by/{+path}", "note://by/Ada/more", True),
        ("note://(a)/{name}", "note://a/x", False),
    ],
)
def test_an_address_fits_the_template_it_was_made_of(template: str, uri: str, right: bool) -> None:
    assert (variables(template, uri) is not None) is right

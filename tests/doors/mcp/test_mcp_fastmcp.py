"""A server that was written with FastMCP, behind the gateway: everything of it passes, and is governed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.memory import create_client_server_memory_streams

from benchmarks import packages
from journeyman import Policy, Principal, ToolLibrary
from journeyman.app.service import open_service
from journeyman.doors.mcp import Gateway
from journeyman.doors.mcp.calls import Places
from journeyman.sources import McpServer

HERE = Path(packages.__file__).parent / "mcp" / "fastmcp"
PLACES = Places(decide=lambda approval: f"Decide about {approval.id}.", settle=lambda run, call: f"Settle {call}.")
pytestmark = [pytest.mark.nightly, pytest.mark.slow, pytest.mark.timeout(600)]


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def test_everything_of_a_fastmcp_server_passes_and_a_change_asks(tmp_path: Path) -> None:
    folder = await asyncio.to_thread(packages.install, "fastmcp", HERE / "requirements.txt")
    asked: list[str] = []

    async def answers(context: Any, params: Any) -> Any:
        asked.append(params.message)
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={"approve": True} if "approve" in fields else {"value": "L"})

    source = McpServer(
        name="shop",
        command=[sys.executable, str(HERE / "server.py")],
        env={"PYTHONPATH": str(folder)},
        start_seconds=120,
        trust_annotations=True,
        protocol="2025-11-25",  # FastMCP asks in the middle of a call, which the newer version has no way for
    )
    store, principal = f"sqlite:///{tmp_path}/runs.db", Principal("ada", permissions={"approvals:decide"})
    opening = open_service(store=store, library=ToolLibrary(sources=[source]), policy=Policy())
    async with opening as service, create_client_server_memory_streams() as (client_side, (read, write)):
        door = Gateway(service, principal=lambda _: principal, places=PLACES)
        serving = asyncio.ensure_future(door.server.run(read, write, door.server.create_initialization_options()))
        try:
            async with Client(_given(client_side), mode="legacy", elicitation_callback=answers) as client:
                names = {item.name for item in (await client.list_tools()).tools}
                assert {"shop_look_up", "shop_cancel", "shop_order"} <= names
                assert "shipped" in text_of(await client.call_tool("shop_look_up", {"order": "W-17"}))
                assert asked == []
                assert "cancelled ['W-17']" in text_of(await client.call_tool("shop_cancel", {"order": "W-17"}))
                assert len(asked) == 1, "a change asks"
                ordered = text_of(await client.call_tool("shop_order", {"item": "tea"}))
                assert "ordered tea: accept L" in ordered
                assert "The MCP server 'shop' asks: Which size?" in asked[-1]
                [terms] = (await client.read_resource("shop://terms")).contents
                [order] = (await client.read_resource("shop://orders/W-17")).contents
                assert isinstance(terms, types.TextResourceContents)
                assert isinstance(order, types.TextResourceContents)
                assert (terms.text, order.text) == ("Thirty days.", "order W-17")
                told = await client.get_prompt("letter", {"to": "Ada"})
                assert "Dear Ada" in str(told.messages[0].content)
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


def _given(streams: Any) -> Any:
    class Transport:
        async def __aenter__(self) -> Any:
            return streams

        async def __aexit__(self, *_: object) -> None:
            pass

    return Transport()

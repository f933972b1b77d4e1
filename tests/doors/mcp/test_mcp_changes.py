"""Subscriptions and changes of lists, of a server behind the gateway, reach the official client in both versions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from journeyman import Policy, Principal, RiskLevel, ToolLibrary
from journeyman.sources import McpServer
from tests.doors.mcp.hearing import Heard
from tests.doors.mcp.test_mcp_content import text_of
from tests.doors.mcp.test_mcp_published import served
from tests.waiting import until

SERVER = Path(__file__).with_name("changing_server.py")
ADA, BOB = Principal("ada", permissions={"notes"}), Principal("bob")


def behind(protocol: str) -> ToolLibrary:
    command = [sys.executable, str(SERVER)]
    source = McpServer(name="notes", command=command, start_seconds=60, protocol=protocol, permissions={"notes"})
    return ToolLibrary(sources=[source])


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])
async def test_changes_of_lists_and_of_subscribed_resources_pass(tmp_path: Path, mode: str, protocol: str) -> None:
    heard = Heard()
    policy = Policy(default_risk=RiskLevel.REVERSIBLE)
    async with served(tmp_path, mode, library=behind(protocol), policy=policy, message_handler=heard, who=ADA) as (
        client,
        _,
        _,
    ):
        await client.call_tool("notes.touch", {})
        async with heard.of(client, mode, ["note://one"]):
            assert not heard.words  # nobody had subscribed
            if protocol == "2025-11-25":
                assert text_of(await client.call_tool("notes.subscribers", {})) == "note://one"

            async def told() -> bool:  # with the newer protocol the gateway listens anew, which takes a moment
                await client.call_tool("notes.touch", {})
                return "resource note://one" in heard.words

            await until(told)
            await client.call_tool("notes.extend", {})
            await until(lambda: {"tools", "prompts", "resources"} <= set(heard.words))
            assert "notes_added" in [item.name for item in (await client.list_tools()).tools]
            assert "notes.added" in [item.name for item in (await client.list_prompts()).prompts]
            assert "note://added" in [str(item.uri) for item in (await client.list_resources()).resources]
        if (mode, protocol) == ("legacy", "2025-11-25"):
            assert text_of(await client.call_tool("notes.subscribers", {})) == ""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_whoever_may_not_read_a_resource_hears_nothing_of_it(tmp_path: Path, mode: str) -> None:
    heard = Heard()
    library = behind("2025-11-25")
    async with served(tmp_path, mode, library=library, message_handler=heard, who=BOB) as (client, service, _):
        async with heard.of(client, mode, ["note://one"]):
            assert await service.app.library["notes.subscribers"].invoke({}, None) == ""
            await service.app.library["notes.touch"].invoke({}, None)
        assert heard.words == []

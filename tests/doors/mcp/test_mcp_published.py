"""Resources and prompts that a program publishes: the official client lists, reads, completes and subscribes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.shared.memory import create_client_server_memory_streams

from journeyman import (
    Image,
    Policy,
    Principal,
    RateLimit,
    ToolContext,
    ToolDefinitionError,
    ToolError,
    ToolLibrary,
    prompt,
    resource,
    tool,
)
from journeyman.app.service import Service, open_service
from journeyman.doors.mcp import Gateway
from journeyman.doors.mcp.calls import Places
from tests.doors.mcp.hearing import Heard
from tests.waiting import until

PLACES = Places(decide=lambda approval: f"Decide about {approval.id}.", settle=lambda run, call: f"Settle {call}.")
BOTH = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
ADA, BOB = Principal("ada", permissions={"orders:read"}), Principal("bob")
LOGO = bytes(range(256))
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


def orders(value: str, given: dict[str, str]) -> list[str]:
    return [f"{value}{number}{given.get('tone', '')}" for number in range(200)]


def shop() -> ToolLibrary:
    @resource("orders://all")
    def all_orders() -> list[str]:
        """All orders."""
        return ["1", "2"]

    @resource("orders://{order_id}", complete={"order_id": orders}, permissions={"orders:read"})
    def order(order_id: int, context: ToolContext) -> dict[str, Any]:
        """An order by its number."""
        if order_id == 404:
            raise ToolError("NO_ORDER", "there is no such order")
        return {"order": order_id, "for": "" if context.principal is None else context.principal.id}

    @resource("shop://logo", mime_type="image/png")
    def logo() -> bytes:
        """The shop's logo."""
        return LOGO

    @resource("shop://dot")
    def dot() -> Image:
        """A picture."""
        return Image.from_bytes(base64.b64decode(PIXEL))

    @resource("shop://files/{+path}", mime_type="text/markdown")
    async def page(path: str) -> str:
        """A page."""
        return f"# {path}"

    @prompt
    def refund_letter(order_id: str, tone: Literal["kind", "firm"] = "kind") -> str:
        """A letter about a refund.

        Args:
            order_id: The order's number.
        """
        return f"Write a {tone} letter about order {order_id}."

    @prompt(complete={"topic": lambda value: ["tea", "coffee"]})
    def talk(topic: str) -> list[Any]:
        """A talk that has begun."""
        picture = Image.from_bytes(base64.b64decode(PIXEL))
        return [
            f"Let us talk about {topic}.",
            {"role": "assistant", "content": "Gladly."},
            {"role": "user", "content": picture},
        ]

    @prompt
    def broken() -> list[Any]:
        """One that returns what is no message."""
        return [{"role": "nobody", "content": "hm"}]

    @tool(read_only=True)
    def add(a: int, b: int) -> int:
        """Add numbers."""
        return a + b

    return ToolLibrary([all_orders, order, logo, dot, page, refund_letter, talk, broken, add])


@asynccontextmanager
async def served(
    folder: Path,
    mode: str,
    *,
    who: Principal = ADA,
    policy: Policy | None = None,
    library: ToolLibrary | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Client, Service, ToolLibrary]]:
    library = shop() if library is None else library
    opening = open_service(store=f"sqlite:///{folder}/runs.db", library=library, policy=policy or Policy())
    async with opening as service, create_client_server_memory_streams() as (client_side, (read, write)):
        door = Gateway(service, principal=lambda _: who, places=PLACES)
        serving = asyncio.ensure_future(door.server.run(read, write, door.server.create_initialization_options()))

        @asynccontextmanager
        async def transport() -> AsyncIterator[Any]:
            yield client_side

        try:
            async with door.watching(), Client(transport(), mode=mode, **options) as client:
                yield client, service, library
        finally:
            serving.cancel()
            await asyncio.wait((serving,))


async def read(client: Client, uri: str) -> Any:
    [found] = (await client.read_resource(uri)).contents
    return found


@BOTH
async def test_resources_are_listed_and_read_under_their_addresses(tmp_path: Path, mode: str) -> None:
    async with served(tmp_path, mode) as (client, service, _):
        listed = {str(item.uri): item for item in (await client.list_resources()).resources}
        assert list(listed) == ["orders://all", "shop://logo", "shop://dot"]
        assert (listed["shop://logo"].mime_type, listed["orders://all"].description) == ("image/png", "All orders.")
        templates = [item.uri_template for item in (await client.list_resource_templates()).resource_templates]
        assert templates[:2] == ["orders://{order_id}", "shop://files/{+path}"]
        assert [item.name for item in (await client.list_tools()).tools] == ["add"]
        assert await read(client, "orders://7") == types.TextResourceContents(
            uri="orders://7", mime_type="application/json", text='{"order":7,"for":"ada"}'
        )
        assert (await read(client, "orders://all")).text == '["1","2"]'  # not the order named "all"
        assert (await read(client, "shop://files/a/b")).text == "# a/b"
        logo = await read(client, "shop://logo")
        assert (base64.b64decode(logo.blob, validate=True), logo.mime_type) == (LOGO, "image/png")
        dot = await read(client, "shop://dot")
        assert (str(dot.uri), dot.blob, dot.mime_type) == ("shop://dot", PIXEL, "image/png")
        for uri in ("shop://nothing", "orders://x/y"):
            with pytest.raises(MCPError, match="not found"):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="no such order"):
            await client.read_resource("orders://404")
        runs = await service.app.store.runs.list()
        assert len(runs) == 6  # each read is a call, and in the journal


@BOTH
async def test_prompts_are_listed_filled_in_and_completed(tmp_path: Path, mode: str) -> None:
    async with served(tmp_path, mode) as (client, _, _):
        found = {item.name: item for item in (await client.list_prompts()).prompts}
        letter = found["refund_letter"]
        assert letter.description == "A letter about a refund."
        assert [(each.name, each.description, each.required) for each in letter.arguments or ()] == [
            ("order_id", "The order's number.", True),
            ("tone", None, False),
        ]
        filled = await client.get_prompt("refund_letter", {"order_id": "7"})
        assert [(each.role, each.content.text) for each in filled.messages if each.content.type == "text"] == [
            ("user", "Write a kind letter about order 7.")
        ]
        talk = await client.get_prompt("talk", {"topic": "tea"})
        assert [(each.role, each.content.type) for each in talk.messages] == [
            ("user", "text"),
            ("assistant", "text"),
            ("user", "image"),
        ]
        for name, given, why in [
            ("refund_letter", {}, "order_id"),
            ("refund_letter", {"order_id": "7", "tone": "rude"}, "tone"),
            ("nothing", {}, "there is no prompt 'nothing'"),
            ("broken", {}, "returned something else"),
        ]:
            with pytest.raises(MCPError, match=why):
                await client.get_prompt(name, given)
        order = types.ResourceTemplateReference(uri="orders://{order_id}")
        suggested = (await client.complete(order, {"name": "order_id", "value": "4"}, {"tone": "!"})).completion
        assert (len(suggested.values), suggested.values[1], suggested.has_more) == (100, "41!", True)
        for name, argument, value, values in [
            ("talk", "topic", "", ["tea", "coffee"]),
            ("refund_letter", "tone", "f", ["firm"]),
            ("refund_letter", "order_id", "1", []),
        ]:
            said = await client.complete(types.PromptReference(name=name), {"name": argument, "value": value})
            assert said.completion.values == values


@BOTH
async def test_reads_are_governed_by_permission_rate_and_size(tmp_path: Path, mode: str) -> None:
    policy = Policy(rate_limits={"all_orders": RateLimit(calls=1, seconds=3600)}, max_result_bytes=100)
    async with served(tmp_path, mode, who=BOB, policy=policy) as (client, _, _):
        templates = [item.uri_template for item in (await client.list_resource_templates()).resource_templates]
        assert "orders://{order_id}" not in templates
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("orders://7")
        order = types.ResourceTemplateReference(uri="orders://{order_id}")
        assert (await client.complete(order, {"name": "order_id", "value": "4"})).completion.values == []
        with pytest.raises(MCPError, match="larger than 100 bytes"):
            await client.read_resource("shop://logo")
        await client.read_resource("orders://all")
        with pytest.raises(MCPError, match="too often"):
            await client.read_resource("orders://all")


@BOTH
async def test_subscribers_are_told_when_the_program_says_so_and_when_lists_change(tmp_path: Path, mode: str) -> None:
    heard = Heard()
    async with (
        served(tmp_path, mode, message_handler=heard) as (client, _, library),
        heard.of(client, mode, ["orders://7"]),
    ):
        for uri in ("orders://8", "orders://7"):
            await asyncio.to_thread(library.updated, uri)
        await until(lambda: "resource orders://7" in heard.words)
        assert "resource orders://8" not in heard.words

        @prompt
        def another() -> str:
            """Another prompt."""
            return "hello"

        library.register(another)
        await until(lambda: "prompts" in heard.words)
        assert "resources" not in heard.words
        assert "another" in [item.name for item in (await client.list_prompts()).prompts]


def test_what_cannot_be_published_is_refused_with_the_fix() -> None:
    def order(order_id: str) -> str:
        """An order."""
        return order_id

    with pytest.raises(ToolDefinitionError, match=r"'name', 'order_id' must stand both in the address"):
        resource("orders://{name}")(order)
    with pytest.raises(ToolDefinitionError, match="give an address"):
        resource("orders")(order)
    with pytest.raises(ToolDefinitionError, match="complete names 'x'"):
        prompt(complete={"x": orders})(order)


def test_a_published_function_is_still_one_and_a_tool_that_reads() -> None:
    found = {item.name: item for item in shop()}
    assert found["refund_letter"]("7", "firm") == "Write a firm letter about order 7."
    assert all(item.specification.read_only for item in found.values())

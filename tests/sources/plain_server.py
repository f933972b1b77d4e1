"""A server made with the official package, as most are."""

from __future__ import annotations

import asyncio
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("plain")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers. Use when the user wants a sum."""
    return a + b


@server.tool()
async def slow(seconds: float, ctx: Context) -> str:
    """Take a while."""
    await ctx.report_progress(1, 2, "half way")
    await asyncio.sleep(seconds)
    return "done"


@server.resource("note://hello")
def hello() -> str:
    return "hi there"


@server.prompt()
def greet(name: str) -> str:
    return f"Say hello to {name}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")

"""An MCP server with a search tool, as others write them: its results carry no numbers."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer

server = MCPServer("web")


@server.tool()
def search(query: str) -> list[dict[str, Any]]:
    """Search the web. Use when facts are needed."""
    url = "https://bridge.example/facts"
    return [{"title": "Bridge facts", "url": url, "description": "The harbour bridge is 1,149 metres long."}]


@server.tool()
def toll(bridge: str) -> str:
    """Say what the toll of a bridge is. Use when it is asked for."""
    return f"The toll of the {bridge} is 4 pounds."


if __name__ == "__main__":
    server.run()

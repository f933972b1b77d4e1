"""An MCP server with a shelf: what is put there is written to a file outside of any store, if one is named."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("shelf")
LEDGER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


@server.tool()
def look(shelf: int) -> str:
    """Look what is on a shelf. Use when somebody asks."""
    return f"shelf {shelf} is empty"


@server.tool()
def put(shelf: int, thing: str) -> str:
    """Put a thing on a shelf. Use when somebody wants it there."""
    if LEDGER is not None:
        with LEDGER.open("a") as file:
            file.write(f"put {shelf} {thing}\n")
            file.flush()
            os.fsync(file.fileno())
    return f"{thing} is on shelf {shelf}"


if __name__ == "__main__":
    server.run()

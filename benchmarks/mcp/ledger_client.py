"""The client of the campaign of kills: calls a tool for every line of its standard input, and says what came of it.

``python -m benchmarks.mcp.ledger_client URL``; the token is in the environment variable TOKEN.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from journeyman.doors.mcp.calls import KEY


async def called(url: str, job: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    meta: Any = {KEY: job["key"]} if job["key"] else None
    try:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode=job["mode"]) as client,
        ):
            result = await client.call_tool(job["tool"], {"line": job["line"]}, meta=meta)
    except (MCPError, httpx2.HTTPError, OSError, RuntimeError, BaseExceptionGroup) as error:
        return {"broken": f"{type(error).__name__}: {error}"[:300]}
    text = "".join(block.text for block in result.content if isinstance(block, types.TextContent))
    return {"error": result.is_error, "text": text}


def main() -> None:
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(asyncio.run(called(sys.argv[1], job))), flush=True)


if __name__ == "__main__":
    main()

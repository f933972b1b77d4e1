"""The least that an MCP server can be. Each file beside this one misbehaves in one way; none needs a package."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

TOOL = {"name": "work", "description": "Does some work.", "inputSchema": {"type": "object"}}


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def answer(request: dict[str, Any], result: Any) -> None:
    send({"id": request["id"], "result": result})


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def initialized(request: dict[str, Any], **capabilities: Any) -> None:
    answer(
        request,
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}, **capabilities},
            "serverInfo": {"name": "hostile", "version": "1"},
        },
    )


def serve(handlers: dict[str, Callable[[dict[str, Any]], None]]) -> None:
    """Answer requests until the input ends; what is not handled is answered as an honest server would."""
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method", "response")
        if method in handlers:
            handlers[method](message)
        elif method == "initialize":
            initialized(message)
        elif method == "tools/list":
            answer(message, {"tools": [TOOL]})
        elif method == "tools/call":
            answer(message, text("done"))
        elif "id" in message and method != "response":
            send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})

"""A server for measuring: the least of the protocol, with as many tools as its argument says. Needs no package."""

from __future__ import annotations

import json
import sys
from typing import Any

PAGE = 250
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where to look."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}
HINTS = {"readOnlyHint": True}


def tool(number: int) -> dict[str, Any]:
    text = f"Looks up entries of collection {number}. Use when the user asks for collection {number}."
    return {"name": f"look_up_{number}", "description": text, "inputSchema": SCHEMA, "annotations": HINTS}


def main() -> None:
    tools = [tool(number) for number in range(int(sys.argv[1]))]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
        match message["method"]:
            case "initialize":
                info = {"name": "bench", "version": "1"}
                answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
                answer = {"result": answer}
            case "tools/list":
                start = int((message.get("params") or {}).get("cursor") or 0)
                page: dict[str, Any] = {"tools": tools[start : start + PAGE]}
                if start + PAGE < len(tools):
                    page["nextCursor"] = str(start + PAGE)
                answer = {"result": page}
            case "tools/call":
                answer = {"result": {"content": [{"type": "text", "text": "three entries: a, b and c"}]}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

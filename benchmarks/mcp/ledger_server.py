"""The server of the campaign of kills: its tools write lines into a file, slowly enough to be killed at any point.

``python ledger_server.py FOLDER``. What it does is in FOLDER/server.log, and its process id in FOLDER/server-of-N.pid,
where N is who has started it: commands that a person gives start servers of their own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
PAUSE = 0.04
"""Seconds before and after it writes."""
SCHEMA = {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]}
HINTS: dict[str, dict[str, Any]] = {
    "append": {"destructiveHint": False, "openWorldHint": False},
    "put": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
    "read": {"readOnlyHint": True},
    "destroy": {"destructiveHint": True},
}


def tool(name: str) -> dict[str, Any]:
    text = f"Does {name} with a line. Use when testing."
    return {"name": name, "description": text, "inputSchema": SCHEMA, "annotations": HINTS[name]}


def note(*words: str) -> None:
    with (FOLDER / "server.log").open("a") as log:
        log.write(" ".join(words) + "\n")


def call(name: str, line: str) -> str:
    time.sleep(PAUSE)
    if name == "put":
        (FOLDER / f"put-{line}").write_text(line)
    elif name != "read":
        with (FOLDER / "ledger").open("a") as ledger:
            ledger.write(line + "\n")
    time.sleep(PAUSE)
    return f"{name} {line}"


def main() -> None:
    (FOLDER / f"server-of-{os.getppid()}.pid").write_text(str(os.getpid()))
    for text in sys.stdin:
        message = json.loads(text)
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
        line = ""
        match message["method"]:
            case "initialize":
                info = {"name": "ledger", "version": "1"}
                capabilities: dict[str, Any] = {"tools": {}}
                answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}}
            case "tools/list":
                answer = {"result": {"tools": [tool(name) for name in HINTS]}}
            case "tools/call":
                line = message["params"]["arguments"]["line"]
                note("received", line)
                done = call(message["params"]["name"], line)
                note("answering", line)
                answer = {"result": {"content": [{"type": "text", "text": done}]}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()
        if line:
            note("answered", line)


if __name__ == "__main__":
    main()

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
    "slow": {"destructiveHint": False, "openWorldHint": False},
    "ask": {"destructiveHint": False, "openWorldHint": False},
    "ask_put": {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False},
}
SLOW = 2.6
"""Seconds of the call that becomes a task."""
FORM = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
PAGE = "ledger://"


def tool(name: str) -> dict[str, Any]:
    text = f"Does {name} with a line. Use when testing."
    return {"name": name, "description": text, "inputSchema": SCHEMA, "annotations": HINTS[name]}


def note(*words: str) -> None:
    with (FOLDER / "server.log").open("a") as log:
        log.write(" ".join(words) + "\n")


def call(name: str, line: str) -> str:
    time.sleep(SLOW if name == "slow" else PAUSE)
    if name.startswith("ask") and not asked(line):
        return "not sure"
    if name in ("put", "ask_put"):
        (FOLDER / f"put-{line}").write_text(line)
    elif name != "read":
        with (FOLDER / "ledger").open("a") as ledger:
            ledger.write(line + "\n")
    time.sleep(PAUSE)
    return f"{name} {line}"


def asked(line: str) -> bool:
    """Ask the person, and wait for the answer; nothing else comes meanwhile."""
    params = {"message": f"Sure about {line}?", "requestedSchema": FORM}
    send({"id": f"ask-{line}", "method": "elicitation/create", "params": params})
    for text in sys.stdin:
        message = json.loads(text)
        if message.get("id") == f"ask-{line}" and "method" not in message:
            return bool(message.get("result", {}).get("action") == "accept")
        if "method" in message and "id" in message:
            send({"id": message["id"], "result": {}})
    return False


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


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
                capabilities: dict[str, Any] = {"tools": {}, "resources": {}}
                answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}}
            case "tools/list":
                answer = {"result": {"tools": [tool(name) for name in HINTS]}}
            case "tools/call":
                line = message["params"]["arguments"]["line"]
                note("received", line)
                done = call(message["params"]["name"], line)
                note("answering", line)
                answer = {"result": {"content": [{"type": "text", "text": done}]}}
            case "resources/list":
                answer = {"result": {"resources": []}}
            case "resources/templates/list":
                template = {"uriTemplate": f"{PAGE}{{line}}", "name": "line"}
                answer = {"result": {"resourceTemplates": [template]}}
            case "resources/read":
                uri = message["params"]["uri"]
                line = uri.removeprefix(PAGE)
                note("received", line)
                done = call("read", line)
                note("answering", line)
                answer = {"result": {"contents": [{"uri": uri, "mimeType": "text/plain", "text": done}]}}
        send({"id": message["id"], **answer})
        if line:
            note("answered", line)


if __name__ == "__main__":
    main()

"""A small server of the older protocol that behaves; its tools show one feature each."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "hostile"))
from base import TOOL, answer, send, serve, text

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
LOG = Path(sys.argv[1]) if len(sys.argv) > 1 else None
"""What was done here, one line each, for tests that look at it from outside."""


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {**TOOL, "name": name, "description": f"Shows {name}. Use when testing.", **more}


TOOLS = [
    tool("environment"),
    tool("steps"),
    tool("wait"),
    tool("picture"),
    tool("resource"),
    tool("grow"),
    tool("fail"),
    tool("die", annotations={"destructiveHint": True}),
    tool("read_or_die", annotations={"readOnlyHint": True}),
    tool("log"),
]
HINTED = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True}
WAITING: dict[int, threading.Event] = {}


def note(line: str) -> None:
    if LOG is not None:
        with LOG.open("a") as file:
            file.write(line + "\n")


def call(request: dict[str, Any]) -> None:
    name, params = request["params"]["name"], request["params"]
    note(f"called {name}")
    match name:
        case "environment":
            answer(request, text(json.dumps(dict(os.environ))))
        case "steps":
            token = params["_meta"]["progressToken"]
            for step in (1, 2):
                progress = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
                send({"method": "notifications/progress", "params": progress})
            answer(request, text("done"))
        case "wait":
            note("waiting")
        case "picture":
            answer(
                request,
                {
                    "content": [
                        {"type": "text", "text": "a dot"},
                        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
                    ]
                },
            )
        case "resource":
            held = {"uri": "note://1", "text": "hello"}
            link = {"type": "resource_link", "uri": "note://2", "name": "two"}
            answer(request, {"content": [{"type": "resource", "resource": held}, link]})
        case "grow":
            TOOLS.append(tool("grown"))
            answer(request, text("ok"))
            send({"method": "notifications/tools/list_changed"})
        case "fail":
            answer(request, {**text("no such thing"), "isError": True})
        case "die":
            os._exit(3)
        case "read_or_die":
            marker = Path(sys.argv[1] + ".died")
            if not marker.exists():
                marker.touch()
                os._exit(3)
            answer(request, text("read"))
        case "log":
            send({"method": "notifications/message", "params": {"level": "warning", "data": "disk \x1b[31mfull"}})
            answer(request, text("ok"))
        case _:
            answer(request, text(name))


serve(
    {
        "tools/list": lambda request: answer(request, {"tools": TOOLS}),
        "tools/call": call,
        "notifications/cancelled": lambda message: note("cancelled"),
    }
)
note("ended")

"""Does what it is asked, and then answers as if it had not looked at it."""

import json
from typing import Any

from web import Handler, serve, text

calls = 0


def called(handler: Handler, message: dict[str, Any]) -> None:
    global calls
    calls += 1
    error = {"code": -32600, "message": "Session terminated"}
    match calls:
        case 1:
            handler.reply(b"", {"location": "/elsewhere"}, status=307)
        case 2:
            handler.reply(b"", status=404)
        case 3:
            handler.reply(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        case _:
            handler.result(message, text(str(calls)))


serve(called)

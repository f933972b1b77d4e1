"""The same over HTTP: the least of a server, and its port on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from base import TOOL, text


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    called: Callable[[Handler, dict[str, Any]], None]
    got: Callable[[Handler], None] | None = None

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method = message.get("method")
        if "id" not in message:
            self.reply(b"", status=202)
        elif method == "initialize":
            info = {"name": "hostile", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            self.result(message, result, {"mcp-session-id": "s-1"})
        elif method == "tools/list":
            self.result(message, {"tools": [TOOL]})
        elif method == "tools/call":
            type(self).called(self, message)
        else:
            error = {"code": -32601, "message": "Method not found"}
            self.reply(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    def do_GET(self) -> None:
        if type(self).got is None:
            self.reply(b"", status=405)
        else:
            type(self).got(self)

    def do_DELETE(self) -> None:
        self.reply(b"")

    def result(self, request: dict[str, Any], result: Any, headers: dict[str, str] | None = None) -> None:
        self.reply(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode(), headers)

    def reply(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def serve(
    called: Callable[[Handler, dict[str, Any]], None],
    got: Callable[[Handler], None] | None = None,
    handler: type[Handler] = Handler,
) -> None:
    Handler.called, Handler.got = called, got
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    print(server.server_port, flush=True)
    server.serve_forever()


__all__ = ["Handler", "serve", "text"]

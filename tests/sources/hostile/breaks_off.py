"""Hangs up: before it answers, in the middle of a body, in the middle of a stream."""

import os

from web import Handler, serve

CALLS = iter(("at once", "in the body", "in the stream"))


def called(handler: Handler, _) -> None:
    how = next(CALLS)
    if how != "at once":
        kind = "application/json" if how == "in the body" else "text/event-stream"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 1000\r\n\r\n"
        handler.wfile.write(head.encode() + b'{"jsonrpc"')
        handler.wfile.flush()
    handler.connection.shutdown(2)
    handler.close_connection = True
    os.close(os.dup(handler.connection.fileno()))


serve(called)

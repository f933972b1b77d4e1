"""Answers a call with a stream of empty lines and comments that never comes to anything."""

from web import serve


def called(handler, _):
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream")
    handler.send_header("connection", "close")
    handler.end_headers()
    try:
        while True:
            handler.wfile.write(b"\n:\n" * 20_000)
    except OSError:
        handler.close_connection = True


serve(called)

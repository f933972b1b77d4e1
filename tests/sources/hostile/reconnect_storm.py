"""Ends its stream of notifications at once and asks to be called again immediately; counts how often it is."""

from web import serve, text

GETS = []


def got(handler):
    GETS.append(1)
    handler.reply(b"retry: 0\nid: 1\n\n", {"content-type": "text/event-stream"})


serve(lambda handler, request: handler.result(request, text(str(len(GETS)))), got)

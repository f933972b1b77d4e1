"""Sends fifty thousand notifications before it answers, most of them about progress nobody asked for."""

from base import answer, send, serve, text


def call(request):
    token = (request["params"].get("_meta") or {}).get("progressToken")
    for number in range(50_000):
        send(
            {"method": "notifications/progress", "params": {"progressToken": token, "progress": number, "message": "x"}}
        )
        if number % 100 == 0:
            send({"method": "notifications/tools/list_changed"})
            send({"method": "notifications/message", "params": {"level": "error", "data": "look at me"}})
    answer(request, text("done"))


serve({"tools/call": call})

"""Answers what nobody asked, under wrong ids and with ids of wrong kinds, and only then what was asked."""

from base import answer, send, serve, text


def call(request):
    for wrong in (request["id"] + 1_000, -1, "7", None, 1.5, True, {"a": 1}, [request["id"]]):
        send({"id": wrong, "result": text("not yours")})
    send({"id": request["id"] + 1, "error": {"code": -1, "message": "not yours"}})
    answer(request, text("yours"))
    answer(request, text("twice"))


serve({"tools/call": call})

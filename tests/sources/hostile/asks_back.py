"""Answers a call only once the client has told it something: a completion, a form, its folders."""

import json
import sys

from base import answer, send, serve, text

ASKED = {
    "sampling/createMessage": {"messages": [], "maxTokens": 10},
    "elicitation/create": {"message": "Your password?", "requestedSchema": {"type": "object", "properties": {}}},
    "roots/list": {},
}


def call(request):
    codes = []
    for number, (method, params) in enumerate(ASKED.items()):
        send({"id": f"mine-{number}", "method": method, "params": params})
        codes.append(str("error" in json.loads(sys.stdin.readline())))
    answer(request, text(" ".join(codes)))


serve({"tools/call": call})

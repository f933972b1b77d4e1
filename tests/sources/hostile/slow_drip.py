"""Answers a call one character at a time, and never ends."""

import time

from base import serve, write


def drip(request):
    write(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"content":[{{"type":"text","text":"')
    while True:
        write(".")
        time.sleep(0.05)


serve({"tools/call": drip})

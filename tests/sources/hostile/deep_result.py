"""Answers with a list in a list in a list …"""

from base import serve, write


def call(request):
    nested = "[" * 5_000 + "]" * 5_000
    head = f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{"content":[],"structuredContent":{{"a":'
    write(f"{head}{nested}}}}}}}\n")


serve({"tools/call": call})

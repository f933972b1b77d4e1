"""Sends a call, with its headers, to somebody else."""

from web import serve

serve(lambda handler, _: handler.reply(b"", {"location": "http://127.0.0.1:9/elsewhere"}, status=307))

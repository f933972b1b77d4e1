"""Sends its client back to the page it came from."""

from base import TOOL, answer, serve

serve({"tools/list": lambda request: answer(request, {"tools": [TOOL], "nextCursor": "again"})})

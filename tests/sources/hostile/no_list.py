"""Lists its tools as a text."""

from base import answer, serve

serve({"tools/list": lambda request: answer(request, {"tools": "work"})})

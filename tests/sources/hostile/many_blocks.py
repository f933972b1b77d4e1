"""Answers with more pieces than anybody reads."""

from base import answer, serve

serve({"tools/call": lambda request: answer(request, {"content": [{"type": "text", "text": "x"}] * 5_000})})

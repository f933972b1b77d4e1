"""Answers calls with results that no version of the protocol knows."""

from base import answer, serve

serve({"tools/call": lambda request: answer(request, {"content": {"type": 7}, "isError": "perhaps"})})

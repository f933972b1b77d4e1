"""Lists a tool that takes a list, which the protocol does not allow."""

from base import TOOL, answer, serve

serve({"tools/list": lambda request: answer(request, {"tools": [TOOL, {**TOOL, "inputSchema": {"type": "array"}}]})})

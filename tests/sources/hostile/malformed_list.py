"""Lists tools that the protocol does not allow beside one that it does."""

from base import TOOL, answer, serve

TOLD = {**TOOL, "name": "told", "description": 5}
TOOLS = [{**TOOL, "name": "of_a_list", "inputSchema": {"type": "array"}}, TOOL, {}, TOLD]
serve({"tools/list": lambda request: answer(request, {"tools": TOOLS})})

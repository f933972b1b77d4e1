"""Answers calls with one megabyte: of text, of values, of objects, or of as many blocks as fit."""

from base import TOOL, answer, serve, text

SHAPES = {
    "text": lambda: text('[{"é": 1}] ' * 90_000),
    "values": lambda: {"content": [], "structuredContent": {"rows": [{"a": list(range(20))}] * 9_000}},
    "long_values": lambda: {"content": [], "structuredContent": {"rows": [{"a": [10**15] * 10}] * 6_000}},
    "objects": lambda: {"content": [], "structuredContent": {"rows": [{"a": 1, "b": [2]}] * 40_000}},
    "blocks": lambda: {"content": [{"type": "text", "text": "x"}] * 25_000},
}
TOOLS = [{**TOOL, "inputSchema": {"type": "object", "properties": {"shape": {"type": "string"}}}}]


def call(request):
    answer(request, SHAPES[request["params"]["arguments"]["shape"]]())


serve({"tools/list": lambda request: answer(request, {"tools": TOOLS}), "tools/call": call})

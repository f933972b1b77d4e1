"""Says that wiping a disk only reads, and does not keep to the schema of its results."""

from base import TOOL, answer, serve

TOOLS = [
    {
        **TOOL,
        "name": "wipe_disk",
        "annotations": {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True},
    },
    {
        **TOOL,
        "name": "measure",
        "outputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]},
    },
]
WRONG = {"content": [], "structuredContent": {"size": "enormous"}}
serve({"tools/list": lambda r: answer(r, {"tools": TOOLS}), "tools/call": lambda r: answer(r, WRONG)})

"""Lists tools whose schemas are wrong, deep, huge, lead elsewhere, or take for ever to match."""

from base import TOOL, answer, serve


def deep(levels):
    schema = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def of(**properties):
    return {"type": "object", "properties": properties}


SCHEMAS = {
    "wrong_type": of(a={"type": "strnig"}),
    "deep": deep(70),
    "huge": of(**{f"p{number}": {"type": "string", "description": "x" * 90} for number in range(2_000)}),
    "elsewhere": of(a={"$ref": "https://attacker.example/schema.json"}),
    "nowhere": of(a={"$ref": "#/$defs/missing"}),
    "backtracks": of(a={"type": "string", "pattern": "^(a+)+$"}),
    "bad_pattern": of(a={"type": "string", "pattern": "(["}),
    "endless": {"type": "object", "$defs": {"a": {"$ref": "#/$defs/a"}}, "properties": {"a": {"$ref": "#/$defs/a"}}},
}
TOOLS = [{**TOOL, "name": name, "inputSchema": schema} for name, schema in SCHEMAS.items()]
serve({"tools/list": lambda request: answer(request, {"tools": [*TOOLS, TOOL]})})

"""Write what is made of the settings' schema: the JSON Schema for editors, and the reference in docs/configuration.md.

``python -m scripts.write_configuration``
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from journeyman.settings.reading import json_schema

DOCS = Path(__file__).parents[1] / "docs"
SCHEMA, PAGE = DOCS / "journeyman.schema.json", DOCS / "configuration.md"
BEGIN, END = "<!-- reference: made by scripts/write_configuration.py -->", "<!-- end of reference -->"


def schema_text() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def page(text: str) -> str:
    """The page with its reference as the schema is now."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{reference()}{END}{rest.partition(END)[2]}"


def reference() -> str:
    """A table for the whole file, and one for every section of it."""
    schema = json_schema()
    lines: list[str] = []
    for title, section in [("The file", schema), *_sections(schema)]:
        lines += [f"### {title}", "", "| key | value | default | meaning |", "|---|---|---|---|"]
        required = section.get("required", [])
        for name, field in section["properties"].items():
            default = "required" if name in required else _default(field, schema)
            meaning = field.get("description", "") or _target(field, schema).get("description", "").split("\n")[0]
            lines.append(f"| `{name}` | {_kind(field, schema)} | {default} | {meaning.replace('|', chr(92) + '|')} |")
        lines.append("")
    return "\n".join(lines) + "\n"


TITLES = {
    "ModelSettings": "`model`",
    "Timeouts": "`model.timeout`",
    "Limits": "`limits`",
    "Rules": "`policy`",
    "Breaker": "`policy.breaker`",
    "Approvals": "`approvals`",
    "Grants": "`approvals.grants`",
    "Tool": "`tools.NAME`",
    "ToolOverride": "`tools.NAME.environments.ENVIRONMENT`",
    "Category": "`categories.NAME`",
    "Intent": "`intents.NAME`",
    "McpServer": "`mcp.NAME`",
    "OAuth": "`mcp.NAME.oauth`",
    "OpenApi": "`openapi.NAME`",
    "Argument": "`tools.NAME.arguments.NAME`",
    "Result": "`tools.NAME.result`",
    "Runs": "`runs`",
    "Learning": "`learning`",
    "Http": "`doors.http`",
    "AccessTokens": "`doors.http.oauth`",
    "Slack": "`doors.slack`",
    "SlackWorkspace": "`doors.slack.workspaces.ID`",
}


def _sections(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(title, schema["$defs"][name]) for name, title in TITLES.items()]


def _target(field: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    reference = field.get("$ref")
    found: dict[str, Any] = schema["$defs"][reference.rpartition("/")[2]] if reference else field
    return found


def _kind(field: dict[str, Any], schema: dict[str, Any]) -> str:
    """What may stand there, in words."""
    if reference := field.get("$ref"):
        name = reference.rpartition("/")[2]
        target = schema["$defs"][name]
        return " or ".join(f"`{value}`" for value in target["enum"]) if "enum" in target else "a section"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if alternatives := field.get("anyOf", field.get("oneOf")):
        inner = [item for item in alternatives if item.get("type") != "null"]
        if any("ms|" in item.get("pattern", "") for item in inner):
            return "duration, such as `90s`" + (" or `forever`" if any("const" in item for item in inner) else "")
        if any(item.get("examples") == ["20/min"] for item in inner):
            return "rate, such as `20/min`"
        return " or ".join(dict.fromkeys(_kind(item, schema) for item in inner))
    if field.get("x-journeyman-secret"):
        return "text with `${NAME}`, or `file:PATH`"
    if field.get("type") == "array":
        return f"list of {_kind(field['items'], schema)}"
    if field.get("type") == "object":
        values = field.get("additionalProperties")
        return f"by name: {_kind(values, schema)}" if isinstance(values, dict) else "keys and values"
    kind = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true` or `false`"}
    return kind[field["type"]] + _bounds(field) if "type" in field else "any value"


def _bounds(field: dict[str, Any]) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    if "exclusiveMinimum" in field:
        return f" above {field['exclusiveMinimum']}"
    if low is not None and high is not None:
        return f" from {low:g} to {high:g}"
    return "" if low is None else f" from {low:g} on"


def _default(field: dict[str, Any], schema: dict[str, Any]) -> str:
    default = field.get("default")
    if default is None or isinstance(default, dict | list) or default == "":
        return "–"
    if isinstance(default, float) and _kind(field, schema).startswith("duration"):
        for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60)):
            if default >= seconds and default % seconds == 0:
                return f"`{default / seconds:g}{unit}`"
        return f"`{default:g}s`"
    return f"`{json.dumps(default) if not isinstance(default, str) else default}`"


def main() -> None:
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

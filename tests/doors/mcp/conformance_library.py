"""The tools that the MCP conformance suite calls, as ours. Which of its scenarios apply is in ``docs/mcp.md``."""

from __future__ import annotations

from typing import Any

from journeyman import RiskLevel, Tool, ToolContext, ToolError, ToolLibrary, ToolSpecification, tool

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
IMAGE = {"mime_type": "image/png", "bytes": 68, "data": PIXEL}


@tool(read_only=True)
def test_simple_text() -> str:
    """Tests simple text content."""
    return "This is a simple text response for testing."


@tool(read_only=True)
def test_image_content() -> dict[str, Any]:
    """Tests image content."""
    return {"media": [IMAGE]}


@tool(read_only=True)
def test_audio_content() -> dict[str, Any]:
    """Tests audio content."""
    return {"media": [{"mime_type": "audio/wav", "bytes": 44, "data": SILENCE}]}


@tool(read_only=True)
def test_embedded_resource() -> dict[str, Any]:
    """Tests an embedded resource."""
    return {"resources": [_resource("test://embedded-resource", "This is an embedded resource content.")]}


@tool(read_only=True)
def test_multiple_content_types() -> dict[str, Any]:
    """Tests several kinds of content at once."""
    resource = _resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
    return {"text": "Multiple content types test:", "media": [IMAGE], "resources": [resource]}


def _resource(uri: str, text: str, kind: str = "text/plain") -> dict[str, Any]:
    return {"uri": uri, "mime_type": kind, "text": text}


@tool(read_only=True)
def test_error_handling() -> str:
    """Tests how errors are answered."""
    raise ToolError("TEST_ERROR", "This tool intentionally returns an error for testing")


@tool(read_only=True)
def test_tool_with_progress(context: ToolContext) -> str:
    """Tests progress notifications."""
    for fraction in (0.0, 0.5, 1.0):
        context.progress(f"{fraction:.0%} done", fraction)
    return "done"


@tool(risk=RiskLevel.IRREVERSIBLE)
def test_elicitation(message: str) -> str:
    """Tests that a person is asked: no such call runs before somebody has agreed to it."""
    return f"User response: {message}"


def _asks(name: str) -> Tool[..., Any]:
    """A tool about which a person is asked."""

    def agreed() -> str:
        return "The user has agreed."

    return tool(agreed, name=name, description="Tests that a person is asked.", risk=RiskLevel.IRREVERSIBLE)


STATUS = ["active", "inactive", "pending"]
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": STATUS, "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": {"type": "string", "enum": STATUS},
    "titledSingle": {"type": "string", "oneOf": [{"const": "low", "title": "Low"}, {"const": "high", "title": "High"}]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["read", "write"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [{"const": "bug", "title": "Bug"}]}},
    "legacyEnum": {"type": "string", "enum": ["small", "large"], "enumNames": ["Small", "Large"]},
}
NAME = {"name": {"type": "string"}}
COLOUR = {"color": {"type": "string"}}


def _form(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _asking(name: str, *forms: dict[str, Any]) -> Tool[..., Any]:
    """A tool that asks the person, one form after the other, while it runs."""

    async def asking(context: ToolContext) -> str:
        answers = [await context.ask("Please say", _form(form)) for form in forms]
        return f"Elicitation completed: {answers}"

    return tool(asking, name=name, description="Tests that a tool asks the person.", read_only=True)


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
HEADERS = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "priority": {"type": "integer", "x-mcp-header": "Priority"},
    },
}


def _described(name: str, parameters: dict[str, Any]) -> Tool[..., Any]:
    specification = ToolSpecification(
        name=name, description="Tests what its schema says.", parameters=parameters, read_only=True
    )
    return Tool.from_specification(specification, lambda **values: values)


ASKING = (
    "test_streaming_elicitation",
    "test_input_required_result_capabilities",
    "test_input_required_result_tampered_state",
    "test_input_required_result_request_state",
)
library = ToolLibrary(
    [
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
        test_tool_with_progress,
        test_elicitation,
        test_simple_text.with_changes(name="test_logging_tool"),
        *map(_asks, ASKING),
        _asking("test_elicitation_sep1034_defaults", DEFAULTS),
        _asking("test_elicitation_sep1330_enums", ENUMS),
        _asking("test_input_required_result_elicitation", NAME),
        _asking("test_input_required_result_multi_round", NAME, COLOUR),
        _described("json_schema_2020_12_tool", SCHEMA),
        _described("test_custom_headers", HEADERS),
    ]
)

"""The server that the MCP conformance suite expects, written as a program of ours: its tools, resources and prompts.

``python -m scripts.mcp_conformance`` serves it. Which scenarios are left out is in ``docs/mcp.md``.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from journeyman import Tool, ToolContext, ToolError, ToolLibrary, ToolSpecification, prompt, resource, tool

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


@tool(read_only=True)
async def test_tool_with_logging(context: ToolContext) -> str:
    """Tests what is logged during a call."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if context.caller is not None:
            context.caller.log("info", text, "conformance")
        await asyncio.sleep(0.05)
    return "logged"


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
OK = {"ok": {"type": "boolean"}}
CONFIRM = {"confirm": {"type": "boolean"}}
USER = {"username": {"type": "string"}, "email": {"type": "string"}}
ROOTS = {"method": "roots/list", "params": {}}


def _form(message: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def _sample(text: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}


def _asking(name: str, *rounds: dict[str, Any], seconds: float = 0.0, task: str | None = None) -> Tool[..., Any]:
    """A tool that asks the client, one set of questions after the other, while it runs."""

    async def asking(context: ToolContext) -> str:
        answers = [await context.put(questions) for questions in rounds]
        await asyncio.sleep(seconds)
        return f"state-ok, completed: {answers}"

    metadata = {"task": task} if task else {}
    return tool(asking, name=name, description="Tests that a tool asks.", read_only=True, metadata=metadata)


@tool(read_only=True)
async def test_elicitation(message: str, context: ToolContext) -> str:
    """Tests that a person is asked."""
    return f"User response: {await context.put({'user': _form(message, USER)})}"


@tool(read_only=True)
async def test_sampling(prompt: str, context: ToolContext) -> str:
    """Tests that the client's model is asked."""
    return f"LLM response: {await context.put({'text': _sample(prompt)})}"


@tool(read_only=True)
async def test_input_required_result_capabilities(context: ToolContext) -> str:
    """Tests that a client is asked only what it answers."""
    try:
        return str(await context.put({"name": _form("What is your name?", NAME)}))
    except ToolError:
        return str(await context.put({"text": _sample("Write a name.")}))


@tool(read_only=True)
def test_trigger_tool_change() -> str:
    """Tests that clients hear of new tools."""
    library.register(test_simple_text.with_changes(name=f"test_added_{library.version}"))
    return "added"


@tool(read_only=True)
def test_trigger_prompt_change() -> str:
    """Tests that clients hear of new prompts."""
    library.register(test_simple_prompt.with_changes(name=f"test_added_{library.version}"))
    return "added"


# --- tasks


@tool(read_only=True)
def greet(name: str) -> str:
    """Greets."""
    return f"Hello, {name}!"


@tool(read_only=True, metadata={"task": "always"}, timeout_seconds=120)
async def slow_compute(seconds: float, label: str = "") -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return f"computed {label}"


@tool(metadata={"task": "required"}, risk="reversible")
async def failing_job() -> str:
    """Fails after a while."""
    await asyncio.sleep(2.5)
    raise ToolError("FAILED", "the job has failed")


@tool(metadata={"task": "always"}, risk="reversible")
def protocol_error_job() -> str:
    """Breaks."""
    raise RuntimeError("the server has a fault")


@tool(read_only=True, metadata={"task": "always"})
async def confirm_delete(filename: str, context: ToolContext) -> str:
    """Asks before it deletes."""
    return f"{filename}: {await context.put({'confirm': _form(f'Delete {filename}?', CONFIRM)})}"


# --- resources and prompts


@resource("test://static-text")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PIXEL)


@resource("test://template/{id}/data")
def templated(id: str) -> dict[str, Any]:
    """Made of its address."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@resource("test://watched-resource")
def watched() -> str:
    """One to subscribe to."""
    return "watched"


@prompt
def test_simple_prompt() -> str:
    """A simple prompt."""
    return "This is a simple prompt for testing."


@prompt(complete={"arg1": lambda value: [f"{value}ing", f"{value}ed"]})
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803  # the suite's name
    """A prompt with a resource in it."""
    embedded = {"resources": [_resource(resourceUri, "Embedded resource content for testing.")]}
    return [{"role": "user", "content": embedded}, "Please process the embedded resource above."]


@prompt
def test_prompt_with_image() -> list[Any]:
    """A prompt with a picture in it."""
    return [{"role": "user", "content": {"media": [IMAGE]}}, "Please analyze the image above."]


@prompt
async def test_input_required_result_prompt(context: ToolContext) -> str:
    """A prompt that asks first."""
    found = await context.put({"user_context": _form("What context?", {"context": {"type": "string"}})})
    return f"Work with {found}."


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


NAMED = {"user_name": _form("What is your name?", NAME)}
EVERYTHING = {**NAMED, "greeting": _sample("Generate a greeting"), "client_roots": ROOTS}
BOTH = {"first": _form("First?", NAME), "second": _form("Second?", NAME)}
MRTR = "test_input_required_result"
library = ToolLibrary(
    [
        test_simple_text,
        test_image_content,
        test_audio_content,
        test_embedded_resource,
        test_multiple_content_types,
        test_error_handling,
        test_tool_with_progress,
        test_tool_with_logging,
        test_tool_with_logging.with_changes(name="test_logging_tool"),
        test_elicitation,
        test_sampling,
        test_input_required_result_capabilities,
        test_trigger_tool_change,
        test_trigger_prompt_change,
        _asking("test_elicitation_sep1034_defaults", {"form": _form("Please say", DEFAULTS)}),
        _asking("test_elicitation_sep1330_enums", {"form": _form("Please say", ENUMS)}),
        _asking("test_streaming_elicitation", NAMED),
        _asking("test_missing_capability", {"text": _sample("Write.")}),
        _asking(f"{MRTR}_elicitation", NAMED),
        _asking(f"{MRTR}_sampling", {"capital_question": _sample("What is the capital of France?")}),
        _asking(f"{MRTR}_list_roots", {"client_roots": ROOTS}),
        _asking(f"{MRTR}_multiple_inputs", EVERYTHING),
        _asking(f"{MRTR}_multi_round", {"step1": _form("Step 1?", NAME)}, {"step2": _form("Step 2?", COLOUR)}),
        _asking(f"{MRTR}_request_state", {"confirm": _form("Please confirm", OK)}),
        _asking(f"{MRTR}_tampered_state", {"confirm": _form("Please confirm", OK)}),
        _described("json_schema_2020_12_tool", SCHEMA),
        _described("test_custom_headers", HEADERS),
        greet,
        slow_compute,
        failing_job,
        protocol_error_job,
        confirm_delete,
        _asking("multi_input", BOTH, task="always"),
        _asking("test_tool_with_task", NAMED, seconds=2.5, task="required"),
        static_text,
        static_binary,
        templated,
        watched,
        test_simple_prompt,
        test_prompt_with_arguments,
        test_prompt_with_embedded_resource,
        test_prompt_with_image,
        test_input_required_result_prompt,
    ]
)

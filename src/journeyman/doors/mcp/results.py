"""What became of a call, as the protocol has it: content for every client, and the structure where there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import mcp_types as types
from pydantic_core import to_json

from journeyman.core.calls import ToolCallRecord

LONGEST_TEXT = 1_000_000
"""Characters of one result; the whole is in the run's record."""
_LISTS = frozenset({"media", "resources", "links"})
_PARTS = _LISTS | {"text", "structured"}
Look: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Looks up what is kept apart, by its id."""


async def success(value: Any, look_up: Look, *, declared: bool) -> types.CallToolResult:
    """A result as content. Its media become images, sounds and files again.

    Where the tool has ``declared`` an object as its result, clients insist on one.
    """
    if not isinstance(value, dict):
        text = value if isinstance(value, str) else to_json(value).decode()
        return types.CallToolResult(content=[_text(text)])
    if not _has_parts(value):
        return types.CallToolResult(content=[_text(to_json(value).decode())], structured_content=value)
    content: list[types.ContentBlock] = []
    if isinstance(said := value.get("text"), str):
        content.append(_text(said))
    content += [await _medium(item, look_up) for item in value.get("media", ())]
    content += [_embedded(item) for item in value.get("resources", ())]
    content += [types.ResourceLink(**item) for item in value.get("links", ())]
    structured = value.get("structured")
    if not isinstance(structured, dict):
        media = [{key: held for key, held in item.items() if key != "data"} for item in value.get("media", ())]
        structured = value | ({"media": media} if media else {}) if declared else None
    return types.CallToolResult(content=content, structured_content=structured)


def _has_parts(value: dict[str, Any]) -> bool:
    """Whether a result is made of parts, as a source of MCP tools makes them."""
    if not set(value) <= _PARTS or not (set(value) & _LISTS):
        return False
    return all(isinstance(items := value.get(name, []), list) and all(map(_is_part, items)) for name in _LISTS)


def _is_part(item: Any) -> bool:
    return isinstance(item, dict) and ("mime_type" in item or "uri" in item)


async def _medium(item: dict[str, Any], look_up: Look) -> types.ContentBlock:
    data, kind = item.get("data"), str(item["mime_type"])
    if data is None and "artifact" in item:
        data = await look_up(item["artifact"])
    if data is None:
        return _text(f"[{kind}, {item.get('bytes', '?')} bytes, is not kept any more]")
    if "uri" not in item and kind.startswith("image/"):
        return types.ImageContent(data=data, mime_type=kind)
    if "uri" not in item and kind.startswith("audio/"):
        return types.AudioContent(data=data, mime_type=kind)
    blob = types.BlobResourceContents(uri=item.get("uri", "attachment:result"), mime_type=kind, blob=data)
    return types.EmbeddedResource(resource=blob)


def _embedded(item: dict[str, Any]) -> types.ContentBlock:
    contents = types.TextResourceContents(uri=item["uri"], mime_type=item.get("mime_type"), text=item["text"])
    return types.EmbeddedResource(resource=contents)


def failure(text: str) -> types.CallToolResult:
    """Something that a model should read and act on."""
    return types.CallToolResult(content=[_text(text)], is_error=True)


def refusal(record: ToolCallRecord) -> types.CallToolResult:
    """A call that did not succeed, with what to do about it."""
    error = record.error
    assert error is not None
    lines = [f"{error.code}: {error.message}"]
    if error.recover_action:
        lines.append(error.recover_action)
    return failure("\n".join(lines))


def _text(text: str) -> types.TextContent:
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}\n… [{len(text) - LONGEST_TEXT:,} characters more are in the run's record]"
    return types.TextContent(text=text)

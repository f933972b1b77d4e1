"""What an MCP server gives back, as plain JSON: text as text, structure as it is, images and other media apart.

A result with media is an object with a list ``media``; each entry says its ``mime_type``, its size in ``bytes`` and its
``data`` in base64. Models are told of kind and size only, and stores keep large data apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mcp_types as types

from journeyman.core.errors import ToolError
from journeyman.core.visible import visible

_LONGEST_ERROR = 4_000


def value_of(result: types.CallToolResult) -> Any:
    """The result of a tool. Raises ToolError where the tool says that it failed."""
    if result.is_error:
        text = visible(_texts(result.content)[:_LONGEST_ERROR]).strip()
        raise ToolError("MCP_TOOL_FAILED", text or "the tool failed and did not say why")
    parts = _Parts()
    for block in result.content:
        parts.add(block)
    return parts.value(result.structured_content)


def resource_value(result: types.ReadResourceResult) -> Any:
    """The contents of a resource."""
    parts = _Parts()
    for item in result.contents:
        parts.add_contents(item, named=len(result.contents) > 1)
    return parts.value(None)


def prompt_value(result: types.GetPromptResult) -> Any:
    """A prompt as the messages it consists of."""
    messages = []
    for message in result.messages:
        parts = _Parts()
        parts.add(message.content)
        messages.append({"role": message.role, "content": parts.value(None)})
    return {"description": result.description, "messages": messages} if result.description else {"messages": messages}


def _texts(content: Iterable[Any]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, types.TextContent))


class _Parts:
    """Collects blocks by their kinds."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._media: list[dict[str, Any]] = []
        self._links: list[dict[str, Any]] = []
        self._resources: list[dict[str, Any]] = []

    def add(self, block: Any) -> None:
        match block:
            case types.TextContent(text=text):
                self._texts.append(text)
            case types.ImageContent(data=data, mime_type=kind) | types.AudioContent(data=data, mime_type=kind):
                self._media.append(_medium(kind, data))
            case types.EmbeddedResource(resource=contents):
                self.add_contents(contents, named=True)
            case types.ResourceLink():
                told = {"uri": str(block.uri), "name": block.name, "mime_type": block.mime_type}
                self._links.append({key: value for key, value in told.items() if value is not None})

    def add_contents(self, contents: Any, *, named: bool) -> None:
        uri = str(contents.uri)
        if isinstance(contents, types.TextResourceContents):
            if named:
                told = {"uri": uri, "mime_type": contents.mime_type, "text": contents.text}
                self._resources.append({key: value for key, value in told.items() if value is not None})
            else:
                self._texts.append(contents.text)
        else:
            kind = contents.mime_type or "application/octet-stream"
            self._media.append({"uri": uri, **_medium(kind, contents.blob)})

    def value(self, structured: Any) -> Any:
        text = "\n".join(self._texts)
        if not (self._media or self._links or self._resources):
            # Servers repeat what is structured as text, for clients that know no structure.
            return text if structured is None else structured
        parts = {
            "structured": structured,
            "text": text or None,
            "resources": self._resources,
            "links": self._links,
            "media": self._media,
        }
        return {key: value for key, value in parts.items() if value not in (None, [])}


def _medium(kind: str, data: str) -> dict[str, Any]:
    # Three bytes are four characters; the last of them may be padding.
    return {"mime_type": kind, "bytes": len(data) * 3 // 4 - data[-2:].count("="), "data": data}

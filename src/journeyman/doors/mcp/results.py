"""What became of a call, as the protocol has it: content for every client, and the structure where there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic_core import to_json

from journeyman.core.calls import ToolCallRecord
from journeyman.core.content import Medium

LONGEST_TEXT = 1_000_000
"""Characters of one result; the whole is in the run's record."""
_LISTS = frozenset({"media", "resources", "links"})
_PARTS = _LISTS | {"text", "structured", "order"}
_ORDER = ("text", "media", "resources", "links")
Look: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Looks up what is kept apart, by its id."""


async def success(
    value: Any, look_up: Look, *, declared: bool, foreign: bool = False, media: Sequence[Medium] = ()
) -> types.CallToolResult:
    """A result as content. Its media become images, sounds and files again; ``media`` are those in any place of it.

    Where the tool has ``declared`` an object as its result, clients insist on one. One of a ``foreign`` server's that
    has nothing but a ``result`` says the same as text.
    """
    if not isinstance(value, dict) or not _has_parts(value):
        structure = value if isinstance(value, dict) else None
        only = value["result"] if foreign and structure is not None and structure.keys() == {"result"} else value
        text = only if isinstance(only, str) else to_json(only).decode()
        shown = [await _medium(item.model_dump(), look_up) for item in media]
        return types.CallToolResult(content=[_text(text), *shown], structured_content=structure)
    content = await blocks(value, look_up)
    structured = value.get("structured")
    if not isinstance(structured, dict):
        plain = [{key: held for key, held in item.items() if key != "data"} for item in value.get("media", ())]
        structured = value | ({"media": plain} if plain else {}) if declared else None
    return types.CallToolResult(content=content, structured_content=structured)


async def blocks(value: Any, look_up: Look) -> list[types.ContentBlock]:
    """The blocks of a result that is made of parts, in the order in which they came."""
    value = {"media": [value]} if _is_medium(value) else value
    if not isinstance(value, dict) or not _has_parts(value):
        return [_text(value if isinstance(value, str) else to_json(value).decode())]
    made: dict[str, list[types.ContentBlock]] = {
        "media": [await _medium(item, look_up) for item in value.get("media", ())],
        "resources": [
            types.EmbeddedResource(
                resource=types.TextResourceContents(uri=it["uri"], mime_type=it.get("mime_type"), text=it["text"])
            )
            for it in value.get("resources", ())
        ],
        "links": [types.ResourceLink(**item) for item in value.get("links", ())],
    }
    text = value.get("text")
    order = value.get("order")
    if order is None:
        return [*([_text(text)] if isinstance(text, str) else []), *(block for each in made.values() for block in each)]
    ordered: list[types.ContentBlock] = []
    for each in order:
        if each["kind"] == "text":
            piece, text = (text or "")[: each["chars"]], (text or "")[each["chars"] + 1 :]
            block: types.ContentBlock = _text(piece)
        else:
            block = made[each["kind"]].pop(0)
        more = {key: each[key] for key in ("annotations", "meta") if key in each}
        if "annotations" in more:
            more["annotations"] = types.Annotations.model_validate(more["annotations"], by_name=True)
        ordered.append(block.model_copy(update=more))
    return ordered


async def contents(
    value: Any, look_up: Look, *, uri: str, kind: str | None, binary: bool = False
) -> types.ReadResourceResult:
    """What was read of a resource, as it was; a picture, a file or bytes of ours under its address."""
    if binary:  # bytes are kept in the alphabet for addresses
        value = {"mime_type": kind, "bytes": 0, "data": str(value).replace("-", "+").replace("_", "/")}
    if _is_medium(value):
        value = {"media": [{**value, "uri": uri}]}
    if isinstance(value, dict) and _has_parts(value):
        read = [block.resource for block in await blocks(value, look_up) if isinstance(block, types.EmbeddedResource)]
        return types.ReadResourceResult(contents=read)
    plain = isinstance(value, str)
    kind, text = kind or ("text/plain" if plain else "application/json"), value if plain else to_json(value).decode()
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])


async def prompt(value: Any, look_up: Look) -> types.GetPromptResult:
    """A prompt as the messages it consists of; a text is what the user says."""
    whole = value if isinstance(value, dict) and "messages" in value else {"messages": value}
    given = whole["messages"] if isinstance(whole["messages"], list) else [whole["messages"]]
    try:
        messages = [
            types.PromptMessage(role=message["role"], content=block)
            for message in (each if isinstance(each, dict) else {"role": "user", "content": each} for each in given)
            for block in await blocks(message["content"], look_up)
        ]
    except (KeyError, ValueError) as error:
        why = "a prompt is a text or a list of messages {'role': 'user' or 'assistant', 'content': …}"
        raise MCPError(types.INTERNAL_ERROR, f"the prompt's function returned something else: {why}") from error
    return types.GetPromptResult(description=whole.get("description"), messages=messages)


def _has_parts(value: dict[str, Any]) -> bool:
    """Whether a result is made of parts, as a source of MCP tools makes them."""
    order = value.get("order", [])
    if not set(value) <= _PARTS or not (
        set(value) & (_LISTS | {"order"} | ({"structured"} if "text" in value else set()))
    ):
        return False
    if not isinstance(order, list) or not all(isinstance(each, dict) and each.get("kind") in _ORDER for each in order):
        return False
    lists = [value.get(name, []) for name in _LISTS]
    return all(isinstance(items, list) for items in lists) and all(
        isinstance(item, dict) and ("mime_type" in item or "uri" in item) for items in lists for item in items
    )


def _is_medium(value: Any) -> bool:
    """Whether it is nothing but a picture, a sound or a file."""
    return isinstance(value, dict) and {"mime_type", "bytes"} <= value.keys() <= Medium.model_fields.keys()


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
    uri = item.get("uri", f"attachment:{quote(item.get('name') or 'result')}")
    blob = types.BlobResourceContents(uri=uri, mime_type=kind, blob=data)
    return types.EmbeddedResource(resource=blob)


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

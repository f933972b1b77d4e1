"""Our messages and tools as the bytes of the chat-completions format. Answers are read in ``answer``; no HTTP here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from journeyman.core.content import MediaKind, Medium
from journeyman.core.runs import Message, Role, ToolCall
from journeyman.core.specification import ToolSpecification, name_for_models
from journeyman.core.words import patterns


@lru_cache(4_096)
def is_safe_name(name: str) -> bool:
    """Whether providers accept it for a tool."""
    return name_for_models(name) == name


def media_of(name: str) -> tuple[MediaKind, ...]:
    """What a model takes besides text, as far as its name tells."""
    known: dict[Any, re.Pattern[str]] = patterns("journeyman.models", "media.txt")
    return ("audio",) if "-audio" in name.lower() else tuple(kind for kind in known if known[kind].search(name))


MALFORMED_SHOWN = 200
NO_IDS: Mapping[str, str] = {}
FUNCTIONS_KEPT = 2_000
_FUNCTIONS: dict[int, tuple[ToolSpecification, str, bytes]] = {}
"""By identity, which holding the specification keeps from passing to another."""


@dataclass(frozen=True, slots=True)
class EncodedTools:
    """A set of tools, encoded once."""

    tools: tuple[ToolSpecification, ...]
    """Held so that its identity, by which the offer is found again, cannot pass to another tuple."""
    encoded: bytes
    aliases: Mapping[str, str]
    """Our name to the provider's, where the provider would refuse ours."""
    names: Mapping[str, str]
    """The way back."""
    key: tuple[tuple[str, str], ...]
    """Two offers with equal keys write the same history in the same way."""


def make_offer(tools: tuple[ToolSpecification, ...]) -> EncodedTools:
    names = [tool.name for tool in tools]
    aliases = alias_names(names)
    encoded = b",".join(map(_function, tools, [aliases.get(name, name) for name in names] if aliases else names))
    return EncodedTools(
        tools=tools,
        encoded=b',"tools":[' + encoded + b"]" if tools else b"",
        aliases=aliases,
        names={alias: name for name, alias in aliases.items()},
        key=tuple(aliases.items()),
    )


def _function(tool: ToolSpecification, name: str) -> bytes:
    """A tool, encoded once: of many tools, each run offers others."""
    if (known := _FUNCTIONS.get(id(tool))) is not None and known[0] is tool and known[1] == name:
        return known[2]
    if len(_FUNCTIONS) >= FUNCTIONS_KEPT:
        _FUNCTIONS.clear()
    about = {"name": name, "description": tool.description_for_models, "parameters": tool.parameters}
    encoded = encode({"type": "function", "function": about})
    _FUNCTIONS[id(tool)] = tool, name, encoded
    return encoded


def alias_names(names: Iterable[str]) -> dict[str, str]:
    """A safe name, unique among all of them, for each name that is not safe itself."""
    names = tuple(names)
    taken = set(filter(is_safe_name, names))
    aliases: dict[str, str] = {}
    for name in names if len(taken) < len(names) else ():
        if name in taken or name in aliases:
            continue
        alias, number = name_for_models(name), 2
        while alias in taken:
            alias, number = f"{name_for_models(name)[:60]}_{number}", number + 1
        taken.add(alias)
        aliases[name] = alias
    return aliases


def encode_messages(
    messages: Sequence[Message], offer: EncodedTools, memo: dict[Any, Any], call_ids: Mapping[str, str] = NO_IDS
) -> bytes:
    """The elements of the messages array. A conversation that only grew is encoded from where it grew."""
    last = memo.get(offer.key)
    known, text = last if last is not None else ([], b"")
    if not _begins_with(messages, known):
        known, text = [], b""
    new = [encode(item) for item in _wire_messages(messages[len(known) :], offer.aliases, call_ids)]
    text = b",".join([text, *new] if text else new)
    memo[offer.key] = (messages, text)
    return text


def _wire_messages(
    messages: Sequence[Message], aliases: Mapping[str, str], call_ids: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """The messages one by one. Tools may answer with text alone: their media follow when all have answered."""
    held: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        yield wire_message(message, aliases, call_ids)
        if message.role is not Role.FUNCTION:
            continue
        for medium in message.media:
            caption = medium.words(f"part of the result of {message.name}, and nothing that the user said")
            held += [{"type": "text", "text": caption}, _part(medium)]
        if held and (at + 1 == len(messages) or messages[at + 1].role is not Role.FUNCTION):
            yield {"role": "user", "content": held}
            held = []


def _part(medium: Medium) -> dict[str, Any]:
    if medium.kind == "image":
        return {"type": "image_url", "image_url": {"url": medium.url}}
    if medium.kind == "audio":
        form = medium.mime_type.partition("/")[2]
        return {"type": "input_audio", "input_audio": {"data": medium.data, "format": _AUDIO.get(form, form)}}
    return {"type": "file", "file": {"filename": medium.name or "document", "file_data": medium.url}}


_AUDIO = {"mpeg": "mp3"}


def _begins_with(messages: Sequence[Message], known: Sequence[Message]) -> bool:
    """Whether a conversation continues a known one. A window that has moved on shows at both ends."""
    count = len(known)
    if not 0 < count <= len(messages):
        return count == 0
    second = min(1, count - 1)
    return messages[count - 1] is known[count - 1] and messages[second] is known[second] and messages[0] is known[0]


def wire_message(message: Message, aliases: Mapping[str, str], call_ids: Mapping[str, str] = NO_IDS) -> dict[str, Any]:
    """``call_ids`` holds what the server itself calls some of our calls."""
    if message.role is Role.FUNCTION:
        call_id = message.call_id or ""
        return {"role": "tool", "tool_call_id": call_ids.get(call_id, call_id), "content": message.content}
    if message.calls:
        calls = [wire_call(call, aliases, call_ids) for call in message.calls]
        returned = {} if message.returned is None else message.returned.get("chat_completions", {})
        return {"role": "assistant", "content": message.content or None, "tool_calls": calls, **returned}
    if message.media:
        parts = [{"type": "text", "text": message.content}, *map(_part, message.media)]
        return {"role": message.role.value, "content": parts}
    return {"role": message.role.value, "content": message.content}


def wire_call(call: ToolCall, aliases: Mapping[str, str], call_ids: Mapping[str, str] = NO_IDS) -> dict[str, Any]:
    # Providers refuse a history whose arguments are not JSON, so a malformed call is quoted.
    quoted = None if call.malformed is None else {"malformed_arguments": call.malformed[:MALFORMED_SHOWN]}
    arguments = encode(call.arguments if quoted is None else quoted).decode()
    name = aliases.get(call.tool_name) or name_for_models(call.tool_name)
    function = {"name": name, "arguments": arguments}
    return {"id": call_ids.get(call.id, call.id), "type": "function", "function": function}


def encode(value: Any) -> bytes:
    """JSON that every server can read: no NaN, no lone surrogates."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")

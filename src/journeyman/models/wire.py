"""Our messages and tools as the bytes of the chat-completions format. Answers are read in ``answer``; no HTTP here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from journeyman.core.messages import Message, Role, ToolCall
from journeyman.core.specification import ToolSpecification

is_safe_name = re.compile(r"[a-zA-Z0-9_-]{1,64}").fullmatch
"""The names that providers accept for a tool."""

MALFORMED_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Offer:
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


def make_offer(tools: tuple[ToolSpecification, ...]) -> Offer:
    aliases = alias_names(tool.name for tool in tools)
    encoded = b",".join(
        encode(
            {
                "type": "function",
                "function": {
                    "name": aliases.get(tool.name, tool.name),
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
        )
        for tool in tools
    )
    return Offer(
        tools=tools,
        encoded=b',"tools":[' + encoded + b"]" if tools else b"",
        aliases=aliases,
        names={alias: name for name, alias in aliases.items()},
        key=tuple(aliases.items()),
    )


def alias_names(names: Iterable[str]) -> dict[str, str]:
    """A safe name, unique among all of them, for each name that is not safe itself."""
    names = tuple(names)
    taken = {name for name in names if is_safe_name(name)}
    aliases: dict[str, str] = {}
    for name in names:
        if name in taken or name in aliases:
            continue
        alias, number = safe_name(name), 2
        while alias in taken:
            alias, number = f"{safe_name(name)[:60]}_{number}", number + 1
        taken.add(alias)
        aliases[name] = alias
    return aliases


def safe_name(name: str) -> str:
    """The nearest name that providers accept; not necessarily unique."""
    return name if is_safe_name(name) else re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def encode_messages(messages: Sequence[Message], offer: Offer, memo: dict[Any, Any]) -> bytes:
    """The elements of the messages array. A conversation that only grew is encoded from where it grew."""
    last = memo.get(offer.key)
    known, text = last if last is not None else ([], b"")
    if not _begins_with(messages, known):
        known, text = [], b""
    new = [encode(wire_message(message, offer.aliases)) for message in messages[len(known) :]]
    text = b",".join([text, *new] if text else new)
    memo[offer.key] = (messages, text)
    return text


def _begins_with(messages: Sequence[Message], known: Sequence[Message]) -> bool:
    """Whether a conversation continues a known one. A window that has moved on shows at both ends."""
    count = len(known)
    if not 0 < count <= len(messages):
        return count == 0
    second = min(1, count - 1)
    return messages[count - 1] is known[count - 1] and messages[second] is known[second] and messages[0] is known[0]


def wire_message(message: Message, aliases: Mapping[str, str]) -> dict[str, Any]:
    if message.role is Role.FUNCTION:
        return {"role": "tool", "tool_call_id": message.call_id or "", "content": message.content}
    if message.calls:
        calls = [wire_call(call, aliases) for call in message.calls]
        return {"role": "assistant", "content": message.content or None, "tool_calls": calls}
    return {"role": message.role.value, "content": message.content}


def wire_call(call: ToolCall, aliases: Mapping[str, str]) -> dict[str, Any]:
    # Providers refuse a history whose arguments are not JSON, so a malformed call is quoted.
    quoted = None if call.malformed is None else {"malformed_arguments": call.malformed[:MALFORMED_SHOWN]}
    arguments = encode(call.arguments if quoted is None else quoted).decode()
    name = aliases.get(call.tool_name) or safe_name(call.tool_name)
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}


def encode(value: Any) -> bytes:
    """JSON that every server can read: no NaN, no lone surrogates."""
    try:
        return to_json(value, inf_nan_mode="null")
    except PydanticSerializationError:
        return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace")

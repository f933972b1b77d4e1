"""What is taken from an MCP server: messages of bounded size and shape, and so many a second that nobody asked for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from mcp_types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic_core import from_json

from journeyman.core.data import MCP_CONTAINERS, MCP_ITEMS, MCP_UNASKED, MCP_VALUES, too_many

UNREADABLE = -32090
"""In the place of an answer that is malformed or over a budget. The server has answered, so the request took effect."""
UNREACHABLE = -32091
"""In the place of an answer where the request was not sent."""
LOST = -32092
"""In the place of an answer that can no longer come, although the request may have been received."""

LIST_CHANGED = "notifications/tools/list_changed"
_ENDS = 400
"""How much of the beginning and of the end of an unreadable message is searched for the id it answers."""
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,9})\b')


@dataclass(slots=True)
class Unreadable:
    """A message that is not parsed: too large, or no JSON-RPC. Holds its two ends."""

    why: str
    head: bytes
    tail: bytes

    @classmethod
    def of(cls, line: bytes, why: str) -> Unreadable:
        return cls(why, line[:_ENDS], line[-_ENDS:])

    def as_answer(self) -> JSONRPCError | None:
        """An error for the request that it answers, so that nobody waits; None where it names none."""
        match = _ID.search(self.head) or next(iter(_ID.findall(self.tail)[-1:]), None)
        if match is None:
            return None
        number = int(match if isinstance(match, bytes) else match[1])
        return refusal(number, self.why)


def refusal(request_id: int | str | None, why: str, code: int = UNREADABLE) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=why))


def parsed(line: bytes) -> JSONRPCMessage | Unreadable:
    """One message from its JSON text."""
    if len(line) > MCP_CONTAINERS and (over := too_many(line, containers=MCP_CONTAINERS, values=MCP_VALUES)):
        return Unreadable.of(line, f"sent a message that has more than {over}")
    try:
        raw = from_json(line, allow_inf_nan=False)
        if isinstance(raw, dict) and raw.get("jsonrpc") == "2.0" and "method" not in raw and "error" not in raw:
            request_id, result = raw.get("id"), raw.get("result")
            if isinstance(request_id, int | str) and type(request_id) is not bool and isinstance(result, dict):
                # Validating it would copy it; whoever asked validates the result.
                return JSONRPCResponse.model_construct(jsonrpc="2.0", id=request_id, result=result)
        return jsonrpc_message_adapter.validate_python(raw, by_name=False)
    except ValueError:  # pydantic's text quotes the message, which may hold anything
        return Unreadable.of(line, "sent a message that is not valid JSON-RPC")


@dataclass(slots=True)
class Guard:
    """Looks at each message before the protocol's own code does."""

    on_list_changed: Callable[[], None]
    dropped: int = 0
    """Notifications and requests beyond the budget."""
    leaving_out: Collection[object] = frozenset()
    """Of the next list of tools, by their numbers: what the protocol does not allow."""
    left_out: list[tuple[int, Any]] = field(default_factory=list)
    _second: float = field(default=0.0)
    _unasked: int = field(default=0)

    def admitted(self, message: JSONRPCMessage) -> JSONRPCMessage | None:
        """The message, an error in its place, or None where it is dropped."""
        match message:
            case JSONRPCResponse(id=request_id, result=result):
                for name, held in result.items():
                    if isinstance(held, list) and len(held) > MCP_ITEMS:
                        why = f"sent {len(held):,} entries under {name!r}, and at most {MCP_ITEMS:,} are taken"
                        return refusal(request_id, why)
                if self.leaving_out and isinstance(tools := result.get("tools"), list):
                    self.left_out = [entry for entry in enumerate(tools) if entry[0] in self.leaving_out]
                    result["tools"] = [item for number, item in enumerate(tools) if number not in self.leaving_out]
                return message
            case JSONRPCNotification(method=method):
                if method == LIST_CHANGED:
                    self.on_list_changed()  # the one that must not be lost in a flood
                return message if self._in_budget() else None
            case JSONRPCRequest():
                return message if self._in_budget() else None
            case _:
                return message

    def _in_budget(self) -> bool:
        now = time.monotonic()
        if now - self._second >= 1.0:
            self._second, self._unasked = now, 0
        self._unasked += 1
        if self._unasked <= MCP_UNASKED:
            return True
        self.dropped += 1
        return False

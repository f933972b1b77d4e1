"""A script in the place of a model, for trying things out: it follows a demonstration, and guesses without one."""

import json
import re
from collections.abc import Sequence
from typing import Any

from journeyman.core.playbook import DEMONSTRATION
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.core.runs import Message, Role, ToolCall

_MARK = re.compile(r"⟦([^⟧]*)⟧")


class Pretender:
    """Carries out the calls of the last demonstration with values of its own task, found by their names."""

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        at = max(number for number, message in enumerate(request.messages) if _asks(message))
        task, before, since = request.messages[at], request.messages[:at], request.messages[at + 1 :]
        shown = [call for message in _last_demonstration(before) for call in message.calls]
        made = sum(len(message.calls) for message in since)
        if made < len(shown):
            known = _values(_demonstrated(before), task.content)
            for message in since:
                if message.role is Role.FUNCTION:
                    known |= _fields(message.content)
            arguments = {name: _filled(value, known) for name, value in shown[made].arguments.items()}
            return ModelResponse(calls=(ToolCall(tool_name=shown[made].tool_name, arguments=arguments),))
        if not shown and not since:
            return ModelResponse(calls=(ToolCall(tool_name="delete_event", arguments={"event_id": "12345678"}),))
        return ModelResponse(text="It is done.")


def _asks(message: Message) -> bool:
    return message.role is Role.USER and message.name is None and not message.content.startswith("No tool")


def _demonstrated(messages: Sequence[Message]) -> str:
    return next((item.content for item in reversed(messages) if item.name == DEMONSTRATION), "")


def _last_demonstration(messages: Sequence[Message]) -> Sequence[Message]:
    starts = [number for number, message in enumerate(messages) if message.name == DEMONSTRATION]
    return messages[starts[-1] :] if starts else ()


def _values(pattern: str, text: str) -> dict[str, str]:
    """What stands in a request where a demonstration's request has placeholders."""
    names = _MARK.findall(pattern)
    pieces = [re.escape(piece) for piece in _MARK.split(pattern)[::2]]
    found = re.fullmatch("(.+?)".join(pieces), text)
    return dict(zip(names, found.groups(), strict=True)) if found else {}


def _fields(content: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    row = value[0] if isinstance(value, list) and value else value
    return dict(row) if isinstance(row, dict) else {}


def _filled(value: Any, known: dict[str, Any]) -> Any:
    if isinstance(value, str) and (found := _MARK.fullmatch(value)):
        return known.get(found[1], value)
    return value

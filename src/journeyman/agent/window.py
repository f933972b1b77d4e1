"""How much of a conversation a model is sent."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.messages import Message, Role


def window(messages: Sequence[Message], *, limit: int | None, task_at: int) -> Sequence[Message]:
    """The latest messages, at most ``limit``, with the task's own message always among them.

    A call is never split from its result: where the cut would fall between them, both are left out. Only a last
    turn that is larger than the limit by itself is sent whole.
    """
    if limit is None or len(messages) <= limit:
        return messages
    start = len(messages) - limit
    if start > task_at:
        start += 1  # room for the task's message
    cut = start
    while cut < len(messages) and messages[cut].role is Role.FUNCTION:
        cut += 1
    if cut == len(messages):
        while cut > 0 and (cut == len(messages) or messages[cut].role is Role.FUNCTION):
            cut -= 1
    if cut <= task_at:
        return messages[cut:]
    return [messages[task_at], *messages[cut:]]

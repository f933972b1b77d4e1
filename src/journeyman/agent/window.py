"""How much of a conversation a model is sent."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.messages import Message, Role


def window(
    messages: Sequence[Message], *, limit: int | None, task_at: int, before_task: Sequence[Message] = ()
) -> Sequence[Message]:
    """The latest messages, at most ``limit``, with the task's own message always among them.

    A call is never split from its result: where the cut would fall between them, both are left out. Only a last
    turn that is larger than the limit by itself is sent whole. ``before_task`` is put before the task's message and
    does not count.
    """
    cut = _cut(messages, limit=limit, task_at=task_at)
    if not before_task:
        if cut == 0:
            return messages
        return messages[cut:] if cut <= task_at else [messages[task_at], *messages[cut:]]
    return [*messages[cut:task_at], *before_task, messages[task_at], *messages[max(cut, task_at + 1) :]]


def _cut(messages: Sequence[Message], *, limit: int | None, task_at: int) -> int:
    """The index of the first message that is sent; the task's may stand before it."""
    if limit is None or len(messages) <= limit:
        return 0
    start = len(messages) - limit
    if start > task_at:
        start += 1  # room for the task's message
    cut = start
    while cut < len(messages) and messages[cut].role is Role.FUNCTION:
        cut += 1
    if cut == len(messages):
        while cut > 0 and (cut == len(messages) or messages[cut].role is Role.FUNCTION):
            cut -= 1
    return cut

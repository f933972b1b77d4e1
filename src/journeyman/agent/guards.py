"""The repeat guard: a call that has given the same answer twice is answered with a hint instead of being run."""

from __future__ import annotations

from collections.abc import Callable

from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import canonical_json
from journeyman.core.errors import ErrorCategory, Severity
from journeyman.core.messages import ToolCall
from journeyman.execution.outcome import Refusal, refuse

REPEATED = "REPEATED_CALL"


class RepeatGuard:
    """Remembers what was called in which iteration, and what came of it."""

    def __init__(self) -> None:
        self._made: dict[str, list[tuple[int, ToolCallRecord]]] = {}
        self._keys: dict[str, str] = {}
        """Keys of calls under way, by call id: made when a call is checked, used again when it has ended."""

    def note(self, iteration: int, call: ToolCall, record: ToolCallRecord) -> None:
        """A call has ended."""
        key = self._keys.pop(call.id, None) or _key(call)
        if record.error is None or record.error.code != REPEATED:
            self._made.setdefault(key, []).append((iteration, record))

    def refusal(self, iteration: int, call: ToolCall, *, reads: Callable[[str], bool]) -> Refusal | None:
        """Why this call should not run, if it should not. ``reads`` says of a tool's name that it only reads."""
        key = self._keys[call.id] = _key(call)
        made = self._made.get(key)
        if made is None or len(made) < 2:
            return None
        earlier = {at: record for at, record in made if at < iteration}
        if len(earlier) < 2:
            return None
        before, last = sorted(earlier)[-2:]
        if not _same_answer(earlier[before], earlier[last]) or self._something_changed(before, key, reads):
            return None
        return refuse(
            CallStatus.DENIED,
            REPEATED,
            f"{call.tool_name!r} was already called with these arguments in iterations {before} and {last}, "
            "with the same answer both times",
            category=ErrorCategory.INVALID_INPUT,
            severity=Severity.LOW,
            recover="Use the answer you have, call it with other arguments, or finish",
        )

    def _something_changed(self, since: int, key: str, reads: Callable[[str], bool]) -> bool:
        """Whether a different call that has effects has run since that iteration."""
        return any(
            at >= since and record.attempts > 0 and not reads(record.tool_name)
            for other, made in self._made.items()
            if other != key
            for at, record in made
        )


def _key(call: ToolCall) -> str:
    if call.malformed is not None:
        return f"{call.tool_name}\n!{call.malformed}"
    try:
        return f"{call.tool_name}\n{canonical_json(call.arguments)}"
    except (ValueError, TypeError, RecursionError):
        return f"{call.tool_name}\n?{call.id}"  # not JSON: refused on its own account


def _same_answer(a: ToolCallRecord, b: ToolCallRecord) -> bool:
    same = a.status is b.status and bool(a.result == b.result) and a.error == b.error
    return same and a.artifact == b.artifact

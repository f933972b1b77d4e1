"""What an OpenAI-compatible server answered, whole or as a stream, read into a ``ModelResponse``. No HTTP here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json

from journeyman.core.data import (
    ANSWER_BYTES,
    STREAM_EVENTS,
    TOOL_NAME_CHARS,
    TURN_CALLS,
    OverBudgetError,
    check_arguments,
    check_containers,
    may_overflow,
    unchecked,
)
from journeyman.core.protocols import ModelResponse
from journeyman.core.runs import FinishReason, ToolCall, Usage

MALFORMED_KEPT = 10_000

refuse_infinity = json.JSONEncoder(allow_nan=False).encode
"""The parser reads ``1e999`` as infinity, which JSON cannot say; this raises ValueError."""


FINISHES: Mapping[str, FinishReason] = {"stop": "stop", "length": "length", "content_filter": "filter"}
WIRE = "chat_completions"
THOUGHTS = ("reasoning_content", "reasoning_details")
"""Fields of a message that are sent back with its calls; the second is a list of objects."""


class BadAnswerError(ValueError):
    """The answer cannot be read; the message says what it was instead."""


class ServerReportedError(ValueError):
    """The server answered 'OK' with an error inside."""

    def __init__(self, report: Any) -> None:
        self.report = report
        super().__init__("the server reported an error")


def read_body(data: bytes) -> dict[str, Any]:
    """A JSON object that is not an error report."""
    check_containers(data)
    try:
        body = from_json(data)
    except ValueError as error:
        raise BadAnswerError(f"not JSON ({error})") from None
    if not isinstance(body, dict):
        raise BadAnswerError(f"a JSON {type(body).__name__}, not an object")
    if body.get("error") and not body.get("choices"):
        raise ServerReportedError(body["error"])
    return body


def read_answer(body: Mapping[str, Any], *, names: Mapping[str, str], model: str) -> ModelResponse:
    """A chat completion. ``names`` maps the provider's tool names back to ours, where they differ."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BadAnswerError("JSON without 'choices'")
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict):
        raise BadAnswerError("JSON whose first choice has no 'message'")
    content = message.get("content")
    text = content if isinstance(content, str) else "".join(text_parts(content))
    fragments = as_list(message.get("tool_calls"))
    if not fragments and isinstance(message.get("function_call"), dict):
        fragments = [{"function": message["function_call"]}]
    if len(fragments) > TURN_CALLS:
        raise too_many_calls(len(fragments))
    fields = {
        "text": text or as_text(message.get("refusal") or ""),
        "calls": tuple(read_call(fragment, names) for fragment in fragments if isinstance(fragment, dict)),
        "usage": read_usage(body.get("usage")),
        "model": as_text(body.get("model")) or model,
        "finish": "refusal" if message.get("refusal") else FINISHES.get(as_text(choices[0].get("finish_reason"))),
        "returned": _returned(message) if fragments else None,
    }
    return unchecked(ModelResponse, fields)


def _returned(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """What some servers want back with their calls: what the model thought before it made them."""
    kept = {name: message[name] for name in THOUGHTS if message.get(name)}
    return {WIRE: kept} if kept else None


def too_many_calls(count: int) -> OverBudgetError:
    return OverBudgetError(f"asked for {count:,} calls in one turn; at most {TURN_CALLS:,} are carried out")


def read_call(fragment: Mapping[str, Any], names: Mapping[str, str]) -> ToolCall:
    function = fragment.get("function")
    if not isinstance(function, dict):
        function = {}
    name = as_text(function.get("name"))[: TOOL_NAME_CHARS + 1]
    arguments, malformed = read_arguments(function.get("arguments"))
    fields = {
        "id": as_text(fragment.get("id")),
        "tool_name": names.get(name, name),
        "arguments": arguments,
        "malformed": malformed,
    }
    return unchecked(ToolCall, fields)


def read_arguments(written: Any) -> tuple[dict[str, Any], str | None]:
    """The arguments, and the text as written where it is not a JSON object."""
    if written is None:
        return {}, None
    text = written if isinstance(written, str) else to_json(written, fallback=str).decode()
    if not text.strip():
        return {}, None
    try:
        check_arguments(text)
        arguments = from_json(text, allow_inf_nan=False)
        if may_overflow(text):
            refuse_infinity(arguments)
    except OverBudgetError as error:
        return {}, f"({error})"
    except (ValueError, TypeError):  # not JSON, or no text that could be
        arguments = None
    if isinstance(arguments, dict):
        return arguments, None
    return {}, text[:MALFORMED_KEPT]


def read_usage(reported: Any) -> Usage:
    if not isinstance(reported, dict):
        return Usage(requests=1)
    fields = {
        "input_tokens": as_count(reported.get("prompt_tokens")),
        "output_tokens": as_count(reported.get("completion_tokens")),
        "requests": 1,
        "cached_tokens": _detail(reported, "prompt_tokens_details", "cached_tokens"),
        "reasoning_tokens": _detail(reported, "completion_tokens_details", "reasoning_tokens"),
    }
    return unchecked(Usage, fields)


def _detail(reported: Mapping[str, Any], group: str, name: str) -> int:
    details = reported.get(group)
    return as_count(details.get(name)) if isinstance(details, dict) else 0


def text_parts(content: Any) -> Iterable[str]:
    for part in as_list(content):
        if isinstance(part, dict):
            yield as_text(part.get("text")) or as_text(part.get("refusal"))


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def as_count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


@dataclass(slots=True)
class GrowingCall:
    """A call whose arguments are still being written."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class StreamedAnswer:
    """Puts the chunks of a stream together again."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.complete = False
        """Whether the server said that this is all. A stream that ends before is cut."""
        self._say = say
        self._text: list[str] = []
        self._calls: list[GrowingCall] = []
        self._by_index: dict[int, GrowingCall] = {}
        self._by_id: dict[str, GrowingCall] = {}
        self._size = 0
        self._events = 0
        self._rest: dict[str, Any] = {}
        self._thoughts: dict[str, Any] = {}
        self._finish: Any = None
        self._refuses = False

    def take(self, events: Iterable[bytes]) -> bool:
        """Add events; True after the last one."""
        for data in events:
            if data.strip() == b"[DONE]":
                self.complete = True
                return True
            self._events += 1
            if self._events > STREAM_EVENTS:
                raise OverBudgetError(f"streamed more than {STREAM_EVENTS:,} pieces")
            self._add(read_body(data))
        return False

    def body(self) -> dict[str, Any]:
        """What the server would have answered without streaming."""
        calls = [
            {"id": call.id, "function": {"name": call.name, "arguments": "".join(call.arguments)}}
            for call in self._calls
        ]
        message = {"content": "".join(self._text), "tool_calls": calls, "refusal": self._refuses, **self._thoughts}
        return {**self._rest, "choices": [{"message": message, "finish_reason": self._finish}]}

    def _add(self, chunk: Mapping[str, Any]) -> None:
        for key in ("model", "usage"):
            if chunk.get(key):
                self._rest[key] = chunk[key]
        for choice in as_list(chunk.get("choices"))[:1]:
            if not isinstance(choice, dict):
                raise BadAnswerError("a stream whose choice is not an object")
            delta = choice.get("delta")
            if isinstance(delta, dict):
                self._add_delta(delta)
            if choice.get("finish_reason"):
                self.complete, self._finish = True, choice["finish_reason"]

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        text = content if isinstance(content, str) else "".join(text_parts(content))
        if refusal := as_text(delta.get("refusal")):
            text, self._refuses = text or refusal, True
        for name in THOUGHTS:
            thought = delta.get(name)
            if isinstance(thought, str | list) and thought:
                self._count(thought if isinstance(thought, str) else to_json(thought, fallback=str).decode())
                self._thoughts[name] = self._thoughts.get(name, type(thought)()) + thought
        if text:
            self._count(text)
            self._text.append(text)
            self._say(text)
        for fragment in as_list(delta.get("tool_calls")):
            if isinstance(fragment, dict):
                self._add_fragment(fragment.get("index"), as_text(fragment.get("id")), fragment.get("function"))
        if isinstance(delta.get("function_call"), dict):
            self._add_fragment(0, "", delta["function_call"])

    def _add_fragment(self, index: Any, id: str, function: Any) -> None:
        if not isinstance(function, dict):
            function = {}
        name, arguments = as_text(function.get("name")), function.get("arguments")
        written = "" if not arguments else arguments if isinstance(arguments, str) else to_json(arguments).decode()
        call = self._growing(index, id, name, written)
        call.id = call.id or id
        # Names come whole, in pieces before the first argument, or again with every piece.
        if name != call.name and not call.arguments and len(call.name) <= TOOL_NAME_CHARS:
            call.name += name
        if written:
            self._count(written)
            call.arguments.append(written)

    def _growing(self, index: Any, id: str, name: str, written: str) -> GrowingCall:
        """The call a fragment belongs to. Some servers leave the index out or repeat it; a new id is a new call."""
        if isinstance(index, int):
            call = self._by_index.get(index)
        elif id:
            call = self._by_id.get(id)
        else:
            call = self._calls[-1] if self._calls and not name else None
        if call is None or (id and call.id and id != call.id) or _begins_anew(call, name, written):
            call = GrowingCall()
            self._calls.append(call)
            if len(self._calls) > TURN_CALLS:
                raise too_many_calls(len(self._calls))
        if isinstance(index, int):
            self._by_index[index] = call
        if id:
            self._by_id[id] = call
        return call

    def _count(self, text: str) -> None:
        self._size += len(text)
        if self._size > ANSWER_BYTES:
            raise OverBudgetError(f"streamed more than {ANSWER_BYTES:,} characters")


def _begins_anew(call: GrowingCall, name: str, written: str) -> bool:
    """Whether a fragment with a call's own id is another call: of another tool, or with arguments of its own."""
    if not name or not call.arguments:
        return False
    return name != call.name or (call.arguments[-1].endswith("}") and written.startswith("{"))


class EventParser:
    """Server-sent events, as they arrive: bytes in, the data of whole events out.

    Works on bytes, so a piece may end in the middle of a character. Comments, event names and ids are dropped.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._data: list[bytes] = []
        self._after_return = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that this piece completes."""
        if self._after_return and piece:
            # The last piece ended in "\r", which already ended its line: a "\n" now belongs to it.
            self._after_return = False
            piece = piece.removeprefix(b"\n")
        if not piece:
            return []
        self._pieces.append(piece)
        if b"\n" not in piece and b"\r" not in piece:
            return []
        lines = b"".join(self._pieces).splitlines(keepends=True)
        self._pieces.clear()
        if not lines[-1].endswith((b"\n", b"\r")):
            self._pieces.append(lines.pop())
        self._after_return = piece.endswith(b"\r")
        return [data for line in lines if (data := self._line(line.rstrip(b"\r\n"))) is not None]

    def finish(self) -> list[bytes]:
        """The data of an event that the end of the stream left without its empty line."""
        events = [*self.feed(b"\n"), *self.feed(b"\n")]
        self._after_return = False
        return events

    def _line(self, line: bytes) -> bytes | None:
        if not line:
            data, self._data = self._data, []
            return b"\n".join(data) if data else None
        field, _, value = line.partition(b":")
        if field.removeprefix(b"\xef\xbb\xbf") == b"data":
            self._data.append(value.removeprefix(b" "))
        return None

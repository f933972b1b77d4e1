"""A run's events as the chunks of OpenAI's stream, and what both its stream and its one answer tell."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from pydantic import BaseModel
from pydantic_core import to_json

from journeyman.app.durable import Handle
from journeyman.app.service import Service
from journeyman.core.approvals import Approval
from journeyman.core.errors import ErrorCategory, ErrorInfo, JourneymanError
from journeyman.core.events import (
    Answered,
    Event,
    MessageReceived,
    RunFailed,
    RunFinished,
    RunSuspended,
    StepRestarted,
    TextDelta,
)
from journeyman.core.messages import Usage
from journeyman.core.runs import RunStatus
from journeyman.doors.http.common import pending
from journeyman.doors.http.errors import Problem
from journeyman.doors.http.metrics import Metrics
from journeyman.doors.http.sse import DONE, KEEP_ALIVE_SECONDS, with_pauses


class CompletionUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int

    @classmethod
    def of(cls, usage: Usage) -> CompletionUsage:
        return cls(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
        )


def completion_id(handle: Handle) -> str:
    return f"chatcmpl-{handle.run_id}"


def waiting_text(approvals: list[Approval], handle: Handle) -> str:
    calls = "; ".join(f"{item.tool_name} {to_json(item.arguments).decode()} ({item.id})" for item in approvals)
    told = calls or f"a call of run {handle.run_id}"
    return f"This waits for a person to decide about: {told}. The run goes on by itself when that is done."


def failure(error: ErrorInfo) -> Problem:
    status = {ErrorCategory.RATE_LIMIT: 429, ErrorCategory.TIMEOUT: 504}.get(error.category, 502)
    guidance = f" ({error.user_guidance})" if error.user_guidance else ""
    return Problem(status, error.code, f"{error.message}{guidance}")


class Chunks:
    """Turns events into chunks. What was sent cannot be taken back, so a text that begins anew is held back first."""

    def __init__(self, handle: Handle, *, created: int, model: str, usage: bool) -> None:
        self._base = {
            "id": completion_id(handle),
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._wants_usage = usage
        self._usage = Usage()
        self._step = ""
        self._held = False
        self._last = ""

    def chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return format_sse_event(data_str=to_json({**self._base, "choices": choices}).decode())

    def text(self, event: Event) -> str:
        """What an event adds to the answer."""
        match event:
            case TextDelta():
                if self._held:
                    return ""
                self._step += event.text
                return event.text
            case StepRestarted():
                self._held = bool(self._step)
                return ""
            case MessageReceived():
                return self._whole(event)
            case Answered() if event.text.strip() != self._last:
                return event.text
            case _:
                return ""

    def _whole(self, event: MessageReceived) -> str:
        self._usage += event.usage
        begun, self._step, self._held, self._last = self._step, "", False, event.text.strip()
        rest = event.text[len(begun) :] if event.text.startswith(begun) else f"\n\n{event.text}"
        return rest + "\n\n" if event.calls and event.text else rest

    def end(self, finish: str) -> bytes:
        ending = self.chunk({}, finish)
        if self._wants_usage:
            told = {**self._base, "choices": [], "usage": CompletionUsage.of(self._usage).model_dump()}
            ending += format_sse_event(data_str=to_json(told).decode())
        return ending + DONE


async def streamed(service: Service, handle: Handle, chunks: Chunks, metrics: Metrics) -> AsyncGenerator[bytes, None]:
    with metrics.stream():
        yield chunks.chunk({"role": "assistant", "content": ""})
        try:
            async with aclosing(with_pauses(handle.batches(), seconds=KEEP_ALIVE_SECONDS)) as batches:
                async for batch in batches:
                    if not batch:
                        yield KEEPALIVE_COMMENT
                    for event in batch:
                        if added := chunks.text(event):
                            yield chunks.chunk({"content": added})
                        if (ending := await _ending(event, service, handle, chunks)) is not None:
                            yield ending
                            return
        except JourneymanError as error:
            yield _error_event(Problem(503, "RUN_CANNOT_GO_ON", str(error)))


async def _ending(event: Event, service: Service, handle: Handle, chunks: Chunks) -> bytes | None:
    """What ends the stream, where an event does."""
    match event:
        case RunFailed():
            return _error_event(failure(event.error))
        case RunSuspended() if (await handle.status()).waiting:  # else it is one that was decided about since
            told = waiting_text(await pending(service, handle.run_id), handle)
            return chunks.chunk({"content": told}) + chunks.end("stop")
        case RunFinished():
            return chunks.end("length" if event.status is RunStatus.LIMIT_REACHED else "stop")
        case _:
            return None


def _error_event(problem: Problem) -> bytes:
    told = {"error": {"message": problem.detail, "type": "server_error", "param": None, "code": problem.code}}
    return format_sse_event(data_str=to_json(told).decode())

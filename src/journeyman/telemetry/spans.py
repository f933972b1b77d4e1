"""Events as OpenTelemetry spans, through the API package.

Names follow the semantic conventions for generative AI, whose published constants still change. A call's span is
current while its tool runs, so a tool's own spans are its children.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode
from pydantic_core import to_json

from journeyman.core import events
from journeyman.core.calls import ToolCallRecord
from journeyman.core.sensitive.tokens import redacted, redacted_value

OPERATION = "gen_ai.operation.name"
ERROR_TYPE = "error.type"


class SpanListener:
    """One per run: a span for the run, one for each model request, one for each call."""

    def __init__(self, agent: str, *, capture_content: bool = False) -> None:
        self._agent = agent
        self._tracer = trace.get_tracer("journeyman")
        self._capture_content = capture_content
        self._run: Span | None = None
        self._parent: otel_context.Context | None = None
        self._calls: dict[str, Span] = {}

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.RunStarted() | events.RunResumed():
                self._begin(event)
            case events.MessageReceived():
                self._model(event)
            case events.CallStarted():
                self._call(event.call_id, event.tool_name, event.time)
            case events.CallFinished(record=record):
                self._call_finished(record, event.time)
            case events.RunFinished() | events.RunSuspended():
                self._end(event.status.value, event.time, None)
            case events.RunFailed():
                self._end("failed", event.time, event.error.code)

    def _begin(self, event: events.Event) -> None:
        operation, start = "invoke_agent", _nanoseconds(event.time)
        facts = {OPERATION: operation, "gen_ai.agent.name": self._agent, "gen_ai.conversation.id": event.run_id}
        self._run = self._tracer.start_span(f"{operation} {self._agent}", attributes=facts, start_time=start)
        self._parent = trace.set_span_in_context(self._run)

    def _model(self, event: events.MessageReceived) -> None:
        span = self._tracer.start_span(
            f"chat {redacted(event.model)}".strip(),
            context=self._parent,
            kind=trace.SpanKind.CLIENT,
            attributes={
                OPERATION: "chat",
                "gen_ai.response.model": redacted(event.model),
                "gen_ai.usage.input_tokens": event.usage.input_tokens,
                "gen_ai.usage.output_tokens": event.usage.output_tokens,
            },
            start_time=_nanoseconds(event.started),
        )
        span.end(_nanoseconds(event.time))

    def _call(self, call_id: str, tool_name: str, start: float) -> Span:
        """The span of a call, which all its attempts share."""
        if call_id not in self._calls:
            self._calls[call_id] = self._tracer.start_span(
                f"execute_tool {redacted(tool_name)}", context=self._parent, start_time=_nanoseconds(start)
            )
        return self._calls[call_id]

    @contextmanager
    def running(self, call_id: str, tool_name: str) -> Iterator[None]:
        """Makes the call's span the current one; entered in the task that runs the tool."""
        span = self._call(call_id, tool_name, time.time())
        token = otel_context.attach(trace.set_span_in_context(span, self._parent))
        try:
            yield
        finally:
            otel_context.detach(token)

    def _call_finished(self, record: ToolCallRecord, now: float) -> None:
        # A call that was refused, or answered from the cache, has no span yet.
        span = self._call(record.call_id, record.tool_name, record.start_time.timestamp())
        del self._calls[record.call_id]
        if span.is_recording():
            span.set_attributes(
                {
                    OPERATION: "execute_tool",
                    "gen_ai.tool.name": redacted(record.tool_name),
                    "gen_ai.tool.call.id": record.call_id,
                    "journeyman.call.status": record.status.value,
                    "journeyman.call.attempts": record.attempts,
                    "journeyman.call.cached": record.cached,
                    "journeyman.call.risk": record.risk.value if record.risk else "",
                    "journeyman.call.ungrounded": len(record.ungrounded),
                }
            )
            if record.error is not None:
                _mark_failed(span, record.error.code)
            if self._capture_content:
                # Refused arguments may be anything, JSON or not, and the span must end all the same.
                for name, value in (("arguments", record.arguments), ("result", record.result)):
                    text = to_json(redacted_value(value), fallback=repr).decode()
                    span.set_attribute(f"gen_ai.tool.call.{name}", text)
        span.end(_nanoseconds(now))

    def _end(self, status: str, now: float, error: str | None) -> None:
        if self._run is None:
            return
        self._run.set_attribute("journeyman.run.status", status)
        if error is not None:
            _mark_failed(self._run, error)
        self._run.end(_nanoseconds(now))
        self._run = None


def _mark_failed(span: Span, code: str) -> None:
    span.set_attribute(ERROR_TYPE, code)
    span.set_status(Status(StatusCode.ERROR, code))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)

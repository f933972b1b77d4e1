"""Events as OpenTelemetry spans, through the API package.

A run is one trace, in however many processes it is worked on: the first one's span is in the journal, and what other
processes do are its descendants. A call's span is current while its tool runs, so a tool's own spans are its children.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from pydantic_core import to_json

from journeyman.core import events
from journeyman.core.approvals import Approval
from journeyman.core.calls import ToolCallRecord
from journeyman.sensitive.tokens import redacted, redacted_value
from journeyman.telemetry import names
from journeyman.telemetry.metrics import provider_of

_TRACER = "journeyman"
_PARENT = "traceparent"
_propagator = TraceContextTextMapPropagator()


def current_parent() -> str | None:
    """The current span as the text in which it is handed to other processes; None where there is none."""
    return _written(otel_context.get_current())


def _written(context: otel_context.Context) -> str | None:
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, context)
    return carrier.get(_PARENT)


@contextmanager
def _attached(context: otel_context.Context) -> Iterator[None]:
    token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(token)


class SpanListener:
    """One per run and process: a span for the run, and below it steps, questions, calls and waits for people.

    ``parent`` is the span that the run began with in another process, or the one of whoever ordered it; without one
    the current span is. ``asked`` are questions to people that are still open.
    """

    def __init__(
        self,
        agent: str,
        *,
        parent: str | None = None,
        asked: Iterable[Approval] = (),
        capture_content: bool = False,
    ) -> None:
        self._agent = agent
        self._tracer = trace.get_tracer(_TRACER)
        self._capture_content = capture_content
        self._from = None if parent is None else _propagator.extract({_PARENT: parent})
        self._run: Span | None = None
        self._parent: otel_context.Context | None = None
        self._step: Span | None = None
        self._below: otel_context.Context | None = None
        """Where spans of the step under way belong."""
        self._calls: dict[str, Span] = {}
        self._asked = {approval.id: approval for approval in asked}

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.RunStarted() | events.RunResumed():
                if self._run is None:
                    self.begin(event.run_id, event.time)
            case events.MessageReceived():
                self._message(event)
            case events.CallStarted():
                self._call(event.call_id, event.tool_name, event.time)
            case events.CallFinished(record=record):
                self._call_finished(record, event.time)
            case events.StepFinished():
                self._end_step(event.time)
            case events.ApprovalRequested(approval=approval):
                self._asked[approval.id] = approval
            case events.ApprovalDecided():
                self._decided(event)
            case events.RunFinished():
                self._end(event.status.value, event.time, None, gap=event.gap is not None)
            case events.RunSuspended():
                self._end(event.status.value, event.time, None)
            case events.RunFailed():
                self._end("failed", event.time, event.error.code)

    def begin(self, run_id: str, now: float) -> str | None:
        """Begin the run's span; returns it as the text by which other processes find it."""
        facts = {names.OPERATION: names.INVOKE_AGENT, names.AGENT_NAME: self._agent, names.CONVERSATION_ID: run_id}
        self._run = self._span(f"{names.INVOKE_AGENT} {self._agent}", now, self._from, facts)
        self._parent = self._below = trace.set_span_in_context(self._run, self._from)
        return _written(self._parent)

    def current(self) -> AbstractContextManager[None]:
        """Makes the run's span the current one."""
        return _attached(self._parent or otel_context.get_current())

    def _span(
        self,
        name: str,
        start: float,
        below: otel_context.Context | None,
        facts: Mapping[str, Any] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        return self._tracer.start_span(name, below, kind, facts, start_time=_nanoseconds(start))

    def _message(self, event: events.MessageReceived) -> None:
        self._end_step(event.time)
        self._step = self._span(f"step {event.iteration}", event.started, self._parent, {names.STEP: event.iteration})
        self._below = trace.set_span_in_context(self._step, self._parent)
        model = redacted(event.model)
        facts = {
            names.OPERATION: names.CHAT,
            names.PROVIDER_NAME: provider_of(model),
            names.RESPONSE_MODEL: model,
            names.INPUT_TOKENS: event.usage.input_tokens,
            names.OUTPUT_TOKENS: event.usage.output_tokens,
        }
        span = self._span(f"{names.CHAT} {model}".strip(), event.started, self._below, facts, SpanKind.CLIENT)
        span.end(_nanoseconds(event.time))

    def _end_step(self, now: float) -> None:
        if self._step is not None:
            self._step.end(_nanoseconds(now))
        self._step, self._below = None, self._parent

    def _call(self, call_id: str, tool_name: str, start: float) -> Span:
        """The span of a call, which all its attempts share."""
        if call_id not in self._calls:
            self._calls[call_id] = self._span(f"{names.EXECUTE_TOOL} {redacted(tool_name)}", start, self._below)
        return self._calls[call_id]

    def running(self, call_id: str, tool_name: str) -> AbstractContextManager[None]:
        """Makes the call's span the current one; entered in the task that runs the tool."""
        span = self._call(call_id, tool_name, time.time())
        return _attached(trace.set_span_in_context(span, self._below))

    def _call_finished(self, record: ToolCallRecord, now: float) -> None:
        # A call that was refused, or answered from the cache, has no span yet.
        span = self._call(record.call_id, record.tool_name, record.start_time.timestamp())
        del self._calls[record.call_id]
        if span.is_recording():
            span.set_attributes(
                {
                    names.OPERATION: names.EXECUTE_TOOL,
                    names.TOOL_NAME: redacted(record.tool_name),
                    names.TOOL_CALL_ID: record.call_id,
                    names.CALL_STATUS: record.status.value,
                    names.CALL_ATTEMPTS: record.attempts,
                    names.CALL_CACHED: record.cached,
                    names.CALL_RISK: record.risk.value if record.risk else "",
                    names.CALL_UNGROUNDED: len(record.ungrounded),
                }
            )
            if record.error is not None:
                _mark_failed(span, record.error.code)
            if self._capture_content:
                # Refused arguments may be anything, JSON or not, and the span must end all the same.
                said = {names.TOOL_ARGUMENTS: record.arguments, names.TOOL_RESULT: record.result}
                for name, value in said.items():
                    span.set_attribute(name, to_json(redacted_value(value), fallback=repr).decode())
        span.end(_nanoseconds(now))

    def _decided(self, event: events.ApprovalDecided) -> None:
        """How long a person took: also where the question was asked by a process that is gone."""
        approval = self._asked.pop(event.approval_id, None)
        if approval is None:
            return
        tool, asked = redacted(approval.tool_name), approval.requested_at.timestamp()
        facts = {names.APPROVAL_ID: approval.id, names.APPROVAL_STATUS: event.status.value}
        facts |= {names.TOOL_NAME: tool, names.TOOL_CALL_ID: event.call_id}
        span = self._span(f"approval {tool}", asked, self._below, facts)
        span.end(_nanoseconds(event.time))

    def _end(self, status: str, now: float, error: str | None, *, gap: bool = False) -> None:
        if self._run is None:
            return
        self._end_step(now)
        self._run.set_attribute(names.RUN_STATUS, status)
        if gap:
            self._run.set_attribute(names.RUN_GAP, True)
        if error is not None:
            _mark_failed(self._run, error)
        self._run.end(_nanoseconds(now))
        self._run = None


@contextmanager
def store_span(system: str, operation: str) -> Iterator[None]:
    """A span around an operation of a store, where it belongs to something: polling makes no traces."""
    if not trace.get_current_span().get_span_context().is_valid:
        yield
        return
    attributes = {names.DB_SYSTEM: system, names.DB_OPERATION: operation}
    tracer = trace.get_tracer(_TRACER)
    with tracer.start_as_current_span(f"{operation} {system}", kind=SpanKind.CLIENT, attributes=attributes):
        yield


def _mark_failed(span: Span, code: str) -> None:
    span.set_attribute(names.ERROR_TYPE, code)
    span.set_status(Status(StatusCode.ERROR, code))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)

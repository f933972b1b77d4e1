"""Events as OpenTelemetry metrics: tokens, cost, durations, approvals, refusals, gaps. Names and counts only."""

from __future__ import annotations

from functools import cached_property, lru_cache, partial

from opentelemetry import metrics
from opentelemetry.metrics import Meter, MeterProvider

from journeyman.core import events
from journeyman.core.calls import CallStatus
from journeyman.core.runs import Price, cost_of, list_prices
from journeyman.sensitive.tokens import redacted
from journeyman.telemetry import names

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The buckets that the conventions advise for durations."""
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)


class Instruments:
    """What is counted and measured, made by one provider."""

    def __init__(self, provider: MeterProvider) -> None:
        meter: Meter = provider.get_meter("journeyman")
        self.tokens = meter.create_histogram(
            names.TOKEN_USAGE, "{token}", "Tokens of an answer", explicit_bucket_boundaries_advisory=TOKENS
        )
        seconds = partial(meter.create_histogram, unit="s", explicit_bucket_boundaries_advisory=SECONDS)
        self.operations = seconds(names.OPERATION_DURATION, description="How long a model or a tool took")
        self.runs = seconds(names.RUN_DURATION, description="How long a run took in one process")
        self.waits = seconds(names.APPROVAL_WAIT, description="How long people took")
        self.cost = meter.create_counter(names.COST, "{USD}", "What answers cost by the list prices")
        self.approvals = meter.create_counter(names.APPROVALS, "{approval}", "Questions to people, by how they ended")
        self.refusals = meter.create_counter(names.REFUSALS, "{call}", "Calls that were not allowed to run")
        self.gaps = meter.create_counter(names.GAPS, "{gap}", "Tools that were missing")

    @cached_property
    def prices(self) -> dict[str, Price]:
        return list_prices()


_made = lru_cache(maxsize=4)(Instruments)


class MetricListener:
    """One per run and process."""

    def __init__(self, agent: str) -> None:
        self._agent = {names.AGENT_NAME: agent}
        self._made = _made(metrics.get_meter_provider())
        self._began: float | None = None
        self._asked: dict[str, float] = {}

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.RunStarted() | events.RunResumed():
                self._began = event.time
            case events.MessageReceived():
                self._message(event)
            case events.CallFinished(record=record):
                tool = {names.TOOL_NAME: redacted(record.tool_name)}
                if record.status is CallStatus.DENIED:
                    code = "" if record.error is None else record.error.code
                    self._made.refusals.add(1, {**tool, names.ERROR_TYPE: code})
                if record.attempts:
                    facts = {names.OPERATION: names.EXECUTE_TOOL, names.CALL_STATUS: record.status.value, **tool}
                    if record.error is not None:
                        facts[names.ERROR_TYPE] = record.error.code
                    self._made.operations.record(record.duration_ms / 1000, facts)
            case events.ApprovalRequested(approval=approval):
                self._asked[approval.id] = approval.requested_at.timestamp()
            case events.ApprovalDecided():
                self._made.approvals.add(1, {names.APPROVAL_STATUS: event.status.value})
                if (asked := self._asked.pop(event.approval_id, None)) is not None:
                    self._made.waits.record(max(0.0, event.time - asked))
            case events.RunFinished() | events.RunSuspended():
                self._ended(event.status.value, event.time)
                if isinstance(event, events.RunFinished) and event.gap is not None:
                    self._made.gaps.add(len(event.gap.missing_tools), self._agent)
            case events.RunFailed():
                self._ended("failed", event.time)

    def _message(self, event: events.MessageReceived) -> None:
        model = redacted(event.model)
        facts = {names.OPERATION: names.CHAT, names.PROVIDER_NAME: provider_of(model), names.RESPONSE_MODEL: model}
        self._made.operations.record(max(0.0, event.time - event.started), facts)
        for kind, count in (("input", event.usage.input_tokens), ("output", event.usage.output_tokens)):
            if count:
                self._made.tokens.record(count, {**facts, names.TOKEN_TYPE: kind})
        cost = cost_of(event.model, event.usage, self._made.prices)
        if cost:
            self._made.cost.add(cost, {names.RESPONSE_MODEL: model})

    def _ended(self, status: str, now: float) -> None:
        if self._began is not None:
            self._made.runs.record(max(0.0, now - self._began), {**self._agent, names.RUN_STATUS: status})
            self._began = None


def provider_of(model: str) -> str:
    """Who runs a model, from its name: ``openai:gpt-5`` is openai's, one without a prefix this program's."""
    kind, colon, _ = model.partition(":")
    return kind if colon and kind.isalnum() else "journeyman"

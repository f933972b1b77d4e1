"""Metrics: tokens, cost, durations, approvals, refusals and gaps, by names and counts alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from journeyman import Agent, Approve, Deny, ToolLibrary, run, tool
from journeyman.core.protocols import ModelRequest, ModelResponse
from journeyman.core.runs import Usage
from journeyman.testing import ScriptedModel, call, say
from tests.telemetry.canaries import CANARIES, sing


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """Metrics as a host sets them up, for one test."""
    monkeypatch.setenv("JOURNEYMAN_SECRET_CANARY", CANARIES["secret"])
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", provider)
    yield reader
    provider.shutdown()


def points(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    data: Any = reader.get_metrics_data()
    return {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


@tool(read_only=True)
def look() -> str:
    """Look at something."""
    return "seen"


@tool(risk="irreversible")
def delete() -> str:
    """Delete everything."""
    return "gone"


class Paid:
    """A model that says what it used."""

    def __init__(self, script: ScriptedModel) -> None:
        self._script = script

    async def respond(self, request: ModelRequest, deltas: Any = None) -> ModelResponse:
        said = await self._script.respond(request, deltas)
        used = Usage(input_tokens=1_000_000, output_tokens=100_000, requests=1)
        return said.model_copy(update={"usage": used, "model": "openai:gpt-5-mini"})


AGENT = Agent(name="tester", instruction="Test.", tools=[look, delete])


async def test_tokens_cost_and_durations_are_measured(reader: InMemoryMetricReader) -> None:
    await run(AGENT, "Look", library=ToolLibrary([look, delete]), model=Paid(ScriptedModel([call("look"), say("x")])))
    found = points(reader)
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in found["gen_ai.client.token.usage"]}
    assert tokens == {"input": 2_000_000, "output": 200_000}
    [cost] = found["journeyman.cost"]
    assert cost.value == pytest.approx(2 * (0.25 + 0.2))
    operations = {
        point.attributes["gen_ai.operation.name"]: point for point in found["gen_ai.client.operation.duration"]
    }
    assert operations["chat"].attributes["gen_ai.provider.name"] == "openai"
    assert (operations["chat"].count, operations["execute_tool"].count) == (2, 1)
    [ended] = found["journeyman.run.duration"]
    assert ended.attributes["journeyman.run.status"] == "completed"


async def test_approvals_refusals_and_gaps_are_counted(reader: InMemoryMetricReader) -> None:
    async def no(_: object) -> Deny:
        return Deny(reason="no")

    async def yes(_: object) -> Approve:
        return Approve()

    for approver in (no, yes, yes):
        await run(AGENT, "Delete", model=ScriptedModel([call("delete"), say("x")]), approver=approver)
    await run(AGENT, "Book me a flight to Paris", model=ScriptedModel([say("I have no tool for that.")]))
    found = points(reader)
    decided = {point.attributes["journeyman.approval.status"]: point.value for point in found["journeyman.approvals"]}
    assert decided == {"approved": 2, "denied": 1}
    assert sum(point.count for point in found["journeyman.approval.wait"]) == 3
    [refused] = found["journeyman.refusals"]
    assert (refused.value, refused.attributes["gen_ai.tool.name"]) == (1, "delete")
    [gap] = found["journeyman.gaps"]
    assert (gap.value, gap.attributes["gen_ai.agent.name"]) == (1, "tester")


async def test_no_content_is_in_them(reader: InMemoryMetricReader) -> None:
    await sing(capture=True)
    text = str(reader.get_metrics_data().to_json())  # type: ignore[union-attr]  # there is data
    # A tool that is not there is called by a name that the model made up.
    kept = {name: word for name, word in CANARIES.items() if name != "argument"}
    assert [name for name, word in kept.items() if word in text] == []
    assert '"gen_ai.tool.name": "give"' in text

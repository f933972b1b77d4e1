"""Spans: one for the run, one for each question, one for each call, nested as they ran, without content."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from journeyman import Policy, ToolLibrary, run, tool
from journeyman.testing import ScriptedModel, call, say, together
from tests.playing import agent_with
from tests.telemetry.canaries import CANARIES, DOWN, sing

_exporter = InMemorySpanExporter()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """Tracing as a host sets it up, for one test."""
    monkeypatch.setenv("JOURNEYMAN_SECRET_CANARY", CANARIES["secret"])
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    _exporter.clear()
    yield _exporter
    provider.shutdown()
    _exporter._stopped = False


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


def children_of(parent: ReadableSpan, spans: InMemorySpanExporter) -> list[str]:
    found: Sequence[ReadableSpan] = spans.get_finished_spans()
    return [s.name for s in found if s.parent and parent.context and s.parent.span_id == parent.context.span_id]


@tool(read_only=True)
def look() -> str:
    """Look."""
    with trace.get_tracer("a tool").start_as_current_span("inside look"):
        return "seen"


@tool(risk="reversible")
async def work() -> str:
    """Work."""
    with trace.get_tracer("a tool").start_as_current_span("inside work"):
        await asyncio.sleep(0)
        return "done"


@tool(risk="reversible")
def fail() -> None:
    """Fail."""
    raise ValueError("x")


async def play(turns: list[Any], **options: Any) -> Any:
    tools: list[Any] = [look, work, fail]
    return await run(agent_with(*tools), "go", library=ToolLibrary(tools), model=ScriptedModel(turns), **options)


async def test_spans_nest_as_things_ran(spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("host").start_as_current_span("host"):
        response = await play([together(call("look"), call("work")), call("fail"), say("x")])
    found = by_name(spans)
    invoked = found["invoke_agent tester"]
    assert children_of(found["host"], spans) == ["invoke_agent tester"]
    assert sorted(children_of(invoked, spans)) == ["step 1", "step 2", "step 3"]
    assert sorted(children_of(found["step 1"], spans)) == ["chat scripted", "execute_tool look", "execute_tool work"]
    assert sorted(children_of(found["step 2"], spans)) == ["chat scripted", "execute_tool fail"]
    assert children_of(found["execute_tool look"], spans) == ["inside look"]
    assert children_of(found["execute_tool work"], spans) == ["inside work"]
    assert len({span.context.trace_id for span in spans.get_finished_spans() if span.context}) == 1
    assert invoked.attributes is not None
    assert invoked.attributes["gen_ai.conversation.id"] == response.run_id
    assert invoked.attributes["journeyman.run.status"] == "completed"
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_a_calls_span_says_how_it_went(spans: InMemorySpanExporter) -> None:
    response = await play([call("fail"), call("nothing"), say("x")])
    found = by_name(spans)
    failed, unknown = found["execute_tool fail"], found["execute_tool nothing"]
    assert failed.attributes is not None
    assert unknown.attributes is not None
    assert failed.attributes["gen_ai.tool.call.id"] == response.tool_calls[0].call_id
    assert failed.attributes["journeyman.call.status"] == "error"
    assert failed.attributes["error.type"] == "TOOL_RAISED"
    assert not failed.status.is_ok
    assert unknown.attributes["error.type"] == "UNKNOWN_TOOL"
    assert failed.end_time is not None
    assert failed.start_time is not None
    assert failed.end_time >= failed.start_time


async def test_a_run_that_fails_is_marked(spans: InMemorySpanExporter) -> None:
    await play([DOWN])
    span = by_name(spans)["invoke_agent tester"]
    assert span.attributes is not None
    assert (span.attributes["journeyman.run.status"], span.attributes["error.type"]) == ("failed", "DOWN")
    assert not span.status.is_ok


async def test_a_cancelled_run_ends_all_its_spans(spans: InMemorySpanExporter) -> None:
    begun = asyncio.Event()

    @tool(risk="reversible")
    async def wait() -> None:
        """Wait."""
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(
        run(agent_with(wait), "go", library=ToolLibrary([wait]), model=ScriptedModel([call("wait")]))
    )
    await begun.wait()
    task.cancel()
    await asyncio.wait((task,))
    found = by_name(spans)
    assert set(found) == {"chat scripted", "execute_tool wait", "invoke_agent tester", "step 1"}
    attributes = found["execute_tool wait"].attributes
    assert attributes is not None
    assert attributes["journeyman.call.status"] == "cancelled"


async def test_runs_side_by_side_do_not_mix(spans: InMemorySpanExporter) -> None:
    await asyncio.gather(*(play([together(call("look"), call("work")), say("x")]) for _ in range(5)))
    roots = [span for span in spans.get_finished_spans() if span.name == "invoke_agent tester"]
    assert len({span.context.trace_id for span in roots if span.context}) == 5
    for root in roots:
        assert sorted(children_of(root, spans)) == ["step 1", "step 2"]


def shown(spans: InMemorySpanExporter) -> str:
    return "".join(span.to_json() for span in spans.get_finished_spans())


async def test_no_content_is_in_the_spans(spans: InMemorySpanExporter) -> None:
    await sing()
    allowed = f"no_{CANARIES['argument']}"  # a tool's name is metadata, even one that the model made up
    text = shown(spans).replace(allowed, "")
    assert "execute_tool give" in text
    assert [name for name, canary in CANARIES.items() if canary in text] == []


async def test_content_is_there_where_the_operator_wants_it(spans: InMemorySpanExporter) -> None:
    await sing(capture=True)
    text = shown(spans)
    assert CANARIES["argument"] in text
    assert CANARIES["result"] in text
    assert CANARIES["secret"] not in text


async def test_odd_content_does_not_lose_a_span(spans: InMemorySpanExporter) -> None:
    await play([call("look", at=float("nan")), call("look", at={1, 2}), say("x")], policy=Policy(capture_content=True))
    names = [span.name for span in spans.get_finished_spans()]
    assert names.count("execute_tool look") == 2


async def test_without_tracing_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    assert (await play([call("look"), say("x")])).answer == "x"

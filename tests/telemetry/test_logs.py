"""Logs: structured, tied together by ids, and without content unless it was asked for."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from journeyman import Approve, Policy, ToolLibrary, run, tool
from journeyman.telemetry.logs import JsonFormatter
from journeyman.testing import ScriptedModel, call, say
from tests.playing import agent_with
from tests.telemetry.canaries import CANARIES, DOWN, sing


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What an operator who logs everything finds in the log."""
    monkeypatch.setenv("JOURNEYMAN_SECRET_CANARY", CANARIES["secret"])
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level, ours = root.level, logging.getLogger("journeyman")
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield written
    root.removeHandler(handler)
    root.setLevel(level)
    assert ours.propagate


def read(lines: io.StringIO) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, lines.getvalue().splitlines()) if line["logger"].startswith("journeyman")]


async def test_a_run_can_be_followed_by_its_ids(lines: io.StringIO) -> None:
    @tool
    def delete(what: str) -> str:
        """Delete."""
        return what

    response = await run(
        agent_with(delete),
        "go",
        library=ToolLibrary([delete]),
        model=ScriptedModel([call("delete", what="x"), say("done")]),
        approver=lambda approval: Approve(by="grace"),
    )
    found = read(lines)
    assert [line["event"] for line in found] == [
        "run started",
        "model answered",
        "approval requested",
        "approval decided",
        "call started",
        "call finished",
        "model answered",
        "run finished",
    ]
    assert {line["run_id"] for line in found} == {response.run_id}
    assert [line["seq"] for line in found] == sorted(line["seq"] for line in found)
    finished = next(line for line in found if line["event"] == "call finished")
    record = response.tool_calls[0]
    assert finished["correlation_id"] == record.correlation_id == response.run_id
    assert (finished["call_id"], finished["execution_id"]) == ("call_1_1", record.execution_id)
    assert (finished["tool"], finished["status"], finished["attempts"]) == ("delete", "success", 1)
    assert finished["duration_ms"] == pytest.approx(record.duration_ms, abs=0.001)
    assert found[3]["by"] == "grace"
    assert found[0]["task_id"] == response.task_id


async def test_failures_are_louder(lines: io.StringIO) -> None:
    await sing(ending=DOWN)
    levels = {(line["event"], line.get("status"), line["level"]) for line in read(lines)}
    assert ("call finished", "success", "info") in levels
    assert ("call finished", "error", "warning") in levels
    assert ("run failed", None, "error") in levels


@pytest.mark.parametrize("ending", [None, DOWN])
async def test_no_content_is_logged(lines: io.StringIO, ending: Any) -> None:
    response = await sing(ending=ending)
    assert response.tool_calls[0].success
    text = lines.getvalue()
    assert len(read(lines)) > 10
    allowed = f"no_{CANARIES['argument']}"  # a tool's name is metadata, even one that the model made up
    assert [name for name, canary in CANARIES.items() if canary in text.replace(allowed, "")] == []


async def test_content_is_logged_where_the_operator_wants_it(lines: io.StringIO) -> None:
    await sing(capture=True)
    text = lines.getvalue()
    for name in ("argument", "result", "thought", "answer"):
        assert CANARIES[name] in text, name
    assert CANARIES["secret"] not in text


async def test_an_approver_that_fails_can_be_found_by_its_run(lines: io.StringIO) -> None:
    @tool
    def delete() -> None:
        """Delete."""

    def broken(approval: object) -> Approve:
        raise ValueError(CANARIES["reason"])

    response = await run(
        agent_with(delete),
        "go",
        library=ToolLibrary([delete]),
        model=ScriptedModel([call("delete"), say("x")]),
        approver=broken,
    )
    line = next(line for line in read(lines) if line["event"] == "approver failed")
    assert (line["run_id"], line["call_id"]) == (response.run_id, response.tool_calls[0].call_id)
    assert line["error"] == "ValueError"
    assert CANARIES["reason"] not in lines.getvalue()


class RefusedError(Exception):
    """As clients of HTTP raise them."""

    status_code = 418


@pytest.mark.parametrize("capture", [False, True])
async def test_an_adapter_that_fails_can_be_found_by_its_run(lines: io.StringIO, capture: bool) -> None:
    fault = RefusedError(f"no answer to {CANARIES['task']}")
    response = await run(agent_with(), "go", model=ScriptedModel([fault]), policy=Policy(capture_content=capture))
    line = next(line for line in read(lines) if line["event"] == "the model adapter failed")
    assert (line["run_id"], line["error"], line["status"]) == (response.run_id, "RefusedError", 418)
    assert ".py:" in line["at"]
    assert response.error is not None
    assert response.error.message.startswith("the model adapter raised RefusedError (status 418)")
    assert (CANARIES["task"] in lines.getvalue()) is (CANARIES["task"] in response.error.message) is capture


async def test_addresses_and_tokens_are_cut_down_even_where_content_is_wanted(lines: io.StringIO) -> None:
    url = "https://ada:canary-pw@example.org/bot123456:AAHcanary-canary-canary-123/x?q=canary-query#canary-fragment"
    arguments = {"url": url, "note": "ghp_canaryCANARY0123456789canary", "password": "canary-plain"}

    @tool(risk="reversible")
    def fetch(url: str, note: str, password: str) -> str:
        """Fetch."""
        return f"got {url}"

    await run(
        agent_with(fetch),
        "go",
        library=ToolLibrary([fetch]),
        model=ScriptedModel([call("fetch", **arguments), call(url), say(f"see {url}")]),
        approver=lambda approval: Approve(),
        policy=Policy(capture_content=True),
    )
    text = lines.getvalue()
    assert "https://example.org/" in text
    assert "canary" not in text


@pytest.mark.parametrize("developing", [False, True])
async def test_where_a_tool_failed_is_in_the_log_at_debug(lines: io.StringIO, developing: bool) -> None:
    ours = logging.getLogger("journeyman")
    before = ours.level
    ours.setLevel(logging.DEBUG if developing else before)
    try:
        await sing()
    finally:
        ours.setLevel(before)
    line = next(line for line in read(lines) if line["event"].startswith("a tool raised an unexpected exception"))
    assert (line["tool"], line["error"], line["level"]) == ("explode", "ValueError", "debug")
    assert "Traceback" in line["event"]
    assert "in explode" in line["event"]
    # Whoever turns our own logger up is the developer; what the exception says is for them.
    assert (CANARIES["error"] in line["event"]) is developing
    assert CANARIES["secret"] not in line["event"]


def test_a_program_that_sets_up_no_logs_sees_none(capfd: pytest.CaptureFixture[str]) -> None:
    import subprocess
    import sys

    program = """
from journeyman import Agent, run_sync
from journeyman.testing import ScriptedModel, call, say
run_sync(Agent(name="a", instruction="i"), "go", model=ScriptedModel([call("nothing"), say("x")]))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")

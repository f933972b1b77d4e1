"""Spans and metrics reach a collector that the environment names; a run is one trace, whoever died on it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.telemetry import export
from tests.telemetry.collector import collecting
from tests.waiting import WAIT_SECONDS, until

CONTENT = ("canary-task", "canary-argument", "canary-result", "canary-answer")


def program(store: str, what: str, url: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "OTEL_EXPORTER_OTLP_ENDPOINT": url,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
    }
    command = [sys.executable, "-m", "tests.telemetry.traced", store, what]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
async def test_a_run_is_one_trace_over_a_kill_and_a_wait_for_a_person(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    with collecting() as collector:
        first = program(store, "begin", collector.url)
        try:
            await until(lambda: bool(collector.named("execute_tool look")))
        finally:
            first.kill()  # with SIGKILL: nothing is said goodbye to
            first.communicate()
        before = len(collector.spans)
        second = program(store, "resume", collector.url)
        out, _ = second.communicate(timeout=WAIT_SECONDS)
        assert (second.returncode, out) == (0, "canary-answer\n")
        spans, raw, metrics = collector.spans, b"".join(collector.raw), collector.metrics
    ours = [span for span in spans if not span.attributes.get("db.system.name")]
    assert len({span.trace_id for span in spans}) == 1
    assert {"execute_tool look", "execute_tool wait", "execute_tool delete", "approval delete"} <= {
        span.name for span in ours
    }
    assert {"step 1", "step 3", "step 4", "chat scripted"} <= {span.name for span in ours}
    assert any(span.name == "append sqlite" for span in spans)
    assert len(spans) > before
    # The run's first span died with its process; those of the second are its children all the same.
    roots = {span.parent_id for span in ours if span.name == "invoke_agent tracer"}
    assert len(roots) == 1
    assert roots == {span.parent_id for span in ours if span.name == "step 1"}
    assert [word for word in CONTENT if word.encode() in raw] == []
    assert {"gen_ai.client.operation.duration", "journeyman.run.duration", "journeyman.approvals"} <= metrics


def test_nothing_is_configured_unless_an_endpoint_is_named() -> None:
    assert not export.configure({})
    assert not export.configure({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"})


def test_without_the_extra_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(export, "NEEDS", ("nothing_of_this_name",))
    with caplog.at_level(logging.WARNING, logger="journeyman.telemetry"):
        assert not export.configure({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert "journeyman[otel]" in caplog.text

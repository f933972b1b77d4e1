"""The page of metrics comes from the same instruments as what a collector is sent; a library writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

PROGRAM = """
import asyncio, sys, tempfile
from pathlib import Path
from journeyman.testing import ScriptedModel, call, say
from tests.doors.http.serving import served

async def main():
    model = ScriptedModel([call("query_tasks"), say("canary-answer")])
    async with served(Path(sys.argv[1]), model=model) as server, server.client() as client:
        asked = {"message": "canary-task", "session_id": "s1"}
        await client.post("/api/v1/chat", json=asked, headers={"Accept": "application/json"})
        print((await client.get("/metrics")).text)

asyncio.run(main())
"""


@pytest.mark.slow
def test_the_page_has_the_instruments_and_no_content(tmp_path: Path) -> None:
    # In a process of its own: a meter provider is configured once.
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, env=os.environ
    )
    families = {family.name: family for family in text_string_to_metric_families(ended.stdout)}
    assert "journeyman_http_requests" in families
    durations = families["gen_ai_client_operation_duration_seconds"]
    counts = {
        sample.labels["gen_ai_operation_name"]: sample.value
        for sample in durations.samples
        if sample.name.endswith("_count")
    }
    assert counts == {"chat": 2.0, "execute_tool": 1.0}
    assert "journeyman_run_duration_seconds" in families
    assert "canary" not in ended.stdout

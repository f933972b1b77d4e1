"""The gateway in front of servers that others publish: one for files (npm), one for times (PyPI), from one file."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from benchmarks.mcp import registry
from journeyman.stores.store import open_store
from tests.doors.cli.driving import AT_A_TERMINAL

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # the first one installs what they need


@pytest.fixture(scope="module")
def installed() -> str:
    """The configuration with ``{data}`` in the place of the folder."""
    return registry.configuration(Path("{data}"))


@pytest.fixture
def folder(tmp_path: Path, installed: str) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    (data / "note.txt").write_text("as it was")
    (tmp_path / "journeyman.yaml").write_text(installed.replace("{data}", str(data)))
    return tmp_path


@asynccontextmanager
async def gateway(folder: Path) -> AsyncIterator[Client]:
    program, *words = registry.gateway_command()
    environment = registry.environment()
    parameters = StdioServerParameters(command=program, args=words, cwd=folder, env=environment)
    async with Client(parameters, read_timeout_seconds=120) as client:
        yield client


async def journeyman(folder: Path, *words: str) -> None:
    environment = registry.environment()
    command = [sys.executable, "-c", AT_A_TERMINAL, *registry.journeyman(*words)]
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment, stdin=subprocess.DEVNULL)
    assert await process.wait() == 0


def text_of(result: types.CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def test_two_published_servers_are_governed_by_one_file(folder: Path) -> None:
    note, moved = folder / "data" / "note.txt", folder / "data" / "moved.txt"
    async with gateway(folder) as client:
        told = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        assert {"files_read_text_file", "files_move_file", "time_get_current_time"} <= told.keys()
        assert told["files_move_file"] is not None
        assert told["files_move_file"].destructive_hint

        # A read runs, and is answered from the cache the second time.
        for _ in range(2):
            read = await client.call_tool("files_read_text_file", {"path": str(note)})
            assert read.structured_content == {"content": "as it was"}
            note.write_text("changed behind its back")
        hour = await client.call_tool("time_get_current_time", {"timezone": "America/Lima"})
        assert '"timezone":"America/Lima"' in text_of(hour)

        # What destroys waits for a person; arguments that are wrong do not get so far.
        wrong = await client.call_tool("files_move_file", {"source": str(note)})
        assert "INVALID_ARGUMENTS" in text_of(wrong)
        move = {"source": str(note), "destination": str(moved)}
        waiting = await client.call_tool("files_move_file", move)
        assert "has not run yet: 'files.move_file' (irreversible) waits" in text_of(waiting)
        assert (note.exists(), moved.exists()) == (True, False)
        [approval] = re.findall(r"tell the user that '(appr_\w+)' waits", text_of(waiting))
        await journeyman(folder, "approvals", "approve", approval, "--config", "journeyman.yaml")
        done = await client.call_tool("files_move_file", move)
        assert not done.is_error, done
        assert (note.exists(), moved.exists()) == (False, True)

    store = open_store(f"sqlite:///{folder / 'journeyman.db'}")
    await store.open()
    try:
        calls, rows = await store.calls.list(), await store.audit.list()
        assert (await store.audit.inspect()).findings == ()
    finally:
        await store.close()
    assert [(call.tool_name, call.status, call.cached) for call in reversed(calls)] == [
        ("files.read_text_file", "success", False),
        ("files.read_text_file", "success", True),
        ("time.get_current_time", "success", False),
        ("files.move_file", "error", False),
        ("files.move_file", "success", False),
    ]
    # Reads are in the journal of their runs; the audit has effects and decisions.
    assert [row.kind for row in rows] == [
        "configuration_changed",
        "call_started",
        "approval_approved",
        "call_started",
    ]

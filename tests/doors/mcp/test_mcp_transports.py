"""The MCP server in a process of its own: what is on its standard output, and whose session is whose over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.core.data import MCP_MESSAGE_BYTES
from journeyman.doors.mcp.server import TOO_LARGE
from journeyman.doors.mcp.serving import BoundedLines
from scripts.mcp_conformance import NOT_APPLICABLE, table
from tests.doors.cli.box_shop import NOISY, printing_environment

ROOT = Path(__file__).parents[3]
PROGRAM = [sys.executable, "-c", "from journeyman.doors.cli import main; main()", "mcp", "serve"]
START = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
TOKENS = {
    "ada-ada-ada-ada-ada": {"id": "ada", "permissions": []},
    "bob-bob-bob-bob-bob": {"id": "bob", "permissions": []},
}


def test_the_table_of_the_documentation_is_the_scripts() -> None:
    assert table() in (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    assert all(len(why) > 20 for reasons in NOT_APPLICABLE.values() for why in reasons.values())


@pytest.mark.slow
@pytest.mark.parametrize("buffered", [True, False])
async def test_standard_output_carries_the_protocol_and_nothing_else(tmp_path: Path, buffered: bool) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    words = ["--library", "noisy:library", "--store", f"sqlite:///{tmp_path / 'runs.db'}"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, *words),
        cwd=tmp_path,
        env=printing_environment(buffered=buffered),
        stdin=pipe,
        stdout=pipe,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    answers = []
    for number, (method, params) in enumerate(
        [
            ("initialize", START),
            ("tools/call", {"name": "shout", "arguments": {"x": "x" * MCP_MESSAGE_BYTES}}),
            ("tools/call", {"name": "shout", "arguments": {}}),
            ("tools/call", {"name": "shout_apart", "arguments": {}}),
        ]
    ):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        answers.append(json.loads(await process.stdout.readline()))
        if method == "initialize":
            process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
    process.stdin.close()
    rest = await process.stdout.read()
    assert await process.wait() == 0
    assert rest == b""
    assert answers[0]["result"]["serverInfo"]["name"] == "journeyman"
    assert answers[1]["id"] == 1
    assert "has more than 4,000,000 bytes" in answers[1]["error"]["message"]
    assert [answer["result"]["content"] for answer in answers[2:]] == [[{"type": "text", "text": "done"}]] * 2


@given(st.lists(st.integers(1, 120), max_size=8), st.integers(1, 40))
def test_lines_are_bounded_wherever_they_are_cut(sizes: list[int], most: int) -> None:
    lines = [b'{"id": %d, "x": "%s"}' % (number, b"x" * size) for number, size in enumerate(sizes)]
    expected = [
        line.decode() if len(line) <= most else json.dumps({"jsonrpc": "2.0", "id": number, "method": TOO_LARGE})
        for number, line in enumerate(lines)
    ]

    async def read() -> list[str]:
        theirs, ours = os.pipe()
        os.write(ours, b"".join(line + b"\n" for line in lines))
        os.close(ours)
        try:
            return [line async for line in BoundedLines(theirs, most=most, chunk=7)]
        finally:
            os.close(theirs)

    assert asyncio.run(read()) == expected


@asynccontextmanager
async def over_http(tmp_path: Path) -> AsyncIterator[str]:
    (tmp_path / "tokens.json").write_text(json.dumps(TOKENS))
    words = ["--http", "--port", "0", "--tokens", "tokens.json", "--store", f"sqlite:///{tmp_path / 'runs.db'}"]
    process = await asyncio.create_subprocess_exec(*PROGRAM, *words, cwd=tmp_path, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        said = (await process.stderr.readline()).decode()
        yield said.split()[2]
    finally:
        process.terminate()
        await process.communicate()


@pytest.mark.slow
async def test_over_http_a_client_is_whom_its_token_stands_for(tmp_path: Path) -> None:
    async with over_http(tmp_path) as url, httpx2.AsyncClient(timeout=60) as client:

        async def post(method: str, params: Any, token: str | None = None, **headers: str) -> httpx2.Response:
            sent = {"accept": "application/json, text/event-stream", **headers}
            if token is not None:
                sent["authorization"] = f"Bearer {token}"
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return await client.post(url, json=message, headers=sent)

        ada, bob = TOKENS
        assert (await post("initialize", START)).status_code == 401
        assert (await post("initialize", START, "wrong-wrong-wrong-wrong")).status_code == 401
        assert (await post("initialize", START, ada, origin="http://evil.example")).status_code == 403
        begun = await post("initialize", START, ada)
        session = {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        arguments = {"name": "create_task", "arguments": {"title": "Buy milk"}}
        assert "Buy milk" in (await post("tools/call", arguments, ada, **session)).text
        assert (await post("resources/list", {}, bob, **session)).status_code == 404
        theirs = await post("initialize", START, bob)
        own = {**session, "mcp-session-id": theirs.headers["mcp-session-id"]}
        assert "journeyman://runs/" in (await post("resources/list", {}, ada, **session)).text
        assert "journeyman://runs/" not in (await post("resources/list", {}, bob, **own)).text

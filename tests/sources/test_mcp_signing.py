"""Signing in to an MCP server with a browser: our own gateway behind an authorization server, on the loopback."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from journeyman import ConfigurationError
from journeyman.app.configuration import Configuration, sign_in, sign_in_file
from journeyman.settings.reading import read_settings
from tests.doors.http.authorization import Authorization, authorizing
from tests.sources.mcp_servers import record_of

pytestmark = pytest.mark.slow


@asynccontextmanager
async def protected(folder: Path, server: Authorization) -> AsyncIterator[str]:
    """The address of a gateway that wants tokens of the authorization server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}/mcp"
    oauth = {"issuer": server.issuer, "audience": address, "scopes": {"tools": ["runs:write"]}}
    given = {"version": 1, "toolkits": ["hello"], "doors": {"http": {"oauth": oauth}}}
    (folder / "journeyman.yaml").write_text(json.dumps(given))
    words = ("mcp", "serve", "--http", "--port", str(port), "--config", "journeyman.yaml")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "journeyman", *words, cwd=folder, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        while b"listening" not in (line := await process.stderr.readline()):
            assert line, "it ended"
        yield address
    finally:
        process.kill()
        await process.wait()


async def test_a_person_signs_in_once_and_programs_go_on(tmp_path: Path) -> None:
    opened: list[asyncio.Task[None]] = []

    async def browse(address: str) -> None:
        async with aiohttp.ClientSession() as browser, browser.get(address) as page:
            assert "can be closed" in await page.text()

    (tmp_path / "desk").mkdir()
    async with authorizing() as server, protected(tmp_path / "desk", server) as address:
        file = tmp_path / "journeyman.yaml"
        file.write_text(f"version: 1\nmcp: {{desk: {{url: '{address}', start: 60s, oauth: {{sign_in: true}}}}}}\n")
        loaded = read_settings(file)
        found = Configuration(file)
        async with found.library:
            [problem] = found.server_problems()
        assert "journeyman mcp login desk" in problem.message

        count = await sign_in("desk", loaded, lambda url: opened.append(asyncio.ensure_future(browse(url))))
        await asyncio.gather(*opened)
        assert count > 0
        kept = sign_in_file(file, "desk")
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700

        async with Configuration(file).library as library:
            [name] = [name for name in library.names() if name.endswith("sayHello")]
            assert (await record_of(library, name, name="Ada")).success
        assert len(opened) == 1

        whole = json.loads(kept.read_text())
        kept.write_text(json.dumps({**whole, "expires_at": 1}))
        async with Configuration(file).library as library:
            assert name in library.names()
        assert "refresh_token" in server.asked
        assert json.loads(kept.read_text())["expires_at"] > 1


async def test_only_a_server_that_says_so_is_signed_in_to(tmp_path: Path) -> None:
    file = tmp_path / "journeyman.yaml"
    file.write_text("version: 1\nmcp: {desk: {url: 'http://127.0.0.1:1/mcp'}}\n")
    for name in ("desk", "none"):
        with pytest.raises(ConfigurationError, match=r"has 'oauth: \{sign_in: true\}'"):
            await sign_in(name, read_settings(file), print)

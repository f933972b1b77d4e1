"""A server that wants an access token: the configuration file says who we are, and the package signs us in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from journeyman import ToolLibrary
from journeyman.app.configuration import Configuration
from tests.sources.mcp_servers import record_of
from tests.sources.signing_server import SECRET

SERVER = Path(__file__).with_name("signing_server.py")
pytestmark = pytest.mark.slow


@asynccontextmanager
async def configured(folder: Path, issuer: str | None = None, mode: str = "") -> AsyncIterator[ToolLibrary]:
    """The library of a file with that server in it, which is started meanwhile."""
    process = await asyncio.create_subprocess_exec(sys.executable, str(SERVER), mode, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        file = folder / "journeyman.yaml"
        oauth = f"{{client_id: we, client_secret: '${{BOX_SECRET}}', issuer: '{issuer or f'http://127.0.0.1:{port}'}'}}"
        file.write_text(f"version: 1\nmcp: {{box: {{url: 'http://127.0.0.1:{port}/mcp', oauth: {oauth}}}}}\n")
        yield Configuration(file).library
    finally:
        process.kill()
        await process.wait()


async def test_the_file_says_who_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_SECRET", SECRET)
    async with configured(tmp_path) as library, library:
        record = await record_of(library, "box.work")
    assert record.result == "signed in, call 1"


async def test_a_call_after_which_the_server_wants_us_to_sign_in_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOX_SECRET", SECRET)
    async with configured(tmp_path, mode="forgetful") as library, library:
        records = [await record_of(library, "box.work") for _ in range(2)]
    assert [record.status for record in records] == ["unknown", "success"]
    assert records[1].result == "signed in, call 2"


async def test_a_wrong_secret_is_an_error_that_names_the_server_and_not_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOX_SECRET", "wrong-wrong-wrong")
    async with configured(tmp_path) as library, library:
        [problem] = library.problems()
    assert problem.source == "box"
    assert "cannot be opened" in problem.message
    assert "wrong-wrong-wrong" not in problem.message


async def test_the_secret_goes_to_nobody_but_the_issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_SECRET", SECRET)
    async with configured(tmp_path, issuer="http://127.0.0.1:9") as library, library:
        [problem] = library.problems()
    assert (problem.source, "cannot be opened" in problem.message) == ("box", True)

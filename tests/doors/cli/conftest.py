"""Fixtures for the command line: in this process, and against a scripted model server in a thread."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from journeyman.doors.cli import configured, main, program, screen  # noqa: F401  # screen holds the real check of a terminal
from journeyman.models import local_servers
from journeyman.models.embedded import files
from journeyman.testing import call
from journeyman.testing.server import ScriptedServer, ServerTurn
from tests.doors.cli.box_shop import AGENT, SOURCE
from tests.doors.cli.driving import Cli, Ended, Open, Piped, Serve, Terminal
from tests.waiting import WAIT_SECONDS


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No key, no settings, 80 columns, an empty folder, nobody trusted; what is imported is forgotten afterwards."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "OLLAMA_", "JOURNEYMAN_")) or name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".state"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    configured.forget()  # the file of a test before
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to listen on this machine must not decide tests."""
    monkeypatch.setattr(local_servers, "SERVERS", {})


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra of the embedded model were not installed."""
    monkeypatch.setattr(files, "DISTRIBUTION", "no-such-distribution")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    # Whoever decides in a test is a person; that one must be, the tests of terminals and of pipes show.
    monkeypatch.setattr(program, "at_a_terminal", lambda: True)

    def call(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["journeyman", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        written = capsys.readouterr()
        return Ended(int(ended.value.code or 0), written.out, written.err)

    return call


@pytest.fixture
def piped(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Piped:
    """Chat through a pipe that is closed after the last line."""

    def chat(lines: str, *arguments: str) -> Ended:
        theirs, ours = os.pipe()
        os.write(ours, lines.encode())
        os.close(ours)
        with open(theirs, encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            return cli("chat", *arguments)

    return chat


@pytest.fixture
def serve() -> Serve:
    @contextmanager
    def running(*turns: ServerTurn) -> Iterator[ScriptedServer]:
        ready, done = threading.Event(), asyncio.Event()
        found: list[tuple[ScriptedServer, asyncio.AbstractEventLoop]] = []

        async def whole() -> None:
            async with ScriptedServer(turns) as server:
                found.append((server, asyncio.get_running_loop()))
                ready.set()
                await done.wait()

        thread = threading.Thread(target=asyncio.run, args=(whole(),))
        thread.start()
        assert ready.wait(WAIT_SECONDS)
        server, loop = found[0]
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(done.set)
            thread.join(WAIT_SECONDS)

    return running


@pytest.fixture
def terminal() -> Iterator[Open]:
    """Programs in terminals of their own."""
    pytest.importorskip("pty", reason="needs pseudo-terminals")
    opened: list[Terminal] = []

    def open_one(*arguments: str, **size: int) -> Terminal:
        opened.append(Terminal(*arguments, **size))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the tools in it. A file named deadly kills the process of the next call; effects are noted."""
    (tmp_path / "boxshop.py").write_text(SOURCE)
    return tmp_path


@pytest.fixture
def approval(cli: Cli, serve: Serve, shop: Path) -> dict[str, Any]:
    """A run of the session 'tuesday' that waits for a word about burning shelf a."""
    with serve(call("burn_shelf", shelf="a")) as server:
        ended = cli("run", "Burn it.", "--session", "tuesday", *AGENT, "--model", f"{server.url}#any")
    assert ended.code == 3
    found: dict[str, Any] = json.loads(cli("approvals", "list", "--json").out)[0]
    return found
